"""May this command run? Pure: text in, verdict out. No system, no clock, no process (contract H6, H7, H8).

`RulePolicy` judges by rules, `READ_ONLY` is the preset, `loads` reads `shellkit.toml`; `approvals` and `environ` hold
the values of the gate that follows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .approvals import (
        ApprovalMemory,
        ApprovalRequest,
        Decision,
        PendingApprovals,
        canonical_command,
        displayed,
        offer_prefix,
    )
    from .base import Clarity, Finding, Judgement, Policy, PolicyError, Segment, Verdict, Word, strictest
    from .environ import FilteredEnvironment, filter_environment
    from .file_format import loads
    from .readonly import READ_ONLY
    from .rules import Rule, RulePolicy

__all__ = [
    "READ_ONLY",
    "ApprovalMemory",
    "ApprovalRequest",
    "Clarity",
    "Decision",
    "FilteredEnvironment",
    "Finding",
    "Judgement",
    "PendingApprovals",
    "Policy",
    "PolicyError",
    "Rule",
    "RulePolicy",
    "Segment",
    "Verdict",
    "Word",
    "canonical_command",
    "displayed",
    "filter_environment",
    "loads",
    "offer_prefix",
    "strictest",
]

# Every session imports `confinement` and `environ`, hardly any judges commands: loading the rest here would
# double the time of `import shellkit` (55 ms of 110).
_HOME = {
    "ApprovalMemory": "approvals",
    "ApprovalRequest": "approvals",
    "Decision": "approvals",
    "PendingApprovals": "approvals",
    "canonical_command": "approvals",
    "displayed": "approvals",
    "offer_prefix": "approvals",
    "Clarity": "base",
    "Finding": "base",
    "Judgement": "base",
    "Policy": "base",
    "PolicyError": "base",
    "Segment": "base",
    "Verdict": "base",
    "Word": "base",
    "strictest": "base",
    "FilteredEnvironment": "environ",
    "filter_environment": "environ",
    "loads": "file_format",
    "READ_ONLY": "readonly",
    "Rule": "rules",
    "RulePolicy": "rules",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
