"""What tests of TeX and BibTeX share."""

import re


def balanced(tex: str) -> bool:
    """Say whether every brace that is not escaped has its partner."""
    depth = 0
    for sign in re.sub(r"\\[{}]", "", tex):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            return False
    return depth == 0
