"""Given attention heads: files of them, their facts, the audit that judges, capture and monitor in a forward pass.

It knows the rooms up to `variants`.
"""

from typing import TYPE_CHECKING

from sqrtdk import public

if TYPE_CHECKING:
    from sqrtdk.heads.calls import Call as Call
    from sqrtdk.heads.calls import Capture as Capture
    from sqrtdk.heads.errors import InputError as InputError
    from sqrtdk.heads.judgement import Judgement as Judgement
    from sqrtdk.heads.judgement import audit as audit
    from sqrtdk.heads.monitor import AttentionMonitor as AttentionMonitor
    from sqrtdk.heads.scores import ScoreError as ScoreError
    from sqrtdk.heads.scores import check_scores as check_scores

_MODULES = {
    **{"AttentionMonitor": "monitor", "ScoreError": "scores", "check_scores": "scores"},
    **{"Call": "calls", "Capture": "calls", "InputError": "errors", "Judgement": "judgement", "audit": "judgement"},
}
__all__ = sorted(_MODULES)
__getattr__, __dir__ = public(__name__, _MODULES)
