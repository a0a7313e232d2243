"""bash. Differences from plain `sh`: functions may shadow any builtin, and everything can be printed.

In bash a function named `eval` or `printf` hides the builtin (manual, "Command Search and Execution"). After a
command that may have defined one, `declare -F` tells, and the next line goes round it through `builtin`.
Asking after every command would cost up to 20 us of the 100 that `true` takes; the idle checkpoint asks, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from .base import Link
from .posix import PosixDialect, unset_missing
from .quoting import quote
from .state import Checkpoint, split_statements

__all__ = ["BashDialect"]

_WATCHED = (b"eval", b"declare", b"printf", b"builtin", b"command")

#: Variables that bash owns; the rest of BASH* is matched by its prefix.
_OWN = re.compile(
    rb"declare -\S+ (?:BASH\w*|COMP_\w+|DIRSTACK|EPOCH\w+|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTTYPE|LINENO|MACHTYPE"
    rb"|OLDPWD|OPTERR|OSTYPE|PIPESTATUS|POSIXLY_CORRECT|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_"
    rb"|__sk[clqr])(?:=|$)"
)
#: Text that may define a function or run text from elsewhere that does.
_DEFINING = re.compile(rb"\(\s*\)|\b(?:function|eval|source|enable|trap|complete|exec)\b|(?:^|[\s;&|(])\.\s", re.MULTILINE)
_DECLARED = re.compile(rb"declare -\S+ ([A-Za-z_]\w*)")


class BashDialect(PosixDialect):
    """GNU bash 4.2 and later."""

    family = "bash"
    not_restored = ""
    watched = frozenset(_WATCHED)

    def _route(self, link: Link) -> bytes:
        """Return the words that reach a builtin past the user's functions."""
        if b"builtin" not in link.shadowed:
            return b"\\builtin "
        return b"\\command " if b"command" not in link.shadowed else b"\\"

    def _eval(self, link: Link) -> bytes:
        return (self._route(link) if b"eval" in link.shadowed else b"\\") + b"eval"

    _outer_eval = _eval

    def _cd(self, link: Link) -> bytes:
        return self._route(link) + b"cd --"

    def _report(self, link: Link) -> bytes:
        return self._route(link) + b"printf"

    def _quick_report(self, link: Link) -> bytes:
        return self._report(link) if b"printf" in link.shadowed else b"\\printf"

    def watch(self, link: Link) -> bytes:
        return self._route(link) + b"declare -F " + b" ".join(_WATCHED) + b"||:\n"

    def may_shadow(self, text: bytes) -> bool:
        return _DEFINING.search(text) is not None

    def checkpoint(self, link: Link) -> bytes:
        return self.watch(link) + super().checkpoint(link)

    def _clear_obstacles(self) -> bytes:
        # In posix mode `unset` is found before a function of that name; an assignment is no command at all.
        names = b" ".join((*_WATCHED, b"unset", b"trap", b"set", b"return", b"shift", b"enable", b"cd"))
        return (
            b"POSIXLY_CORRECT=1;\\unset -f " + names + b";\\unset POSIXLY_CORRECT\n"
            b"\\enable " + names + b"\n"
        )

    def _state_commands(self, link: Link) -> list[bytes]:
        route = self._route(link)
        return [re.sub(rb"\\(?=(?:set|umask|ulimit|shopt|declare|alias|trap|shift)\b)", route.replace(b"\\", b"\\\\"), c)
                for c in super()._state_commands(link)]

    def _sections(self, report: bytes) -> list[tuple[bytes, bytes]]:
        return [
            (b"flags", report + b" '%s' \"$1\""),
            (b"ending", report + b" '%s' \"${BASH_COMMAND-}\""),
            (b"workdir", report + b" '%s' \"${PWD-}\""),
            (b"oldpwd", report + b" '%s' \"${OLDPWD-}\""),
            (b"umask", b"\\umask"),
            (b"limits", b"\\ulimit -S -a"),
            (b"shopt", b"\\shopt -p"),
            (b"variables", b"\\declare -p"),
            (b"functions", b"\\declare -f"),
            (b"aliases", b"\\alias -p"),
            (b"traps", b"\\trap -p"),
            (b"options", b"\\set +o"),
            (b"arguments", b"\\shift;" + report + b" ' %q' \"$@\""),
        ]

    def restore(self, link: Link, checkpoint: Checkpoint, environ: Collection[str]) -> bytes:
        # `shopt` comes before the functions: one written with extglob on is else a syntax error.
        return checkpoint["shopt"] + b"\n" + super().restore(link, checkpoint, environ)

    def _restore_variables(self, checkpoint: Checkpoint, environ: Collection[str]) -> Iterator[bytes]:
        statements = [s for s in split_statements(checkpoint["variables"]) if not _OWN.match(s)]
        names = {match.group(1) for s in statements if (match := _DECLARED.match(s))}
        yield from unset_missing(environ, names)
        yield from statements

    def _restore_arguments(self, checkpoint: Checkpoint) -> bytes:
        words = checkpoint["arguments"].strip(b" ")
        return b"\\set -- " + words if words not in (b"", b"''") else b":"

    def _arrange_variable(self, number: bytes, name: bytes, value: str | None) -> Iterator[bytes]:
        yield b"{ __skv%b=$(\\declare -p %b)||:; }" % (number, name)
        yield from list(super()._arrange_variable(number, name, value))[2:]

    def _settle_variable(self, number: bytes, name: bytes) -> Iterator[bytes]:
        yield b'\\unset %b&&\\eval "$__skv%b"' % (name, number)

    def _read_text(self, path: bytes) -> bytes:
        return b"__skc=$(<" + quote(path) + b");"
