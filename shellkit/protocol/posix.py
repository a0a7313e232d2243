"""The wire protocol of POSIX shells: what all of them share, and plain `sh`.

Why the line has this shape (each point was tried on bash 5.2, dash 0.5.12, busybox 1.35, zsh 5.9,
ksh93u+m and mksh R59; docs/protocol.md tells the whole story):

- `eval` runs as a *simple command* with redirections, so whatever the command does to its descriptors is
  undone afterwards. A brace group could be broken out of, a function would make `declare` local.
- The command's text stands in a variable, so it is data: no quote, brace or here-document can reach the
  wrapper. The part that never changes stands in a second variable: bash reads a pipe one byte per
  read(2), about 0.5 us each, so a short line is a fast line.
- The shell's own standard output *is* the control channel, standard error is /dev/null. Commands get
  theirs by redirection; the shell keeps the originals above 9 and close-on-exec, so no child sees them,
  and trace output about the wrapper goes nowhere.
- `command eval` keeps a syntax error from ending a shell that treats `eval` as a special builtin (POSIX
  2.8.1).
- The assignments in a line reset `$?`, so the line sets it again before the command. The `&&` keeps errexit
  and the ERR trap from firing on that, and the trailer itself always succeeds for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from .base import Call, Dialect, Endpoints, Link
from .quoting import quote
from .state import Checkpoint, split_statements

__all__ = ["PREFIX", "PosixDialect", "unset_missing"]

#: Everything that shellkit defines inside a shell starts with this.
PREFIX = b"__sk"

#: The wrapper's variables that mean nothing in another shell; the others undo what held for one command.
TRANSIENT = frozenset(PREFIX + letter for letter in (b"c", b"l", b"q", b"r"))

_NAME = re.compile(rb"(?:(?:export|readonly|declare|typeset)\s+(?:-\S+\s+)*)?([A-Za-z_][A-Za-z0-9_]*)(?:=|$)")

#: Variables that describe the shell itself; giving them back would be wrong or refused.
_OWN_VARIABLES = frozenset(
    b"_ PWD OLDPWD PPID SHLVL LINENO RANDOM SECONDS UID EUID GID EGID POSIXLY_CORRECT".split()
)


class PosixDialect(Dialect):
    """Plain `sh`, and what the other POSIX shells have in common with it."""

    family = "sh"
    not_restored = "functions"

    # -- lines -----------------------------------------------------------------------------------------

    def prelude(self, link: Link, workdir: bytes) -> bytes:
        enter = b"\\cd -- " + quote(workdir) + b" && \\unset OLDPWD\n\\__skt \"$?\"\n"
        traps = self._interrupt_trap(link) + b"\n"
        if link.keeps_state:
            traps += self._exit_trap(link) + b"\n"
        return self.functions(link) + traps + enter

    def functions(self, link: Link) -> bytes:
        lines = [
            b'__skr() { return "$1"; }',
            b"__skt() { __skc= __skq=$1;" + self._trailer(link, self._report(link)) + b"; }",
        ]
        if link.keeps_state:
            lines += [
                b"__sks() { " + b"\n".join(self._state_commands(link)) + b"\n}",
                b'__skk() { \\__sks "$@";' + self._options_back() + b" }",
            ]
        return b"\n".join(lines) + b"\n"

    def wrapper(self, link: Link, endpoints: Endpoints) -> bytes:
        run = self._eval(link) + b' "$__skc"' + self._redirections(endpoints)
        return run + b";__skq=$?;" + self._trailer(link, self._quick_report(link))

    def line(self, link: Link, call: Call, *, install_wrapper: bool) -> bytes:
        code = call.previous_exit_code
        before = b"\\__skr %d&&__skr=;" % code if code else b""
        line = self._set_text(call) + before + self._outer_eval(link) + b' "$__skl"\n'
        return b"__skl=" + quote(self.wrapper(link, call.endpoints)) + b";" + line if install_wrapper else line

    def last_line(self, link: Link, call: Call) -> bytes:
        endpoints = call.endpoints
        merge = b" 2>&1" if endpoints.stderr is None else b" 2>" + quote(endpoints.stderr)
        redirect = b"\\exec >" + quote(endpoints.stdout) + merge + b";"
        return self._set_text(call) + redirect + b'\\eval "$__skc" <' + quote(endpoints.stdin) + b"\n"

    def arrange(self, link: Link, workdir: bytes | None, env: Mapping[str, str | None]) -> bytes:
        steps = [b"\\unset __skd __sko"]
        for number, (name, value) in enumerate(env.items()):
            steps += self._arrange_variable(b"%d" % number, name.encode(), value)
        if workdir is not None:
            steps.append(b'__skd=${PWD-} __sko=${OLDPWD-}')
            steps.append(self._cd(link) + b" " + quote(workdir) + b" >/dev/null")
        return self._guarded(link, b"&&".join(steps))

    def settle(self, link: Link, workdir: bytes | None, env: Collection[str]) -> bytes:
        steps = []
        for number, name in enumerate(env):
            steps += self._settle_variable(b"%d" % number, name.encode())
        if workdir is not None:
            steps.append(self._cd(link) + b" " + quote(workdir) + b" >/dev/null&&OLDPWD=${__sko-${OLDPWD-}}")
        return self._guarded(link, b"&&".join(steps))

    def checkpoint(self, link: Link) -> bytes:
        return b'\\__skk "$-" "$@"\n'

    def recover(self, link: Link, *, forcibly: bool) -> bytes:
        clear = self._clear_obstacles() if forcibly else b""
        return clear + self.functions(link) + self.watch(link) + b'\\__skt "$__skq"\n'

    def watch(self, link: Link) -> bytes:
        return b""

    def may_shadow(self, text: bytes) -> bool:
        return False

    def run_script(self, link: Link, path: bytes) -> bytes:
        return b"\\. " + quote(path) + b" >/dev/null 2>&1\n\\__skt 0\n"

    # -- parts a shell may say differently -------------------------------------------------------------

    def _eval(self, link: Link) -> bytes:
        return b"\\command \\eval"

    def _outer_eval(self, link: Link) -> bytes:
        return b"\\eval"

    def _cd(self, link: Link) -> bytes:
        return b"\\command \\cd --"

    def _report(self, link: Link) -> bytes:
        return b"\\printf"

    def _quick_report(self, link: Link) -> bytes:
        return self._report(link)

    def _clear_obstacles(self) -> bytes:
        return b"\\unset -f command printf cd 2>/dev/null\n"

    def _interrupt_trap(self, link: Link) -> bytes:
        return b"\\trap '{ \\unset -f exit;\\exit 130; } 2>/dev/null' %d" % link.interrupt

    def _exit_trap(self, link: Link) -> bytes:
        return b"\\trap " + quote(self._exit_action(link)) + b" EXIT"

    def _exit_action(self, link: Link) -> bytes:
        return b'{ \\__sks "$-" "$@"; } 2>/dev/null >' + quote(link.control)

    def _trailer(self, link: Link, report: bytes) -> bytes:
        return report + b" '%s\\0' " + b'"' + link.token + b' E $__skq ${PWD-}"'

    def _options_back(self) -> bytes:
        # `__sks` switches -e, -v and -x off to print; the function gives back what "$-" had.
        return b"".join(
            b"case $1 in *%b*) \\set -%b;;esac;" % (flag, flag) for flag in (b"v", b"x", b"e")
        )

    # -- printing state --------------------------------------------------------------------------------

    def _state_commands(self, link: Link) -> list[bytes]:
        """The body of the function that prints the state; "$1" is "$-", the rest the user's arguments."""
        report = self._report(link)

        def head(name: bytes) -> bytes:
            return report + b" '\\n#%s:%s\\n' " + link.token + b" " + name

        commands = [b"\\set +exv", report + b" '%s' '" + link.token + b" S '"]
        for name, command in self._sections(report):
            commands += [head(name), command]
        return [*commands, report + b" '\\0'"]

    def _sections(self, report: bytes) -> list[tuple[bytes, bytes]]:
        return [
            (b"flags", report + b" '%s' \"$1\""),
            (b"workdir", report + b" '%s' \"${PWD-}\""),
            (b"oldpwd", report + b" '%s' \"${OLDPWD-}\""),
            (b"umask", b"\\umask"),
            (b"limits", b"\\ulimit -S -a"),
            (b"variables", b"\\set"),
            (b"exported", b"\\export -p"),
            (b"readonly", b"\\readonly -p"),
            (b"functions", b":"),
            (b"aliases", b"\\alias"),
            (b"traps", b"\\trap"),
            (b"options", b"\\set +o"),
            (b"arguments", b"\\shift;" + report + b" '%s\\n#\\n' \"$@\""),
        ]

    # -- restoring state -------------------------------------------------------------------------------

    def restore(self, link: Link, checkpoint: Checkpoint, environ: Collection[str]) -> bytes:
        script = [
            b"\\cd -- " + quote(checkpoint.workdir) + b" || :" if checkpoint.workdir else b":",
            b"\\umask " + checkpoint["umask"].strip(),
            *_limits(checkpoint["limits"]),
            *self._restore_variables(checkpoint, environ),
            checkpoint["functions"],
            self.functions(link).rstrip(b"\n"),  # the old shell's bear its token
            *(b"\\alias " + line.removeprefix(b"alias ") for line in split_statements(checkpoint["aliases"])),
            b"OLDPWD=" + quote(checkpoint["oldpwd"]) if checkpoint["oldpwd"] else b":",
            self._restore_arguments(checkpoint),
            *self._restore_options(checkpoint),
            *self._restore_traps(checkpoint),
        ]
        return b"\n".join(script) + b"\n"

    def _restore_variables(self, checkpoint: Checkpoint, environ: Collection[str]) -> Iterator[bytes]:
        values = {name: statement for name, statement in _named(checkpoint["variables"])}
        exported = [name for name, _ in _named(checkpoint["exported"])]
        yield from unset_missing(environ, {*values, *exported})
        yield from values.values()
        yield from (b"\\export " + name for name in exported)
        yield from (b"\\readonly " + name for name, _ in _named(checkpoint["readonly"]))

    def _restore_arguments(self, checkpoint: Checkpoint) -> bytes:
        words = checkpoint["arguments"].split(b"\n#\n")[:-1]
        return b"\\set -- " + b" ".join(quote(word) for word in words) if words and words != [b""] else b":"

    def _restore_options(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        skip = (b"errexit", b"xtrace", b"verbose", b"noexec", b"interactive", b"stdin", b"monitor")
        for line in checkpoint["options"].splitlines():
            if line.startswith(b"set ") and not line.endswith(skip):
                yield b"\\" + line
        flags = checkpoint["flags"]
        wanted = b"".join(flag for flag in (b"v", b"x", b"e") if flag in flags)
        if wanted:
            yield b"\\set -" + wanted

    def _restore_traps(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        for statement in split_statements(checkpoint["traps"]):
            if PREFIX not in statement and b"\\unset -f exit;" not in statement:
                yield b"\\" + statement

    # -- what holds for one command --------------------------------------------------------------------

    def _guarded(self, link: Link, steps: bytes) -> bytes:
        # In the condition of `if` neither errexit nor the ERR trap can fire.
        run = b"{ " + steps + b"; } 2>/dev/null" if steps else b":"
        return b"if " + run + b";then \\__skt 0;else \\__skt 1;fi\n"

    def _arrange_variable(self, number: bytes, name: bytes, value: str | None) -> Iterator[bytes]:
        yield b"__skv%b=${%b-} __skw%b=${%b+s}" % (number, name, number, name)
        yield b'__skx%b= && case $(\\export -p) in *"export %b="*)__skx%b=x;;esac' % (number, name, number)
        if value is None:
            yield b"\\unset " + name
        else:
            yield b"\\export " + name + b"=" + quote(value.encode("utf-8", "surrogateescape"))

    def _settle_variable(self, number: bytes, name: bytes) -> Iterator[bytes]:
        yield b"\\unset " + name
        yield b"case $__skw%b in s)%b=$__skv%b;;esac" % (number, name, number)
        yield b"case $__skx%b in x)\\export %b;;esac" % (number, name)

    # -- small parts -----------------------------------------------------------------------------------

    def _set_text(self, call: Call) -> bytes:
        if call.path is None:
            return b"__skc=" + quote(call.text) + b";"
        return self._read_text(call.path)

    def _read_text(self, path: bytes) -> bytes:
        # The final newlines that a substitution drops end no construct: `eval` treats end-of-text alike.
        return b"__skc=$(\\command \\cat " + quote(path) + b");"

    def _redirections(self, endpoints: Endpoints) -> bytes:
        merge = b" 2>&1" if endpoints.stderr is None else b" 2>" + endpoints.stderr
        return b" <" + endpoints.stdin + b" >" + endpoints.stdout + merge


def _named(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (name, statement) for the assignments in what a shell printed, its own variables left out."""
    for statement in split_statements(text):
        match = _NAME.match(statement)
        if match and match.group(1) not in _OWN_VARIABLES and match.group(1) not in TRANSIENT:
            yield match.group(1), statement


def unset_missing(environ: Collection[str], present: Collection[bytes]) -> Iterator[bytes]:
    for name in environ:
        encoded = name.encode("utf-8", "surrogateescape")
        if encoded not in present and encoded not in _OWN_VARIABLES and encoded.isascii() and name.isidentifier():
            yield b"\\unset " + encoded


_LIMIT = re.compile(rb"\(.*?-([a-zA-Z])\)\s+(\S+)\s*$")


def _limits(text: bytes) -> Iterator[bytes]:
    """Turn the table of `ulimit -S -a` into commands; limits that cannot be set are refused quietly."""
    for line in text.splitlines():
        if (match := _LIMIT.search(line)) and match.group(1) != b"p":  # -p, the pipe size, is read-only
            yield b"\\ulimit -S -%b %b" % (match.group(1), match.group(2))
