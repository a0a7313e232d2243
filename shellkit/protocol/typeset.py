"""What the shells that descend from ksh share: `typeset -p` prints every variable as a command that makes it again.

Used by `ksh`, `mksh` and `zsh`. Each names the variables that are its own, and how a function is kept from
making the restored variables local.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from .base import Call, Endpoints, Link
from .command import MAX_COMMAND_BYTES
from .posix import OWN_VARIABLES, TRANSIENT, PosixDialect, unset_missing
from .quoting import quote
from .state import Checkpoint, split_statements

__all__ = ["RetracingDialect", "TypesetDialect"]

#: `typeset -i 16 x=16#ff`, `export -T PATH path=( /bin )`, `set -A xs`, `xs[0]=1`, `x=1`.
_DECLARED = re.compile(
    rb"(?:(?:typeset|export|readonly|set|local|declare|integer|float)\s+(?:[-+]\S+\s+(?:\d+\s+)?)*)?"
    rb"([A-Za-z_.][\w.]*)(?=[\s=\[]|$)"
)
_EXPORTED = re.compile(rb"export |(?:\\)?typeset (?:[-+]\S+ (?:\d+ )?)*-[a-zA-Z]*x")
_OPTION = re.compile(rb"(\S+)\s+(on|off)(?:\s+|$)", re.MULTILINE)


class TypesetDialect(PosixDialect):
    """The part of `ksh93`, `mksh` and `zsh` that is the same."""

    not_restored = ""
    #: Variables that the shell sets itself.
    own_variables: frozenset[bytes] = OWN_VARIABLES
    #: Options that belong to how the shell was started, or are no options of a script.
    own_options: frozenset[bytes] = frozenset()

    #: Bytes of text above which a command is read from its file by `.`, which puts that file into messages.
    longest_eval = MAX_COMMAND_BYTES

    def _typeset(self, link: Link) -> bytes:
        return self._route(link) + b"typeset"

    def _statements(self, text: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield (name, statement) for the variables that a new shell shall have."""
        for statement in split_statements(text):
            match = _DECLARED.match(statement)
            if match and match.group(1) not in self.own_variables | TRANSIENT and not match.group(1).startswith(b"."):
                yield match.group(1), statement

    def _restore_variables(self, checkpoint: Checkpoint, environ: Collection[str]) -> Iterator[bytes]:
        statements = list(self._statements(checkpoint["variables"]))
        exported = {name for name, statement in statements if _EXPORTED.match(statement)}
        yield from unset_missing(environ, exported, self.own_variables)
        yield from (self._guard(statement) for _, statement in statements)

    def _restore_options(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        # ksh93 changes `braceexpand` and `letoctal` with `posix`, mksh as well: that one first.
        options = sorted(_OPTION.findall(checkpoint["options"]), key=lambda option: option[0] not in (b"posix", b"sh"))
        for name, value in options:
            if name not in self.own_options:
                yield b"\\set %bo %b" % (b"-" if value == b"on" else b"+", name)

    def _sections(self, link: Link) -> list[tuple[bytes, bytes]]:
        replaced = {
            b"variables": self._typeset(link) + b" -p",
            b"functions": self._typeset(link) + b" -f",
            b"options": self._special(link) + b"set -o",
        }
        sections = super()._sections(link)
        return [(name, replaced.get(name, say)) for name, say in sections if name not in (b"exported", b"readonly")]

    def _further_functions(self, link: Link) -> list[bytes]:
        return []

    def _arrange_variable(self, link: Link, number: bytes, name: bytes, value: str | None) -> Iterator[bytes]:
        yield b"__skv%b=$(%b -p %b 2>'/dev/null'||\\:)" % (number, self._typeset(link), name)
        yield list(super()._arrange_variable(link, number, name, value))[-1]

    def _settle_variable(self, link: Link, number: bytes, name: bytes) -> Iterator[bytes]:
        special = self._special(link)
        yield b'%bunset %b&&%beval "$__skv%b"' % (special, name, special, number)

    def _set_text(self, call: Call) -> bytes:
        if call.path is None or len(call.text) <= self.longest_eval:
            return super()._set_text(call)
        return b"__skc=" + quote(b"\\. " + quote(call.path)) + b";"

    def _read_text(self, path: bytes) -> bytes:
        return b'__skc="$(<' + quote(path) + b')";'


class RetracingDialect(TypesetDialect):
    """A shell whose `set -x` goes on writing to what standard error was before the command was redirected.

    mksh keeps the descriptor of the moment when `set -x` ran (`change_xtrace`, misc.c), zsh the one outside of the
    redirection (`execcmd_exec`, exec.c). So tracing stops after each command and begins anew within the next.
    """

    def wrapper(self, link: Link, endpoints: Endpoints) -> bytes:
        run = self._eval(link) + b' "${__skp-}$__skc"' + self._redirections(endpoints)
        return run + b';\\__skt "$?" "$-"'

    def _trailer(self, link: Link, report: bytes) -> bytes:
        return self._note_tracing(link) + super()._trailer(link, report)

    def _note_tracing(self, link: Link) -> bytes:
        # `set` would reset `$?`, so the prefix sets it again; `&&` for errexit.
        begin = self._special(link).replace(b"\\", b"\\\\") + b"set -x;"
        again = b'case ${2-} in *x*)__skp="%b";case $1 in 0);;*)__skp="$__skp\\\\__skr $1&&:;";;esac;;?*)__skp=;;esac;'
        return again % begin

    def checkpoint(self, link: Link) -> bytes:
        return b'\\__skk "$-${__skp:+x}" "$@"\n'

    def _options_back(self) -> bytes:
        return super()._options_back().replace(b"case $1 in *x*) \\set -x;;esac;", b"")

    def _restore_flags(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        flags = checkpoint["flags"]
        if b"x" in flags:
            yield b"__skp='\\set -x;'"
        sections = {**checkpoint.sections, "flags": flags.replace(b"x", b"")}
        yield from super()._restore_flags(Checkpoint(self.family, sections))
