"""The dialects that shellkit speaks, by shell family."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ExecutorUnavailable
from .base import Dialect
from .bash import BashDialect
from .busybox import BusyboxDialect
from .dash import DashDialect
from .ksh import KshDialect
from .mksh import MkshDialect
from .posix import PosixDialect
from .zsh import ZshDialect

__all__ = ["DIALECTS", "NOT_YET", "dialect_for"]

#: Every dialect, by the family that `resolver.Shell` names.
DIALECTS: Mapping[str, type[Dialect]] = {
    dialect.family: dialect
    for dialect in (BashDialect, BusyboxDialect, DashDialect, KshDialect, MkshDialect, PosixDialect, ZshDialect)
}


#: Families that are found and named, but that shellkit does not speak yet: why.
NOT_YET: Mapping[str, str] = {
    "powershell": "PowerShell cannot be spoken to yet; name a POSIX shell with shell=... and run pwsh inside it",
    "cmd": "cmd.exe cannot be spoken to yet; name a POSIX shell with shell=...",
}


def dialect_for(family: str) -> Dialect:
    """Return the dialect of a family that `resolver.Shell` names.

    Raises:
        ExecutorUnavailable: shellkit does not speak it yet.
    """
    if family in NOT_YET:
        raise ExecutorUnavailable(NOT_YET[family])
    return DIALECTS[family]()
