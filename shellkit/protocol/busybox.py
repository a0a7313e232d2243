"""The ash of busybox: dash's older sibling, with bash's `ulimit` and its own words for a function."""

from __future__ import annotations

from .posix import PosixDialect

__all__ = ["BusyboxDialect"]


class BusyboxDialect(PosixDialect):
    """busybox sh, 1.30 and later."""

    family = "busybox"
    longest_inline = 1 << 16
