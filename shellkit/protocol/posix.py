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
from typing import ClassVar

from .base import Call, Dialect, Endpoints, Link
from .limits import FEWEST_DESCRIPTORS, limit_commands
from .quoting import quote
from .state import Checkpoint, split_statements

__all__ = ["OWN_VARIABLES", "PREFIX", "TRANSIENT", "PosixDialect", "unset_missing"]

#: Everything that shellkit defines inside a shell starts with this.
PREFIX = b"__sk"

#: The wrapper's variables that mean nothing in another shell; the others undo what held for one command.
TRANSIENT = frozenset(PREFIX + letter for letter in (b"a", b"c", b"f", b"l", b"n", b"p", b"q", b"r", b"z"))

_NAME = re.compile(rb"(?:(?:export|readonly|declare|typeset)\s+(?:-\S+\s+)*)?([A-Za-z_][A-Za-z0-9_]*)(?:=|$)")

#: Variables that describe the shell itself; giving them back would be wrong or refused.
OWN_VARIABLES = frozenset(
    b"_ PWD OLDPWD PPID SHLVL LINENO RANDOM SECONDS UID EUID GID EGID FUNCNAME POSIXLY_CORRECT SHELLKIT_SESSION".split()
)

#: Text that may define a function or run text from elsewhere that does.
_DEFINING = re.compile(rb"\(\s*\)|\b(?:function|eval|source|autoload|trap|exec)\b|(?:^|[\s;&|(])\.\s", re.MULTILINE)
_FUNCTION = re.compile(rb"^(?:function )?(\w+) ?\(\)", re.MULTILINE)


class PosixDialect(Dialect):
    """Plain `sh`, and what the other POSIX shells have in common with it."""

    family = "sh"
    not_restored = "functions"
    #: The word that reaches a builtin past a user's function of that name. A function may hide the word itself.
    route = b"command"
    watched = frozenset({b"command"})
    #: Signals that end the shell without its EXIT trap (dash, zsh), or after it with another wait status than
    #: theirs (ksh93, mksh). The wrapper traps them, prints the state and lets the signal have its way.
    fatal_signals: ClassVar[tuple[bytes, ...]] = (b"HUP", b"INT", b"TERM")

    # -- lines -----------------------------------------------------------------------------------------

    def prelude(self, link: Link, workdir: bytes) -> bytes:
        enter = b"\\cd -- " + quote(workdir) + b' && \\unset OLDPWD\n\\__skt "$?"\n'
        traps = self._interrupt_trap(link) + b"\n"
        if link.keeps_state:
            traps += self._exit_trap(link) + b"\n" + b"".join(self._signal_traps())
        return self.functions(link) + traps + enter

    def functions(self, link: Link) -> bytes:
        lines = [
            b'__skr() { return "$1"; }',
            b"__skt() { __skc= __skq=$1;" + self._trailer(link, self._report(link)) + b"; }",
            *self._further_functions(link),
        ]
        if link.keeps_state:
            # The name comes from outside: the function's own text, printed among the state, must begin no section.
            head = self._print(link, b"'\n#" + link.token + b":'\"$1\"'\n'")
            lines += [
                b"__skh() { " + head + b"; }",
                b"__sks() { " + b"\n".join(self._state_commands(link)) + b"\n}",
                b'__skk() { \\__sks "$@";' + self._options_back() + b" }",
            ]
            if self.fatal_signals:
                end = self._special(link) + b"shift;" + self._before_dying(link) + self._die(link)
                lines.append(b"__skd() { __skz=$1;" + end + b"; }")
        return b"\n".join(lines) + b"\n"

    def wrapper(self, link: Link, endpoints: Endpoints) -> bytes:
        run = self._eval(link) + b' "$__skc"' + self._redirections(endpoints)
        return run + b";__skq=$? __skc=;" + self._trailer(link, self._quick_report(link))

    def line(self, link: Link, call: Call, *, install_wrapper: bool) -> bytes:
        line = self._set_text(call) + self._set_exit_code(call) + self._outer_eval(link) + b' "$__skl"\n'
        return b"__skl=" + quote(self.wrapper(link, call.endpoints)) + b";" + line if install_wrapper else line

    def last_line(self, link: Link, call: Call) -> bytes:
        endpoints = call.endpoints
        merge = b" 2>&1" if endpoints.stderr is None else b" 2>" + quote(endpoints.stderr)
        redirect = self._exec(link) + b" >" + quote(endpoints.stdout) + merge + b";"
        run = self._outer_eval(link) + b' "$__skc" <' + quote(endpoints.stdin)
        return self._set_text(call) + redirect + run + b"\n"

    def arrange(self, link: Link, workdir: bytes | None, env: Mapping[str, str | None]) -> bytes:
        steps = [self._unset(link) + b" __skd __sko"]
        for number, (name, value) in enumerate(env.items()):
            steps += self._arrange_variable(link, b"%d" % number, name.encode(), value)
        if workdir is not None:
            steps.append(b"__skd=${PWD-} __sko=${OLDPWD-}")
            steps.append(self._cd(link) + b" " + quote(workdir) + b" >/dev/null")
        return self._guarded(link, b"&&".join(steps))

    def settle(self, link: Link, workdir: bytes | None, env: Collection[str]) -> bytes:
        steps: list[bytes] = []
        for number, name in enumerate(env):
            steps += self._settle_variable(link, b"%d" % number, name.encode())
        if workdir is not None:
            steps.append(self._cd(link) + b" " + quote(workdir) + b" >/dev/null&&OLDPWD=${__sko-${OLDPWD-}}")
        return self._guarded(link, b";".join(steps))

    def checkpoint(self, link: Link) -> bytes:
        return b'\\__skk "$-" "$@"\n'

    def recover(self, link: Link, *, forcibly: bool) -> bytes:
        # If the text is still there, the shell gave the whole line up: bash does at `exit 1 2` and `${a[1/0]}`, for
        # which `bash -c` has the code 1. Otherwise only the report is missing.
        code = b"__skz=${__skc:+1};__skq=${__skz:-$__skq} __skc=\n"
        clear = self._clear_obstacles() if forcibly else b""
        return code + clear + self.functions(link) + self.watch(link) + b'\\__skt "$__skq"\n'

    def watch(self, link: Link) -> bytes:
        # `type` says "command is a shell function" in dash, "command is a function" in busybox.
        # `printf` is bare: the way round functions is what may be closed.
        return b"case $(\\type %b) in *function*)\\printf '%%s\\n' %b;;esac\n" % (self.route, self.route)

    def may_shadow(self, text: bytes) -> bool:
        # The search takes 50 ms a megabyte, the question 0.1 ms.
        return len(text) > self.longest_inline or _DEFINING.search(text) is not None

    def shadowing(self, checkpoint: Checkpoint) -> frozenset[bytes]:
        return self.watched.intersection(_FUNCTION.findall(checkpoint["functions"]))

    def why_unusable(self, checkpoint: Checkpoint) -> str:
        if b"r" in checkpoint["flags"]:
            return "it is restricted (set -r), and refuses the redirections that every command needs"
        for limit in limit_commands(checkpoint["limits"], fewest=0):
            words = limit.split()
            if words[2] == b"-n" and words[3].isdigit() and int(words[3]) < FEWEST_DESCRIPTORS:
                return f"it may open only {int(words[3])} descriptors (ulimit -n), too few for a command"
        return ""

    def run_script(self, link: Link, path: bytes) -> bytes:
        return b"\\. " + quote(path) + b" >'/dev/null' 2>&1\n" + self.watch(link) + b"\\__skt '0'\n"

    def in_band_prelude(self, workdir: bytes, marker: bytes) -> bytes:
        functions = b'__skr() { return "$1"; }\n'
        return functions + b"\\cd -- " + quote(workdir) + b";" + self._in_band_report(marker)

    def in_band_line(self, text: bytes, previous_exit_code: int, marker: bytes) -> bytes:
        before = b"\\__skr %d&&__skr=;" % previous_exit_code if previous_exit_code else b""
        run = b"\\" + self.route + b' \\eval "$__skc" </dev/null;'
        return b"__skc=" + self._quote(text) + b";" + before + run + self._in_band_report(marker)

    def _in_band_report(self, marker: bytes) -> bytes:
        words = b"\\printf '%s\\0' \"" + marker
        return b"__skq=$?;" + words + b' $__skq ${PWD-}";' + words + b'" >&2\n'

    # -- parts a shell may say differently -------------------------------------------------------------

    def _route(self, link: Link) -> bytes:
        return b"\\" if self.route in link.shadowed else b"\\" + self.route + b" \\"

    def _special(self, link: Link) -> bytes:
        """What comes before a special builtin, which no function hides (POSIX 2.9.1.4)."""
        return b"\\"

    def _eval(self, link: Link) -> bytes:
        return self._route(link) + b"eval"

    def _outer_eval(self, link: Link) -> bytes:
        return b"\\eval"

    def _exec(self, link: Link) -> bytes:
        return b"\\exec"

    def _cd(self, link: Link) -> bytes:
        return self._route(link) + b"cd --"

    def _unset(self, link: Link) -> bytes:
        return self._special(link) + b"unset"

    def _report(self, link: Link) -> bytes:
        return self._route(link) + b"printf"

    def _quick_report(self, link: Link) -> bytes:
        return self._report(link)

    def _clear_obstacles(self) -> bytes:
        return b"\\unset -f command printf cd 2>/dev/null\n"

    def _interrupt_trap(self, link: Link) -> bytes:
        return b"\\trap '{ \\unset -f exit __sk;\\exit 130; } 2>/dev/null' %d" % link.interrupt

    def _exit_trap(self, link: Link) -> bytes:
        return b"\\trap " + quote(self._exit_action(link)) + b" EXIT"

    def _exit_action(self, link: Link) -> bytes:
        return b'{ \\__sks "$-" "$@"; } 2>/dev/null >' + quote(link.control)

    def _signal_traps(self) -> Iterator[bytes]:
        for name in self.fatal_signals:
            yield b'\\trap \'\\__skd %b "$-" "$@"\' %b\n' % (name, name)

    def _before_dying(self, link: Link) -> bytes:
        return b'\\__sks "$@" 2>/dev/null >' + quote(link.control) + b";" + self._special(link) + b"trap - EXIT;"

    def _die(self, link: Link) -> bytes:
        return self._special(link) + b'trap - "$__skz";' + self._route(link) + b'kill -"$__skz" "$$"'

    def _further_functions(self, link: Link) -> list[bytes]:
        """Functions that other lines of this dialect call."""
        value = b'case $2 in s)\\eval "$1=\\$3";;esac;'
        return [b'__skb() { \\unset "$1";' + value + b'case "\n$4" in *"\nexport $1="*)\\export "$1";;esac; }']

    def _trailer(self, link: Link, report: bytes) -> bytes:
        return report + b" '%s\\0' " + b'"' + link.token + b' E $__skq ${PWD-}"'

    def _options_back(self) -> bytes:
        # `__sks` switches -e, -v and -x off to print; the function gives back what "$-" had.
        return b"".join(b"case $1 in *%b*) \\set -%b;;esac;" % (flag, flag) for flag in (b"v", b"x", b"e"))

    # -- printing state --------------------------------------------------------------------------------

    def _state_commands(self, link: Link) -> list[bytes]:
        """The body of the function that prints the state; "$1" is "$-", the rest the user's arguments."""
        commands = [b"\\set +exv", self._print(link, quote(link.token + b" S "))]
        for name, command in self._sections(link):
            commands += [b"\\__skh " + name, command]
        return [*commands, *self._print_arguments(link), self._end_record(link)]

    def _sections(self, link: Link) -> list[tuple[bytes, bytes]]:
        return [
            (b"flags", self._print(link, b'"$1"')),
            (b"workdir", self._print(link, b'"${PWD-}"')),
            (b"oldpwd", self._print(link, b'"${OLDPWD-}"')),
            (b"umask", self._route(link) + b"umask"),
            (b"limits", self._route(link) + b"ulimit -S -a"),
            (b"variables", self._special(link) + b"set"),
            (b"exported", self._special(link) + b"export -p"),
            (b"readonly", self._special(link) + b"readonly -p"),
            (b"functions", b":"),
            (b"aliases", self._route(link) + b"alias"),
            (b"traps", self._special(link) + b"trap"),
            (b"options", self._special(link) + b"set +o"),
        ]

    def _print_arguments(self, link: Link) -> list[bytes]:
        """Each argument has a section of its own: it may hold whatever else could stand between two."""
        say = b'\\__skh "argument$__skn";' + self._print(link, b'"$__ska"')
        return [self._special(link) + b"shift", b'__skn=0;for __ska in "$@";do __skn=$((__skn+1));' + say + b";done"]

    def _print(self, link: Link, *parts: bytes) -> bytes:
        """Return a command that prints one word, which `parts` make up, and nothing after it."""
        return self._report(link) + b" '%s' " + b"".join(parts)

    def _end_record(self, link: Link) -> bytes:
        return self._report(link) + b" '\\0'"

    # -- restoring state -------------------------------------------------------------------------------

    def restore(self, link: Link, checkpoint: Checkpoint, environ: Collection[str]) -> bytes:
        script = [
            b"\\cd -- " + quote(checkpoint.workdir) + b" || :" if checkpoint.workdir else b":",
            b"\\umask " + checkpoint["umask"].strip(),
            *map(self._guard, limit_commands(checkpoint["limits"])),
            *self._restore_variables(checkpoint, environ),
            *self._restore_functions(checkpoint),
            self.functions(link).rstrip(b"\n"),  # the old shell's bear its token
            *map(self._guard, self._restore_aliases(checkpoint)),
            b"OLDPWD=" + quote(checkpoint["oldpwd"]) if checkpoint["oldpwd"] else b":",
            self._restore_arguments(checkpoint),
            *map(self._guard, self._restore_options(checkpoint)),
            *map(self._guard, self._restore_traps(checkpoint)),
            *map(self._guard, self._restore_flags(checkpoint)),
        ]
        return b"\n".join(script) + b"\n"

    def _guard(self, statement: bytes) -> bytes:
        """Return a statement as one that, if the shell refuses it, costs nothing but itself."""
        return b"\\command \\eval " + quote(statement)

    def _restore_variables(self, checkpoint: Checkpoint, environ: Collection[str]) -> Iterator[bytes]:
        values = dict(_named(checkpoint["variables"]))
        exported = [name for name, _ in _named(checkpoint["exported"])]
        yield from unset_missing(environ, exported)  # those without export as well: nothing else takes it back
        yield from map(self._guard, values.values())
        yield from (self._guard(b"\\export " + name) for name in exported)
        yield from (self._guard(b"\\readonly " + name) for name, _ in _named(checkpoint["readonly"]))

    def _restore_functions(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        yield checkpoint["functions"]

    def _restore_aliases(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        yield from (b"\\alias " + line.removeprefix(b"alias ") for line in split_statements(checkpoint["aliases"]))

    def _restore_arguments(self, checkpoint: Checkpoint) -> bytes:
        words: list[bytes] = []
        while (name := f"argument{len(words) + 1}") in checkpoint.sections:
            words.append(quote(checkpoint[name]))
        return b" ".join([b"\\set --", *words])

    def _restore_options(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        for line in checkpoint["options"].splitlines():
            words = line.split()
            if len(words) == 3 and words[0] == b"set" and not words[2].endswith(STARTING_OPTIONS):
                yield b"\\" + line

    def _restore_flags(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        # Last, for they would make the script noisy, or end it.
        flags = checkpoint["flags"]
        wanted = b"".join(flag for flag in (b"v", b"x", b"e") if flag in flags)
        if wanted:
            yield b"\\set -" + wanted

    def _restore_traps(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        for statement in split_statements(checkpoint["traps"]):
            if PREFIX not in statement:
                yield b"\\" + statement

    # -- what holds for one command --------------------------------------------------------------------

    def _guarded(self, link: Link, steps: bytes) -> bytes:
        # Before `&&` neither errexit nor the ERR trap can fire. No reserved word: a user's alias may hide it.
        run = self._eval(link) + b" " + quote(steps) + b" 2>'/dev/null'" if steps else b"\\:"
        return run + b"&&\\__skt '0'||\\__skt '1'\n"

    def _arrange_variable(self, link: Link, number: bytes, name: bytes, value: str | None) -> Iterator[bytes]:
        yield b"__skv%b=${%b-} __skw%b=${%b+s}" % (number, name, number, name)
        yield b"__skx%b=$(\\export -p)" % number
        if value is None:
            yield self._special(link) + b"unset " + name
        else:
            yield self._special(link) + b"export " + name + b"=" + quote(value.encode("utf-8", "surrogateescape"))

    def _settle_variable(self, link: Link, number: bytes, name: bytes) -> Iterator[bytes]:
        yield b'\\__skb %b "$__skw%b" "$__skv%b" "$__skx%b"' % (name, number, number, number)

    # -- small parts -----------------------------------------------------------------------------------

    def _set_exit_code(self, call: Call) -> bytes:
        return b"\\__skr %d&&__skr=;" % call.previous_exit_code if call.previous_exit_code else b""

    def _set_text(self, call: Call) -> bytes:
        return b"__skc=" + self._quote(call.text) + b";" if call.path is None else self._read_text(call.path)

    def _quote(self, text: bytes) -> bytes:
        """Quote text that may hold newlines."""
        return quote(text)

    def _read_text(self, path: bytes) -> bytes:
        # The final newlines that a substitution drops end no construct: `eval` treats end-of-text alike.
        return b"__skc=$(\\command \\cat " + quote(path) + b");"

    def _redirections(self, endpoints: Endpoints) -> bytes:
        merge = b" 2>&1" if endpoints.stderr is None else b" 2>" + endpoints.stderr
        return b" <" + endpoints.stdin + b" >" + endpoints.stdout + merge


#: Options that are given when a shell starts, or that must not hold while a script restores the rest.
STARTING_OPTIONS = (
    b"errexit",
    b"xtrace",
    b"verbose",
    b"exec",
    b"interactive",
    b"stdin",
    b"monitor",
    b"privileged",
    b"onecmd",
)


def _named(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (name, statement) for the assignments in what a shell printed, its own variables left out."""
    for statement in split_statements(text):
        match = _NAME.match(statement)
        if match and match.group(1) not in OWN_VARIABLES and match.group(1) not in TRANSIENT:
            yield match.group(1), statement


def unset_missing(
    environ: Collection[str], present: Collection[bytes], own: Collection[bytes] = OWN_VARIABLES
) -> Iterator[bytes]:
    """Yield the commands that unset what a new shell inherits and the old one no longer had."""
    for name in environ:
        encoded = name.encode("utf-8", "surrogateescape")
        if encoded not in present and encoded not in own and encoded.isascii() and name.isidentifier():
            yield b"\\unset " + encoded
