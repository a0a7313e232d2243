"""ksh93. Differences from plain `sh`: everything can be printed, and only `command` itself can be hidden.

`typeset` and the other special builtins cannot be hidden ("invalid function name").
ksh93u+m prints a function that holds a here-document wrongly when it was not read from a file: its text is cut
short (tried: `typeset -f` of one made by `eval`). Each function is therefore restored by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from .base import Link
from .posix import OWN_VARIABLES, PREFIX
from .state import Checkpoint
from .typeset import TypesetDialect

__all__ = ["KshDialect"]


class KshDialect(TypesetDialect):
    """ksh93u+m and its predecessors."""

    family = "ksh"
    not_restored = "functions that hold a here-document"
    # With an EXIT trap ksh93u+m ends by `exit(15)` and not by SIGTERM; without one by the signal.
    fatal_signals: ClassVar[tuple[bytes, ...]] = (b"HUP", b"INT", b"QUIT", b"PIPE", b"ALRM", b"TERM", b"USR1")
    own_variables = OWN_VARIABLES | frozenset(b"ENV HISTCMD JOBMAX KSH_VERSION SHELL TMOUT _AST_FEATURES".split())
    own_options = frozenset(
        b"errexit exec interactive login_shell monitor privileged rc restricted verbose xtrace vi viraw emacs gmacs"
        b" histreedit histverify histexpand multiline log showme bgnice".split()
    )

    def _typeset(self, link: Link) -> bytes:
        return b"\\typeset"

    def watch(self, link: Link) -> bytes:
        return b"\\typeset +f command >'/dev/null'&&\\printf 'command\\n'||\\:\n"  # `printf` is bare, see `posix`

    def shadowing(self, checkpoint: Checkpoint) -> frozenset[bytes]:
        names = (name.partition(b"(")[0].removeprefix(b"function ") for name in self._functions(checkpoint))
        return self.watched.intersection(names)

    def _state_commands(self, link: Link) -> list[bytes]:
        *commands, end = super()._state_commands(link)
        return [*commands, b"\\__skm", end]

    def functions(self, link: Link) -> bytes:
        if not link.keeps_state:
            return super().functions(link)
        # `function` gives it an IFS of its own. No pipeline: after an interrupted one, ksh93u+m hangs in the next,
        # parent in recv(2) and child in pause(2), about every fourth time.
        each = b'n=n+1;\\__skh "function$n";\\typeset -f "${f%\\(\\)}"'
        loop = b"typeset IFS=$'\\n' f;typeset -i n=0;for f in $(\\typeset +f);do " + each + b";done"
        return super().functions(link) + b"function __skm { " + loop + b"; }\n"

    def _sections(self, link: Link) -> list[tuple[bytes, bytes]]:
        return [(name, command) for name, command in super()._sections(link) if name != b"functions"]

    def _restore_functions(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        yield from map(self._guard, self._functions(checkpoint))

    def _functions(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        number = 1
        while text := checkpoint[f"function{number}"]:
            number += 1
            if not text.startswith((PREFIX, b"function " + PREFIX)):
                yield text
