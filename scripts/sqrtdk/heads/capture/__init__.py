"""Queries and keys as they enter the attention of a PyTorch model. PyTorch is imported here and nowhere else."""

from typing import TYPE_CHECKING

from sqrtdk import public

if TYPE_CHECKING:
    from sqrtdk.heads.capture.entry import capture as capture

__all__ = ["capture"]
__getattr__, __dir__ = public(__name__, {"capture": "entry"})
