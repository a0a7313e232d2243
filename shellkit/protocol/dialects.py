"""The dialects that shellkit speaks, by shell family."""

from __future__ import annotations

from .base import Dialect
from .bash import BashDialect
from .posix import PosixDialect

__all__ = ["dialect_for"]


def dialect_for(family: str) -> Dialect:
    """Return the dialect of a family that `resolver.Shell` names.

    Raises:
        KeyError: there is none.
    """
    return {"bash": BashDialect, "sh": PosixDialect, "dash": PosixDialect, "busybox": PosixDialect}[family]()
