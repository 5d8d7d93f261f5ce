"""The claims of two widely read articles: each is one object, in one place, with the test that decides it.

A claim is added by one decorated function in one of the modules below; the texts of both languages stand in it.
"""

from sqrtdk.claims import factors, gradients, layers, moments, rules, softmax, training  # noqa: F401
from sqrtdk.claims.core import REGISTRY, Claim

CLAIMS: dict[str, Claim] = dict(sorted(REGISTRY.items(), key=lambda item: int(item[0].removeprefix("C"))))
"""All claims by their ids, in the order of the ids."""


def tables() -> list[str]:
    """Return the names of the result tables that the claims read, without those that ship with the project."""
    read = dict.fromkeys(table for claim in CLAIMS.values() for table in claim.reads)
    return sorted(table for table in read if not table.startswith("shipped_"))
