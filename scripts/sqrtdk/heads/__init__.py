"""Given attention heads: their facts, the audit that judges them, the monitor in a forward pass.

It knows the rooms up to `variants`.
"""

from typing import TYPE_CHECKING

from sqrtdk import public

if TYPE_CHECKING:
    from sqrtdk.heads.errors import InputError as InputError
    from sqrtdk.heads.monitor import AttentionMonitor as AttentionMonitor
    from sqrtdk.heads.monitor import ScoreError as ScoreError
    from sqrtdk.heads.monitor import check_scores as check_scores

__all__ = ["AttentionMonitor", "InputError", "ScoreError", "check_scores"]
__getattr__, __dir__ = public(
    __name__,
    {"AttentionMonitor": "monitor", "InputError": "errors", "ScoreError": "monitor", "check_scores": "monitor"},
)
