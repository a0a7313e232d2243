"""bash. Differences from plain `sh`: functions may shadow any builtin, and everything can be printed.

In bash a function named `eval` or `printf` hides the builtin (manual, "Command Search and Execution"). After a
command that may have defined one, `declare -F` tells, and the next line goes round it through `builtin`.
Asking after every command would cost up to 20 us of the 100 that `true` takes; the idle checkpoint asks, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import ClassVar

from .base import Link
from .posix import STARTING_OPTIONS, PosixDialect, unset_missing
from .quoting import quote
from .state import Checkpoint, split_statements

__all__ = ["BashDialect"]

_WATCHED = (b"eval", b"exec", b"declare", b"printf", b"builtin", b"command")

#: Variables that bash owns; the rest of BASH* is matched by its prefix.
_OWN = re.compile(
    rb"declare -\S+ (?:BASH\w*|COMP_\w+|DIRSTACK|EPOCH\w+|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTTYPE|LINENO|MACHTYPE"
    rb"|OLDPWD|OPTERR|OSTYPE|PIPESTATUS|POSIXLY_CORRECT|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_"
    rb"|__sk[bclqr])(?:=|$)"
)
#: Text that may define a function or run text from elsewhere that does.
_DEFINING = re.compile(
    rb"\(\s*\)|\b(?:function|eval|source|enable|trap|complete|exec)\b|(?:^|[\s;&|(])\.\s", re.MULTILINE
)
_DECLARED = re.compile(rb"declare -(\S+) ([A-Za-z_]\w*)")


class BashDialect(PosixDialect):
    """GNU bash 4.2 and later."""

    family = "bash"
    not_restored = ""
    watched = frozenset(_WATCHED)
    fatal_signals: ClassVar[tuple[bytes, ...]] = ()  # bash runs its EXIT trap before a signal ends it

    def _route(self, link: Link) -> bytes:
        """Return the words that reach a builtin past the user's functions."""
        if b"builtin" not in link.shadowed:
            return b"\\builtin "
        return b"\\command " if b"command" not in link.shadowed else b"\\"

    def _eval(self, link: Link) -> bytes:
        return (self._route(link) if b"eval" in link.shadowed else b"\\") + b"eval"

    _outer_eval = _eval

    def _exec(self, link: Link) -> bytes:
        # `builtin exec >file` takes its redirections back (5.2).
        return b"\\command exec" if b"exec" in link.shadowed else b"\\exec"

    def _cd(self, link: Link) -> bytes:
        return self._route(link) + b"cd --"

    def _unset(self, link: Link) -> bytes:
        return self._route(link) + b"unset"

    def _report(self, link: Link) -> bytes:
        return self._route(link) + b"printf"

    def _quick_report(self, link: Link) -> bytes:
        return self._report(link) if b"printf" in link.shadowed else b"\\printf"

    def watch(self, link: Link) -> bytes:
        return self._route(link) + b"declare -F " + b" ".join(_WATCHED) + b"||:\n"

    def may_shadow(self, text: bytes) -> bool:
        # To look through a long text would take 50 ms a megabyte; to ask takes 0.1 ms.
        return len(text) > self.longest_inline or _DEFINING.search(text) is not None

    def functions(self, link: Link) -> bytes:
        if not link.keeps_state:
            return super().functions(link)
        begin = self._print(link, quote(link.token + b" S ")) + b";\\__skh traps"
        # A function called under `set -T` has the DEBUG trap until it calls another: nothing here may print for it.
        ending = self._route(link) + b'set +T;\\__sks "$@"'
        around = b"__skb=" + self._route(link).strip(b"\\ ") + b"\n"
        return around + super().functions(link) + b"__skg() { " + begin + b"; }\n__ske() { " + ending + b"; }\n"

    def checkpoint(self, link: Link) -> bytes:
        traps = b"\\__skg;" + self._route(link) + b"trap -p;"
        return self.watch(link) + traps + b'\\__skk "$-" "$@"\n'

    def _exit_action(self, link: Link) -> bytes:
        # ERR, DEBUG and RETURN traps can be seen outside of functions only; and no reserved word: it may be aliased.
        # One command, for what ends the shell in a function leaves stderr to the command's: `set -x` shows one line.
        steps = b'\\__skg;"$__skb" trap -p;\\__ske "$-" "$@"'
        return b'${__skb:+"$__skb"} \\eval ' + quote(steps) + b" >" + link.control + b" 2>/dev/null"

    def _options_back(self) -> bytes:
        return super()._options_back() + b"case $1 in *T*)\\set -T;;esac;case $1 in *E*)\\set -E;;esac;"

    def _clear_obstacles(self) -> bytes:
        # In posix mode `unset` is found before a function of that name; an assignment is no command at all.
        names = b" ".join((*_WATCHED, b"unset", b"trap", b"set", b"return", b"shift", b"enable", b"cd"))
        return b"POSIXLY_CORRECT=1;\\unset -f " + names + b";\\unset POSIXLY_CORRECT\n\\enable " + names + b"\n"

    def _state_commands(self, link: Link) -> list[bytes]:
        route = self._route(link).replace(b"\\", b"\\\\")
        words = rb"\\(?=(?:set|umask|ulimit|shopt|declare|alias|shift)\b)"
        quiet, _, *sections = (re.sub(words, route, command) for command in super()._state_commands(link))
        return [quiet, *sections]  # the record's beginning is printed by `__skg`

    def _sections(self, link: Link) -> list[tuple[bytes, bytes]]:
        report = self._report(link)
        return [
            (b"flags", report + b" '%s' \"$1\""),
            (b"workdir", report + b" '%s' \"${PWD-}\""),
            (b"oldpwd", report + b" '%s' \"${OLDPWD-}\""),
            (b"umask", b"\\umask"),
            (b"limits", b"\\ulimit -S -a"),
            (b"variables", b"\\declare -p"),
            (b"functions", b"\\declare -f"),
            (b"aliases", b"\\alias -p"),
            (b"arguments", b"\\shift;" + report + b" ' %q' $# \"$@\""),
        ]

    def _print_arguments(self, link: Link) -> list[bytes]:
        return []  # `printf %q` has printed them

    def restore(self, link: Link, checkpoint: Checkpoint, environ: Collection[str]) -> bytes:
        # `shopt` comes before the functions: one written with extglob on is else a syntax error.
        names = _listed(rb"BASHOPTS", checkpoint)
        shopt = b"\\shopt -u ${BASHOPTS//:/ };\\shopt -s " + b" ".join(names) + b"\n"
        return shopt + super().restore(link, checkpoint, environ)

    def _restore_options(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        # BASHOPTS and SHELLOPTS say in two lines what `shopt -p` and `set +o` say in a hundred, a write(2) each.
        names = [name for name in _listed(rb"SHELLOPTS", checkpoint) if not name.endswith(STARTING_OPTIONS)]
        yield b"\\set +o braceexpand +o hashall +o interactive-comments"
        yield b"\\set " + b" ".join(b"-o " + name for name in names) if names else b":"

    def _restore_variables(self, checkpoint: Checkpoint, environ: Collection[str]) -> Iterator[bytes]:
        statements = [s for s in split_statements(checkpoint["variables"]) if not _OWN.match(s)]
        names = {match.group(2) for s in statements if (match := _DECLARED.match(s))}
        yield from unset_missing(environ, names)
        inherited = {name.encode("utf-8", "surrogateescape") for name in environ}
        for statement in statements:
            yield statement
            match = _DECLARED.match(statement)
            if match and match.group(2) in inherited and b"x" not in match.group(1):
                yield b"declare +x " + match.group(2)

    def _further_functions(self, link: Link) -> list[bytes]:
        return []

    def _guard(self, statement: bytes) -> bytes:
        return statement  # no error in a script ends bash, unless it is in posix mode

    def _restore_functions(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        yield checkpoint["functions"]

    def _restore_arguments(self, checkpoint: Checkpoint) -> bytes:
        count, _, words = checkpoint["arguments"].strip(b" ").partition(b" ")
        return b"\\set -- " + words if count.isdigit() and words else b"\\set --"

    def _restore_flags(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        traced = b"".join(flag for flag in (b"T", b"E") if flag in checkpoint["flags"])
        yield b"\\set -" + traced if traced else b":"
        yield from super()._restore_flags(checkpoint)

    def _restore_traps(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        # A DEBUG trap may have printed among them.
        yield from (trap for trap in super()._restore_traps(checkpoint) if trap.startswith(b"\\trap -- "))

    def _arrange_variable(self, link: Link, number: bytes, name: bytes, value: str | None) -> Iterator[bytes]:
        yield b"__skv%b=$(\\builtin declare -p %b;\\builtin true)" % (number, name)
        change = list(super()._arrange_variable(link, number, name, value))[-1]
        yield b"\\builtin " + change.removeprefix(b"\\")

    def _settle_variable(self, link: Link, number: bytes, name: bytes) -> Iterator[bytes]:
        yield b'\\builtin unset %b&&\\builtin eval "$__skv%b"' % (name, number)

    def _read_text(self, path: bytes) -> bytes:
        return b"__skc=$(<" + quote(path) + b");"


def _listed(name: bytes, checkpoint: Checkpoint) -> list[bytes]:
    """Return the colon-separated list that bash keeps in one of its own variables."""
    match = re.search(rb"^declare -\S+ " + name + rb'="([^"]*)"$', checkpoint["variables"], re.MULTILINE)
    return match.group(1).split(b":") if match else []
