"""Queries and keys drawn at random: streams, ensembles with exact laws, blocks, moments and laws of the score.

It knows `statistics` and `results`.
"""

from typing import TYPE_CHECKING

from sqrtdk import public

if TYPE_CHECKING:
    from sqrtdk.sampling.ensembles import build as build
    from sqrtdk.sampling.ensembles import families as families

__all__ = ["build", "families"]
__getattr__, __dir__ = public(__name__, {"build": "ensembles", "families": "ensembles"})
