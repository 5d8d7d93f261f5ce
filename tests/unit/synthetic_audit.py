"""An audit table as a run writes it, from simulated heads: of a collapsed one, of sound ones, and of a wrong scale."""

import functools

import audit_files
import pandas as pd

from sqrtdk.heads.cases import Options
from sqrtdk.heads.conventions import convention, scale
from sqrtdk.heads.dumps import dump_of
from sqrtdk.heads.verdict import COLUMNS, audit


def _dump(name: str, declared: str, **gains) -> list[dict]:
    """Return the rows of layers of three heads, whose queries are multiplied; the last head looks at one key."""
    arrays = {}
    for layer, gain in enumerate(gains.values()):
        q, k = audit_files.normal(layer, heads=3, d=16, n=40)
        q *= [[[g]] for g in gain]
        q[2, :, 0], k[2, 5] = 1.0, 0.0
        k[2, 5, 0] = 8.0
        arrays |= {f"l{layer}.q": q, f"l{layer}.k": k}
    options = Options(convention(None), scale(declared).of, "trained")
    return [verdict.row for verdict in audit([dump_of(arrays, name=name)], options)]


@functools.cache
def _table() -> pd.DataFrame:
    rows = [
        *_dump("minilm_l6", "1/sqrt(d_k)", first=(1, 40, 0.5), second=(1, 1, 0.5)),
        *_dump("sound", "1/sqrt(d_k)", only=(2, 0.3, 0.5)),
        *_dump("twice", "1/d_k", only=(1, 1, 1)),
    ]
    table = pd.DataFrame(rows)[list(COLUMNS)]
    # As it is read from a file: an empty text is missing.
    return table.assign(findings=table["findings"].replace("", None))


def table() -> pd.DataFrame:
    """Return a fresh copy: three dumps, with a collapsed head, three sound heads, and a scale applied twice."""
    return _table().copy()
