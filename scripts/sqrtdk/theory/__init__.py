"""Exact averages over rows and their limits: random energy model, Gaussian rows, normalisers.

It knows the rooms up to `rows`.
"""

from typing import TYPE_CHECKING

from sqrtdk import public

if TYPE_CHECKING:
    from sqrtdk.theory.random_energy import averages as averages

__all__ = ["averages"]
__getattr__, __dir__ = public(__name__, {"averages": "random_energy"})
