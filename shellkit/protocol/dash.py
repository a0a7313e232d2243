"""dash. Differences from plain `sh`: its special builtins cannot be hidden, and it reads its script in blocks.

A function may not be named like a special builtin ("Bad function name"), so only `command` itself can be hidden.
Then there is no other way round a syntax error, which ends the shell; the session gives its state to a new one.
"""

from __future__ import annotations

from .posix import PosixDialect

__all__ = ["DashDialect"]


class DashDialect(PosixDialect):
    """dash 0.5.11 and later."""

    family = "dash"
    # A block of 8 KiB a read(2): 1 MB takes 25 ms in a line, and `$(cat file)` a fork on top of that.
    longest_inline = 1 << 16
