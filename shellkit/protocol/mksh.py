"""mksh. Differences from plain `sh`: no `printf`, and any error that would end a script ends the shell.

A syntax error, `set -u`, `${x:?}`, a failing special builtin: `command eval` keeps none of them from ending mksh
(tried on R59); only a function or `.` does. A function would make `typeset` local and `.` would put the name of
our file into every message, so the shell ends, as with `-c`, and the session gives its state to a new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .base import Endpoints, Link
from .posix import OWN_VARIABLES
from .quoting import quote
from .state import Checkpoint
from .typeset import TypesetDialect

__all__ = ["MkshDialect"]

_READONLY = re.compile(rb"typeset(?: -\S+)* -r ")


class MkshDialect(TypesetDialect):
    """mksh R50 and later, lksh."""

    family = "mksh"
    interrupt_signal = "SIGUSR2"  # `trap` does not know the real-time signals
    # With an EXIT trap that succeeds mksh ends with 0 after a signal.
    fatal_signals = (b"HUP", b"INT", b"QUIT", b"PIPE", b"ALRM", b"TERM", b"USR1")
    route = b"builtin"
    watched = frozenset({b"builtin"})
    way_to_typeset = b"\\builtin \\"
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
        return b"\\typeset -f builtin >'/dev/null'&&\\print -rn -- builtin$'\\n'||\\:\n"

    def _eval(self, link: Link) -> bytes:
        return b"\\eval"  # a special builtin: no function hides it

    def _report(self, link: Link) -> bytes:
        return self._route(link) + b"print -rN --"

    def _print(self, link: Link, *words: bytes) -> bytes:
        return self._route(link) + b"print -rn -- " + b"".join(words)

    def _end_record(self, link: Link) -> bytes:
        return self._route(link) + b"print -n '\\0'"

    def _trailer(self, link: Link, report: bytes) -> bytes:
        stop = b"\\set +x;case ${2-} in *x*)__skp='\\set -x;';;?*)__skp=;;esac;"
        return stop + report + b' "' + link.token + b' E $__skq ${PWD-}"'

    def wrapper(self, link: Link, endpoints: Endpoints) -> bytes:
        # `set -x` traces to what descriptor 2 was when it ran (`change_xtrace` in misc.c): to the pipe of a command
        # that is long over. So tracing stops at the end of each command and begins anew within the next.
        run = self._eval(link) + b' "${__skp-}$__skc"' + self._redirections(endpoints)
        return run + b';\\__skt "$?" "$-"'

    def _further_functions(self) -> list[bytes]:
        # A function that fails returns; so does what it calls. Nothing else keeps an error from ending mksh.
        return [b'__skg() { \\eval "$1"; }']

    def _guard(self, statement: bytes) -> bytes:
        return b"\\__skg " + quote(statement)

    def _read_text(self, path: bytes) -> bytes:
        return b'__skc="$(<' + quote(path) + b')";'

    def _statements(self, text: bytes) -> Iterator[tuple[bytes, bytes]]:
        # Within `__skg`, `typeset` needs -g. An array is read-only only when all its elements are there.
        names = []
        for name, statement in super()._statements(text):
            if match := _READONLY.match(statement):
                names.append(name)
                statement = statement.replace(b" -r ", b" ", 1)
            yield name, statement.replace(b"typeset", b"\\typeset -g", 1)
        yield from ((name, b"\\typeset -g -r " + name) for name in dict.fromkeys(names))
