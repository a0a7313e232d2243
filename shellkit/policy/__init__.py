"""May this command run? Pure: text in, verdict out. No system, no clock, no process (contract H6, H7, H8).

`RulePolicy` judges by rules, `READ_ONLY` is the preset, `loads` reads `shellkit.toml`; `approvals` and `environ` hold
the values of the gate that follows.
"""

from __future__ import annotations

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
