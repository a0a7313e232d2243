"""zsh. Differences from plain `sh`: functions hide any builtin, `command` skips builtins, options change the grammar.

- The wrapper reaches builtins through `builtin`. No word of a line may be a global alias, so all are quoted.
- CSH_JUNKIE_QUOTES refuses a newline in quotes: text with one is written `$'...'`.
- The function that prints the state works under `emulate -L zsh`, after it has printed the options.
- An EXIT trap at top level is invisible inside a function, and no EXIT trap runs when errexit ends a function
  (`Src/exec.c`; tried on 5.9). So there are three ways to print before the end: the trap, which knows the positional
  parameters; the hook `zshexit_functions`, which a user's own EXIT trap does not replace; and a ZERR trap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .base import Endpoints, Link
from .posix import OWN_VARIABLES
from .quoting import quote
from .state import Checkpoint
from .typeset import RetracingDialect

__all__ = ["ZshDialect"]

_TIED_ARRAY = re.compile(rb"typeset (?:-g )?-a\w*T")
_HIDING = b"builtin|eval|printf|typeset|unset|trap|set|shift|cd|emulate|return|exit|kill|alias|umask|ulimit"


class ZshDialect(RetracingDialect):
    """zsh 5.1 and later."""

    family = "zsh"
    interrupt_signal = "SIGUSR2"  # `trap` does not know the real-time signals
    route = b"builtin"
    watched = frozenset({b"builtin"})
    own_variables = OWN_VARIABLES | frozenset(
        b"0 ARGC COLUMNS CPUTYPE FUNCNEST HISTCMD HOST KEYBOARD_HACK LINES LOGNAME MACHTYPE OSTYPE TRY_BLOCK_ERROR"
        b" TRY_BLOCK_INTERRUPT TTY TTYIDLE USERNAME VENDOR ZSH_ARGZERO ZSH_EVAL_CONTEXT ZSH_EXECUTION_STRING ZSH_NAME"
        b" ZSH_PATCHLEVEL ZSH_SUBSHELL ZSH_VERSION aliases argv builtins commands dirstack dis_aliases dis_builtins"
        b" dis_functions dis_functions_source dis_galiases dis_patchars dis_reswords dis_saliases funcfiletrace"
        b" funcsourcetrace funcstack functions functions_source functrace galiases history historywords jobdirs"
        b" jobstates jobtexts keymaps modules nameddirs options parameters patchars pipestatus prompt reswords saliases"
        b" signals status termcap terminfo userdirs usergroups widgets zsh_eval_context".split()
    )
    own_options = frozenset(
        b"errexit errreturn noexec interactive login monitor privileged restricted shinstdin singlecommand xtrace"
        b" verbose zle vi emacs norcs noglobalrcs".split()
    )

    # `eval` takes quadratic time: 0.6 s for 20,000 commands, `.` 0.04 s.
    longest_eval = 1 << 16

    _outer_eval = RetracingDialect._eval
    _special = RetracingDialect._route

    def watch(self, link: Link) -> bytes:
        return b"\\typeset +f 'builtin' 2>'/dev/null'||\\:\n"

    def checkpoint(self, link: Link) -> bytes:
        return b"\\__skp;" + self._route(link) + b'trap;\\__sks "$-${__skp:+x}" "$@"\n'

    def _clear_obstacles(self) -> bytes:
        # Assignments only: no command can be trusted.
        return (
            b"options[ksharrays]=off;options[extendedglob]=on;"
            b'functions=("${(@kv)functions[(I)^(' + _HIDING + b')]}");options[extendedglob]=off\n'
        )

    def wrapper(self, link: Link, endpoints: Endpoints) -> bytes:
        # A function cannot do that: when it returns XTRACE is what it was (`doshfunc`, exec.c).
        return super().wrapper(link, endpoints) + b";" + self._special(link) + b"set +x"

    # -- the end of the shell --------------------------------------------------------------------------

    def functions(self, link: Link) -> bytes:
        lines = super().functions(link)
        if not link.keeps_state:
            return lines
        begin = self._print(link, quote(link.token + b" S ")) + b";\\__skh toplevel"
        save = b"\\__skw"
        return lines + b"\n".join(
            [
                b"__skp() { " + begin + b"; }",
                b'__skw() { { \\__skp; \\__sks "$@"; } 2>/dev/null >' + quote(link.control) + b"; }",
                b"__ske() { " + save + b' "$@"; __skf=1; }',
                b"__skx() { if [[ -z $__skf && $ZSH_SUBSHELL == 0 ]];then " + save + b' "$-";fi; }',
                # `if`, for an `&&` that fails would meet errexit in here, and end the shell before its EXIT trap.
                b"__ski() { if [[ $1 == *e* && $2 == *shfunc* && $ZSH_SUBSHELL == 0 ]];then " + save + b' "$1";fi; }\n',
            ]
        )

    def _exit_trap(self, link: Link) -> bytes:
        hooks = b'zshexit_functions=(__skx)\n\\trap \'\\__ski "$-" "${zsh_eval_context[*]}"\' ZERR\n'
        return hooks + b'\\trap \'\\__ske "$-" "$@"\' EXIT'

    def _before_dying(self, link: Link) -> bytes:
        return b'\\__ske "$@";' + self._route(link) + b"trap - EXIT;"

    # -- state -----------------------------------------------------------------------------------------

    def _state_commands(self, link: Link) -> list[bytes]:
        route = self._route(link)
        sections = dict(self._sections(link))
        del sections[b"options"]
        commands = [
            b"\\__skh options",
            route + b"set +o",
            route + b"emulate -L zsh",
            route + b"set +exv",
        ]
        for name, command in sections.items():
            commands += [b"\\__skh " + name, command]
        return [*commands, *self._print_arguments(link), self._end_record(link)]

    def _sections(self, link: Link) -> list[tuple[bytes, bytes]]:
        aliases = self._route(link) + b"alias -L;" + self._route(link) + b"alias -L -s"
        return [(name, aliases if name == b"aliases" else say) for name, say in super()._sections(link)]

    def _print_arguments(self, link: Link) -> list[bytes]:
        return [self._route(link) + b"shift", b"\\__skh arguments", self._report(link) + b" '%s ' \"${(qq)@}\""]

    def _statements(self, text: bytes) -> Iterator[tuple[bytes, bytes]]:
        for name, statement in super()._statements(text):
            if not _TIED_ARRAY.match(statement):  # the scalar of the pair brings it back
                yield name, statement

    def _guard(self, statement: bytes) -> bytes:
        return b"\\builtin \\eval " + self._quote(statement)

    def _redirections(self, endpoints: Endpoints) -> bytes:
        merge = b" 2>&1" if endpoints.stderr is None else b" 2>" + quote(endpoints.stderr)
        return b" <" + quote(endpoints.stdin) + b" >" + quote(endpoints.stdout) + merge

    def _quote(self, text: bytes) -> bytes:
        if b"\n" not in text:
            return quote(text)
        return b"$'" + text.replace(b"\\", b"\\\\").replace(b"'", b"\\'").replace(b"\n", b"\\n") + b"'"

    def _restore_functions(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        yield self._guard(checkpoint["functions"])

    def _restore_arguments(self, checkpoint: Checkpoint) -> bytes:
        words = checkpoint["arguments"].removesuffix(b" ")
        return b"\\set -- " + words if words != b"''" else b"\\set --"

    def _restore_options(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        for line in checkpoint["options"].splitlines():
            if line.startswith(b"set ") and line.split()[-1] not in self.own_options:
                yield b"\\" + line

    def _restore_flags(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        yield from super()._restore_flags(checkpoint)
        if b"set -o errreturn" in checkpoint["options"].splitlines():
            yield b"\\set -o errreturn"

    def _restore_traps(self, checkpoint: Checkpoint) -> Iterator[bytes]:
        seen = dict.fromkeys(super()._restore_traps(checkpoint))
        at_top = Checkpoint(self.family, {"traps": checkpoint["toplevel"]})
        yield from dict.fromkeys([*super()._restore_traps(at_top), *seen])
