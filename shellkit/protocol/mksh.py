"""mksh. Differences from plain `sh`: no `printf`, and any error that would end a script ends the shell.

A syntax error, `set -u`, `${x:?}`, a failing special builtin: `command eval` keeps none of them from ending mksh
(tried on R59); only a function or `.` does. A function would make `typeset` local and `.` would put the name of
our file into every message, so the shell ends, as with `-c`, and the session gives its state to a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from .base import Link
from .posix import OWN_VARIABLES
from .quoting import quote
from .typeset import RetracingDialect

__all__ = ["MkshDialect"]

_READONLY = re.compile(rb"typeset(?: -\S+)* -r ")


class MkshDialect(RetracingDialect):
    """mksh R50 and later, lksh."""

    family = "mksh"
    interrupt_signal = "SIGUSR2"  # `trap` does not know the real-time signals
    # With an EXIT trap that succeeds mksh ends with 0 after a signal.
    fatal_signals: ClassVar[tuple[bytes, ...]] = (b"HUP", b"INT", b"QUIT", b"PIPE", b"ALRM", b"TERM", b"USR1")
    route = b"builtin"
    watched = frozenset({b"builtin"})
    # Copies of 1 MB: 60 ms by `eval`, 25 ms by `.`.
    longest_eval = 1 << 16
    own_variables = OWN_VARIABLES | frozenset(
        b"BASHPID COLUMNS EPOCHREALTIME KSHEGID KSHGID KSHUID KSH_MATCH KSH_VERSION LINES PATHSEP PGRP PIPESTATUS"
        b" SHELL TMOUT USER_ID".split()
    )
    own_options = frozenset(
        b"errexit interactive login monitor noexec privileged restricted stdin verbose xtrace vi emacs gmacs"
        b" vi-esccomplete vi-tabcomplete viraw asis bgnice nohup nolog keyword".split()
    )

    def watch(self, link: Link) -> bytes:
        # `typeset` and `print` are bare, see `posix`.
        return b"case $(\\typeset -f builtin) in 'builtin() {'*)\\print -r -- builtin;;esac\n"

    def _eval(self, link: Link) -> bytes:
        return b"\\eval"  # a special builtin: no function hides it

    def _report(self, link: Link) -> bytes:
        return self._route(link) + b"print -rN --"

    def _print(self, link: Link, *words: bytes) -> bytes:
        return self._route(link) + b"print -rn -- " + b"".join(words)

    def _end_record(self, link: Link) -> bytes:
        return self._route(link) + b"print -n '\\0'"

    def _trailer(self, link: Link, report: bytes) -> bytes:
        return self._note_tracing(link) + report + b' "' + link.token + b' E $__skq ${PWD-}"'

    def functions(self, link: Link) -> bytes:
        # Tracing goes to the command's stderr until it is off: first thing, and out of sight of the paths.
        lines = super().functions(link).replace(b"__skt() { ", b"__skt() { \\set +x;", 1)
        save = b'\\__sks "$@" 2>/dev/null >' + quote(link.control)
        return lines + b"__skw() { \\set +x;__skz=$1;\\shift;" + save + b';\\exit "$__skz"; }\n'

    def _exit_action(self, link: Link) -> bytes:
        # After `exit 9` in another trap, mksh ends with the code of the EXIT trap.
        return b'\\__skw "$?" "$-" "$@"'

    def _further_functions(self, link: Link) -> list[bytes]:
        # A function that fails returns; so does what it calls. Nothing else keeps an error from ending mksh.
        return [b'__skg() { \\eval "$1"; }']

    def _guard(self, statement: bytes) -> bytes:
        return b"\\__skg " + quote(statement)

    def _statements(self, text: bytes) -> Iterator[tuple[bytes, bytes]]:
        # Within `__skg`, `typeset` needs -g. An array is read-only only when all its elements are there.
        names = []
        for name, statement in super()._statements(text):
            if _READONLY.match(statement):
                names.append(name)
            yield name, statement.replace(b" -r ", b" ", name in names).replace(b"typeset", b"\\typeset -g", 1)
        yield from ((name, b"\\typeset -g -r " + name) for name in dict.fromkeys(names))
