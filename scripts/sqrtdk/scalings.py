"""Scale rules: what q·k is multiplied by before softmax. A new rule is one entry in `_RULES`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

_D_K = "<msub><mi>d</mi><mi>k</mi></msub>"


@dataclass(frozen=True)
class Scaling:
    """A scale rule.

    name: how the configuration and the tables spell it.
    label: how a figure spells it (Matplotlib mathtext).
    formula: the factor as a presentation MathML fragment, to stand inside `<math>`.
    source: where the rule is proposed or used.
    factor: (d_k, n_keys) -> the positive number that multiplies q·k.
    """

    name: str
    label: str
    formula: str
    source: str
    factor: Callable[[int, int], float]


_RULES = (
    Scaling(
        name="none",
        label="unscaled",
        formula="<mn>1</mn>",
        source="Luong et al. 2015, dot-product attention; Raffel et al. 2020 (T5), with the scale in the weights",
        factor=lambda d_k, n_keys: 1.0,
    ),
    Scaling(
        name="1/sqrt(d_k)",
        label=r"$1/\sqrt{d_k}$",
        formula=f"<mfrac><mn>1</mn><msqrt>{_D_K}</msqrt></mfrac>",
        source="Vaswani et al. 2017, section 3.2.1",
        factor=lambda d_k, n_keys: 1 / math.sqrt(d_k),
    ),
    Scaling(
        name="1/d_k",
        label=r"$1/d_k$",
        formula=f"<mfrac><mn>1</mn>{_D_K}</mfrac>",
        source="Yang et al. 2022 (maximal update parametrisation)",
        factor=lambda d_k, n_keys: 1 / d_k,
    ),
)

SCALINGS: dict[str, Scaling] = {rule.name: rule for rule in _RULES}
"""Every scale rule by name, in the order in which figures and tables show them."""


def names() -> list[str]:
    """Return the names of all scale rules, in order."""
    return list(SCALINGS)
