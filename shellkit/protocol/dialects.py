"""The dialects that shellkit speaks, by shell family."""

from __future__ import annotations

from collections.abc import Mapping

from .base import Dialect
from .bash import BashDialect
from .busybox import BusyboxDialect
from .dash import DashDialect
from .ksh import KshDialect
from .mksh import MkshDialect
from .posix import PosixDialect
from .zsh import ZshDialect

__all__ = ["DIALECTS", "dialect_for"]

#: Every dialect, by the family that `resolver.Shell` names.
DIALECTS: Mapping[str, type[Dialect]] = {
    dialect.family: dialect
    for dialect in (BashDialect, BusyboxDialect, DashDialect, KshDialect, MkshDialect, PosixDialect, ZshDialect)
}


def dialect_for(family: str) -> Dialect:
    """Return the dialect of a family that `resolver.Shell` names.

    Raises:
        KeyError: there is none.
    """
    return DIALECTS[family]()
