"""The ash of busybox: dash's older sibling, with bash's `ulimit` and its own words for a function.

An error in a subshell under `command eval` makes the child go on *behind* that eval, as a second shell that
reads our lines (tried on 1.35: `(${x:?})`, `(RO=1)`, `echo ${x:?} | cat`). So after each command that failed the
wrapper asks the kernel who it is, and a child ends with the code that its parent expects. Behind a second `eval` it
would not come that far but spin, so the wrapper stands in the line and not in a variable.
"""

from __future__ import annotations

from .base import Call, Endpoints, Link
from .posix import PosixDialect

__all__ = ["BusyboxDialect"]


class BusyboxDialect(PosixDialect):
    """busybox sh, 1.30 and later."""

    family = "busybox"
    # A block of 1 KiB a read(2): 64 KiB take 0.3 ms in a line, and `$(cat file)` a fork of 0.5 ms.
    longest_inline = 1 << 16

    def line(self, link: Link, call: Call, *, install_wrapper: bool) -> bytes:
        wrapper = self.wrapper(link, call.endpoints)
        return self._set_text(call) + self._set_exit_code(call) + wrapper + b"\n"

    def wrapper(self, link: Link, endpoints: Endpoints) -> bytes:
        run = self._eval(link) + b' "$__skc"' + self._redirections(endpoints)
        return run + b';__skq=$? __skc=;\\__sku "$__skq";' + self._trailer(link, self._quick_report(link))

    def _further_functions(self, link: Link) -> list[bytes]:
        # `$$` is the parent's in a child; /proc/self is its own. `read` costs 15 us, a success nothing.
        who = b"__skn=$$;IFS=' ' " + self._route(link) + b"read -r __skn __ska </proc/self/stat;"
        return [
            *super()._further_functions(link),
            b"__sku() { case $1 in 0);;*)" + who + b'case $__skn in "$$");;*)\\exit "$1";;esac;;esac; }',
        ]
