"""Every shell keeps the contract: dash, busybox, zsh, ksh93, mksh, and yash as a plain `sh` (contract B, C, D, F).

What a shell cannot do stands in docs/shells.md and is pinned here as `test_..._instead`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from shellkit import BlockingExecutor, LocalExecutor, ShellResult


@attrs.frozen
class Kind:
    """A shell and what is particular about it."""

    name: str
    argv: tuple[str, ...]
    syntax_error: int
    #: A syntax error, `set -u` and the like end the shell, and a new one gets its state.
    dies_of_errors: bool = False
    #: Text that makes an array `xs` of two, and text that prints it.
    array: str = ""
    prints_array: str = 'echo "${#xs[@]} ${xs[1]}"'
    keeps_functions: bool = False


BASH = Kind("bash", ("bash", "--norc", "--noprofile"), 2, array="xs=(1 '2 3')", keeps_functions=True)
DASH = Kind("dash", ("dash",), 2)
BUSYBOX = Kind("busybox", ("busybox", "sh"), 2)
YASH = Kind("yash", ("yash",), 2, dies_of_errors=True)
ZSH = Kind("zsh", ("zsh", "-f"), 1, array="xs=(1 '2 3')", prints_array='echo "${#xs} ${xs[2]}"', keeps_functions=True)
KSH = Kind("ksh93", ("ksh93",), 3, array="xs=(1 '2 3')", keeps_functions=True)
MKSH = Kind("mksh", ("mksh",), 1, dies_of_errors=True, array="set -A xs 1 '2 3'", keeps_functions=True)
KINDS = [BASH, DASH, BUSYBOX, YASH, ZSH, KSH, MKSH]


def each(*kinds: Kind) -> pytest.MarkDecorator:
    """Run a test once in each of these shells."""
    params = [pytest.param(kind, marks=pytest.mark.requires(kind.name), id=kind.name) for kind in kinds]
    return pytest.mark.parametrize("kind", params)


every = each(*KINDS)
Opens = Callable[..., BlockingExecutor]


@pytest.fixture
def shell(kind: Kind, open_shell: Opens) -> BlockingExecutor:
    """A persistent session on the shell that the test is about."""
    return open_shell(shell=kind.name)


def shown(result: ShellResult) -> tuple[int | None, str, str]:
    """Return what most tests compare."""
    return result.exit_code, result.stdout, result.stderr


def alone(kind: Kind, command: str, tmp_path: Path) -> tuple[int, str]:
    """Return what the shell's own -c makes of a command: (exit code, stdout)."""
    done = subprocess.run([*kind.argv, "-c", command], stdin=subprocess.DEVNULL, capture_output=True, cwd=tmp_path)
    return done.returncode, done.stdout.decode()


# -- B: the command is opaque -----------------------------------------------------------------------------

BROKEN = [
    "echo 'a", 'echo "a', "echo `echo a", "echo ${x", "if", "if true; then echo a", "for i in 1 2", "case x in", "{", "(",
    "echo $(echo a", "f() {", "}; x; {", "echo in; }; echo out; {", "echo )", "echo in ) ; echo out ; ( true", "done", ";;",
    "&", "| cat", "echo a |", "echo a &&", "'; echo out; '", "EOF\necho escaped\ncat <<EOF", "for",
]  # fmt: skip
WHOLE = [
    "echo hi \\", "echo a\\\nb", "echo hi # say hi", "# only a comment", "(exit 5)\n", "echo a; ", "true &", "", " \n\n",
    "cat <<E\nabc\nE", "cat <<E\nabc", "! true", "return 3", "break", "f() { return 3; }; f", "nosuch", "echo a | cat",
    "echo *nomatch*", "cd /nonexistent; echo here", "exit 300",
]  # fmt: skip


@every
@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_text_does_what_the_shells_c_option_does(kind: Kind, mode: str, open_shell: Opens, tmp_path: Path) -> None:
    """B1: unbalanced text, heredocs and comments give the exit code and output of `-c`, and the session goes on."""
    with open_shell(shell=kind.name, mode=mode) as shell:
        for text in [*BROKEN, *WHOLE]:
            result = shell.run(text)
            assert (result.exit_code, result.stdout) == alone(kind, text, tmp_path), text
            assert shown(shell.run("echo on")) == (0, "on\n", ""), text


@every
def test_a_syntax_error_has_the_shells_own_code_and_message(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: a syntax error gives the code of `-c` and a message; variables survive it even where it ends the shell."""
    shell.run("kept=1")
    result = shell.run("if")
    assert result.exit_code == kind.syntax_error
    assert result.stderr
    assert result.shell_state == ("restored" if kind.dies_of_errors else "alive")
    assert shown(shell.run("echo $kept")) == (0, "1\n", "")


@each(BASH, DASH, BUSYBOX, YASH, MKSH)
def test_lines_before_a_syntax_error_run(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: what stands before the line with the error runs."""
    result = shell.run("echo before\nif\n")
    assert (result.exit_code, result.stdout) == (kind.syntax_error, "before\n")


@each(KSH)
def test_lines_before_a_syntax_error_do_not_run_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: ksh93's eval reads all of a command before it runs any of it."""
    assert shown(shell.run("echo before\nif\n"))[:2] == (3, "")


@each(DASH, KSH)
def test_messages_count_from_the_commands_first_line(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: the shell's messages number the lines of the command, not of the session."""
    shell.run("true\n\n\n\ntrue")
    assert re.search(r"\b3\b.*nosuch", shell.run("true\n\nnosuch\n").stderr)


@each(YASH, ZSH, KSH)
def test_line_numbers_count_from_the_commands_first_line(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: `$LINENO` numbers the lines of the command, not of the session."""
    shell.run("true\n\n\n\ntrue")
    assert shown(shell.run("true\n\necho $LINENO")) == (0, "3\n", "")


@every
@pytest.mark.parametrize("size", [1_000_000, 10_000_000])
def test_a_long_command_works(kind: Kind, size: int, shell: BlockingExecutor) -> None:
    """B3: 1 MB and 10 MB of text arrive whole, quotes and newlines included."""
    # bash itself takes 0.3 s for 1 MB of text with 40,000 quotes, and quadratically more for 10.
    line = "it'\\''s a line of text\n" if size < 10_000_000 else "it  s a line of text\n"
    count = size // len(line)
    result = shell.run("v='" + line * count + "'; echo ${#v}; unset v", timeout=60)
    assert shown(result) == (0, f"{count * len(line.replace(chr(92) + chr(39) * 2, ''))}\n", "")


@every
def test_many_commands_in_one_text_run(kind: Kind, shell: BlockingExecutor) -> None:
    """B3: 40,000 commands in one text take no quadratic time (zsh's eval would)."""
    result = shell.run("x=0\n" + "x=$((x+1))\n" * 40_000 + "echo $x", timeout=20)
    assert shown(result) == (0, "40000\n", "")


HOSTILE = [
    *(f"{name}() {{ echo evil; }}" for name in ("printf", "command", "cd", "type", "kill", "umask", "print")),
    "printf() { echo evil; }; command() { echo evil; }",
    "alias printf=false command=false builtin=false eval=false cd=false print=false trap=false set=false kill=false",
    "alias if=false; alias for=false; alias do=false; alias case=false; alias '{=false'; alias '}=false'",
    "IFS=0123456789abcdefESTOK",
    "set -C -f -u -a",
    "PATH=",
    "PS4='$(echo evil >&2)'",
]


HIDDEN = [pytest.param(kind, setup, marks=pytest.mark.requires(kind.name), id=f"{kind.name}-{setup}")
    for kind in KINDS for setup in HOSTILE if (kind, "command()" in setup) != (YASH, True)]  # fmt: skip


@pytest.mark.parametrize(("kind", "setup"), HIDDEN)
def test_what_a_user_redefines_breaks_only_their_own_commands(kind: Kind, setup: str, shell: BlockingExecutor) -> None:
    """B4: hidden builtins, aliased words, IFS, PATH and options reach neither reports, env=, workdir= nor the state."""
    shell.run(setup)
    assert shown(shell.run("VV='1 2'")) == (0, "", "")
    assert shown(shell.run("/bin/sh -c 'exit 3'")) == (3, "", "")
    assert shown(shell.run('/bin/echo "$?"')) == (0, "3\n", "")
    assert shown(shell.run('/bin/echo "$VV $QQ"; /bin/pwd', env={"QQ": "a b"}, workdir="/")) == (0, "1 2 a b\n/\n", "")
    assert shown(shell.run('/bin/echo "${QQ-unset}"')) == (0, "unset\n", "")
    ended = shell.run("/bin/sh -c 'kill -TERM $PPID'")
    assert (ended.exit_code, ended.shell_state) == (143, "restored")
    assert shown(shell.run('/bin/echo "$VV"')) == (0, "1 2\n", "")


ZSH_HOSTILE = [
    *(f"{name}() {{ echo evil; }}" for name in ("builtin", "eval", "trap", "set", "unset", "typeset", "emulate", "shift")),
    "setopt ksharrays", "setopt cshjunkiequotes", "setopt nullglob globsubst shwordsplit", "setopt rcquotes", "emulate sh",
    "setopt errreturn", "alias -g '$?=x' /dev/null=x 0=x", "NULLCMD=false READNULLCMD=false", "TMPPREFIX=/nonexistent/x",
    "emulate ksh", "setopt autopushd cdablevars chaselinks", "setopt warncreateglobal typesetsilent posixbuiltins",
]  # fmt: skip


@each(ZSH)
@pytest.mark.parametrize("setup", ZSH_HOSTILE)
def test_zsh_options_and_functions_break_only_the_users_commands(
    kind: Kind, setup: str, shell: BlockingExecutor
) -> None:
    """B4: options that change zsh's grammar, global aliases and functions that hide builtins."""
    shell.run(setup)
    assert shown(shell.run("VV=$'1\\n2'")) == (0, "", "")
    assert shown(shell.run('/bin/echo \\\n"$VV $QQ"', env={"QQ": "a b"})) == (0, "1\n2 a b\n", "")
    ended = shell.run("/bin/sh -c 'kill -TERM $PPID'")
    assert (ended.exit_code, ended.shell_state) == (143, "restored")
    assert shown(shell.run('/bin/echo "$VV"')) == (0, "1\n2\n", "")


@each(DASH, BUSYBOX)
def test_a_syntax_error_ends_the_shell_when_command_is_hidden_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """B4: with a function named `command` nothing keeps a syntax error from ending the shell; it comes back."""
    shell.run("kept=1; command() { echo evil; }")
    result = shell.run("if")
    assert (result.exit_code, result.shell_state) == (2, "restored")
    assert shown(shell.run("echo $kept")) == (0, "1\n", "")


@each(YASH)
def test_a_function_named_command_holds_until_the_time_out_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """B4: yash waits in pselect(2), so nobody can tell that it has lost the wrapper before the time-out does."""
    assert shell.run("command() { echo evil; }", timeout=0.5).timed_out
    assert shown(shell.run("echo on")) == (0, "on\n", "")


@every
def test_tracing_shows_the_commands_and_no_secret(kind: Kind, shell: BlockingExecutor) -> None:
    """B4: under `set -x` each command traces to its own stderr; token and paths of the wrapper never show."""
    first = shell.run("set -x")
    second = shell.run("echo one")
    third = shell.run("(exit 3)")
    fourth = shell.run("echo $?; set +x")
    last = shell.run("echo four")
    assert "echo one" in second.stderr
    assert (second.stdout, third.exit_code, fourth.stdout) == ("one\n", 3, "3\n")
    assert shown(last) == (0, "four\n", "")
    for result in (first, second, third, fourth):
        assert "/proc/" not in result.stderr
        assert " E " not in result.stderr
        assert not result.background
        assert len(result.stderr.splitlines()) <= 6


@every
def test_an_error_in_a_subshell_ends_only_that(kind: Kind, shell: BlockingExecutor, tmp_path: Path) -> None:
    """D5: an error in a child of the shell, of any kind, leaves one shell that goes on (busybox made two of it)."""
    shell.run("readonly RO=5")
    for text in [
        "(${x:?foo}; echo no)", "(set -u; echo $NOPE)", "(eval 'if'; :)", "echo ${x:?foo} | cat", "(. /nonexistent; :)",
        "y=$(echo ${x:?foo}); :", "(RO=6; echo no)", "(readonly RO; RO=4; echo no)", "echo ${x:?foo} & wait", "(shift 99)",
        "(: >/nonexistent/x; :)", "(exit 4)", "(command eval 'if')", "eval '(${x:?foo})'", "f() { (: ${x:?foo}); }; f",
        "for i in 1 2; do (: ${x:?foo}); done", "eval 'eval \"(: ${x:?foo})\"'", "{ (: ${x:?foo}); } | cat", "sh -c 'exit 6' | (exit 5)",
    ]:  # fmt: skip
        result = shell.run(text, timeout=5)
        assert (result.exit_code, result.stdout) == alone(kind, f"readonly RO=5; {text}", tmp_path), text
        assert shown(shell.run("echo on")) == (0, "on\n", ""), text
        assert shell.run("sh -c 'echo $PPID'").stdout == shell.run("echo $$").stdout, text


# -- C: input and output ----------------------------------------------------------------------------------


@every
def test_stdin_is_empty_and_streams_are_separate(kind: Kind, shell: BlockingExecutor) -> None:
    """C1, C2: `cat` and `read` see end-of-file at once; stdout and stderr are exact."""
    result = shell.run("printf out; printf err >&2; cat; read x; echo $?; [ -t 0 ] || echo no")
    assert shown(result) == (0, "out1\nno\n", "err")
    for number in range(50):
        assert shown(shell.run(f"echo {number} >&2")) == (0, "", f"{number}\n")


@every
def test_input_and_merged_streams(kind: Kind, shell: BlockingExecutor) -> None:
    """A: input= is the command's stdin; merge_stderr= keeps the order of writing."""
    assert shown(shell.run("cat; read x; echo $?", input="hello\n")) == (0, "hello\n1\n", "")
    assert shown(shell.run("echo a; echo b >&2; echo c", merge_stderr=True)) == (0, "a\nb\nc\n", "")


@every
def test_redirections_of_the_shell_itself_last_for_their_command(kind: Kind, shell: BlockingExecutor) -> None:
    """C5: `exec >file` and closed descriptors affect the command they stand in; a descriptor 3 persists."""
    assert shown(shell.run("exec >/dev/null; echo no")) == (0, "", "")
    assert shown(shell.run("exec 1>&- 2>&-; exec 0</etc/passwd")) == (0, "", "")
    assert shown(shell.run("exec 3>three; echo a >&3; cat")) == (0, "", "")
    assert shown(shell.run("echo b >&3; exec 3>&-; cat three")) == (0, "a\nb\n", "")


# -- D: how a command ends --------------------------------------------------------------------------------


@every
def test_the_exit_code_is_visible_to_the_next_command(kind: Kind, shell: BlockingExecutor) -> None:
    """D1: `$?` is the last command's code, also across idle checkpoints and a command in another directory."""
    assert shell.run("(exit 7)").exit_code == 7
    assert shown(shell.run("echo $?", workdir="/", env={"Q": "1"})) == (0, "7\n", "")
    assert shown(shell.run("echo $?")) == (0, "0\n", "")


SETUP = """cd sub; export A='1 "q"'; B="x
y'z"; unset HOME; readonly RO=5; alias ll='ls -l'; umask 027; ulimit -S -n 777; trap 'echo usr' USR1; set -f -C
set -- a "b c" "d
#
e" ''"""
SHOW = """printf '%s|' "${PWD##*/}" "$A" "$B" "${HOME-unset}" "$RO" "$#" "$1" "$2" "$3" "$4"; umask; ulimit -S -n; alias ll
trap; case $- in *f*) echo f;; esac; case $- in *C*) echo C;; *) echo a >"${TMP-/tmp}/x" && echo a >"${TMP-/tmp}/x";; esac
env | grep '^A='; (RO=6; echo not readonly) 2>/dev/null; :"""
ENDINGS = ["echo o; exit 7", "set -e; echo o; false; echo no", "echo o; kill $$", "f9() { echo o; exit 5; }; f9"]


@every
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_session_outlives_its_shell(kind: Kind, ending: str, shell: BlockingExecutor, tmp_path: Path) -> None:
    """D2: after exit, errexit and a signal the next command finds directory, variables, options, limits and traps."""
    (tmp_path / "sub").mkdir()
    assert shell.run(SETUP).stderr == ""
    before = shell.run(SHOW)
    code = {"exit 7": 7, "false": 1, "kill": 143, "f9": 5}[
        next(k for k in ("exit 7", "false", "kill", "f9") if k in ending)
    ]
    result = shell.run(ending)
    assert (result.exit_code, result.stdout, result.shell_state) == (code, "o\n", "restored")
    assert not any("without saving" in note for note in result.notes)
    after = shell.run(SHOW)
    if "f9" in ending and kind.name in ("bash", "yash", "mksh"):  # pinned in `test_exit_in_a_function_..._instead`
        return
    assert _own_traps(after.stdout) == _own_traps(before.stdout)
    assert after.stdout.startswith("sub|")


def _own_traps(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "__sk" not in line and "exit 130" not in line)


@each(BASH, YASH, MKSH)
def test_exit_in_a_function_keeps_that_functions_arguments_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: the EXIT trap of bash, yash and mksh sees the arguments of the function that called `exit`."""
    shell.run("set -- a b c; g() { exit 5; }")
    shell.run("g x")
    assert shown(shell.run("echo $#")) == (0, "1\n", "")


@each(DASH, BUSYBOX, ZSH, KSH)
def test_nounset_ends_the_command_and_not_the_shell_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: `set -u` has the exit code of `-c`; where `eval` catches the error the shell lives on."""
    result = shell.run("set -u; echo o; echo $NOPE; echo no")
    assert (result.exit_code, result.stdout) == (2 if kind in (DASH, BUSYBOX) else 1, "o\n")
    assert result.stderr
    assert result.shell_state == "alive"


@each(YASH, MKSH)
def test_nounset_ends_the_shell(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: `set -u` ends the shell with the exit code of `-c`, and the state comes back."""
    result = shell.run("X=1; set -u; echo o; echo $NOPE; echo no")
    assert (result.exit_code, result.stdout, result.shell_state) == (kind.syntax_error, "o\n", "restored")
    assert shown(shell.run("echo $X")) == (0, "1\n", "")


@every
def test_an_errexit_that_has_fired_does_not_come_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: errexit is off after it has ended a shell, and stays on when something else did."""
    assert shell.run("set -e; false").shell_state == "restored"
    assert shown(shell.run("false; echo on"))[:2] == (0, "on\n")
    shell.run("set -e")
    assert shell.run("exit 4").shell_state == "restored"
    assert shell.run("false; echo on").stdout == ""


@each(ZSH)
def test_errexit_in_a_function_saves_the_state(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: zsh runs no EXIT trap when errexit ends a function; the ZERR trap saves all but positional parameters."""
    result = shell.run("X=1; f() { Y=2; false; }; set -e; f; echo no")
    assert (result.exit_code, result.stdout, result.shell_state) == (1, "", "restored")
    assert shown(shell.run("echo $X $Y")) == (0, "1 2\n", "")


@each(*(kind for kind in KINDS if kind.keeps_functions))
def test_functions_arrays_and_attributes_come_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: functions, arrays, integer and read-only attributes survive `exit` in the shells that can print them."""
    shell.run(f"{kind.array}; typeset -i n=5; typeset -r ro=1; f() {{ echo \"f $1\"; n=n+1; }}\ng() ( echo 'it''s' )")
    shell.run("exit 3")
    assert shown(shell.run(kind.prints_array)) == (0, "2 2 3\n", "")
    assert shown(shell.run("f x; g; echo $n; (ro=2) 2>/dev/null || echo ro")) == (0, "f x\nits\n6\nro\n", "")


@each(BASH, ZSH, MKSH)
def test_a_function_with_a_here_document_comes_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: here-documents in functions are printed and restored."""
    shell.run("f() { cat <<E\nhere $1\nE\n}; g() { echo g; }")
    shell.run("exit 3")
    assert shown(shell.run("f x; g")) == (0, "here x\ng\n", "")


@each(KSH)
def test_a_function_with_a_here_document_is_lost_alone_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: ksh93 prints such a function wrongly; it is lost, with a note, and the others come back."""
    shell.run("f() { cat <<E\nhere $1\nE\n}; g() { echo g; }")
    assert any("here-document" in note for note in shell.run("exit 3").notes)
    assert shown(shell.run("g")) == (0, "g\n", "")
    assert shell.run("f x").exit_code == 127


@each(DASH, BUSYBOX, YASH)
def test_functions_do_not_come_back_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: shells that cannot print functions lose them, with a note."""
    shell.run("f() { echo f; }")
    assert any("functions" in note for note in shell.run("exit 3").notes)
    assert shell.run("f").exit_code == 127


@each(ZSH)
def test_zsh_options_aliases_and_tied_arrays_come_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: setopt, global and suffix aliases, associative and tied arrays survive."""
    shell.run(
        "setopt extendedglob ksharrays; alias -g GG=x; alias -s txt=cat; typeset -A as=(k 'v w'); typeset -T FOO foo=(a b)"
    )
    shell.run("exit 3")
    result = shell.run(
        "echo ${as[k]} $FOO ${foo[1]}; [[ -o extendedglob && -o ksharrays ]] && echo on; alias -g; alias -s"
    )
    assert shown(result) == (0, "v w a:b b\non\nGG=x\ntxt=cat\n", "")


@each(KSH, MKSH)
def test_ksh_options_and_attributes_come_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: options that are on by default and attributes with a width survive."""
    shell.run("set +o braceexpand; typeset -i16 hx=255; typeset -L5 wide=ab; typeset -x EX=1; EX=2")
    shell.run("exit 3")
    assert shown(shell.run('echo {a,b} $hx "[$wide]"; env | grep ^EX=')) == (0, "{a,b} 16#ff [ab   ]\nEX=2\n", "")


@every
def test_an_exported_variable_that_is_no_longer_exported_stays_so(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: a name that a new shell inherits is neither set nor exported when the old one had changed that."""
    shell.run("e=$EDITOR; unset EDITOR; EDITOR=$e; unset PAGER")
    shell.run("exit 3")
    assert shown(shell.run('[ "$EDITOR" = "$e" ] && env | grep -e ^EDITOR= -e ^PAGER=')) == (1, "", "")


@every
def test_the_idle_checkpoint_brings_back_a_killed_shell(
    kind: Kind, shell: BlockingExecutor, checkpointed: Callable[[BlockingExecutor], None]
) -> None:
    """D3, D4: after `kill -9 $$` and `exec` the state is that of the last idle moment."""
    shell.run("cd /; A=1; set -- x y; set -x; set +x; (exit 3)")
    checkpointed(shell)
    assert shown(shell.run("echo $? $#")) == (0, "3 2\n", "")
    killed = shell.run("echo o; kill -9 $$")
    assert (killed.exit_code, killed.stdout, killed.shell_state) == (137, "o\n", "restored")
    assert shown(shell.run("echo $A $PWD $2")) == (0, "1 / y\n", "")
    replaced = shell.run("exec sh -c 'echo e; exit 9'")
    assert (replaced.exit_code, replaced.stdout, replaced.shell_state) == (9, "e\n", "restored")
    assert shown(shell.run("echo $A $PWD $2")) == (0, "1 / y\n", "")


@every
def test_a_users_exit_trap_runs(
    kind: Kind, shell: BlockingExecutor, checkpointed: Callable[[BlockingExecutor], None]
) -> None:
    """D7: a user's EXIT trap runs when the shell ends, and the state is at least that of the checkpoint."""
    shell.run("A=1; trap 'echo bye' EXIT")
    checkpointed(shell)
    result = shell.run("B=2; exit 3")
    assert (result.exit_code, result.stdout, result.shell_state) == (3, "bye\n", "restored")
    kept = "1 2" if kind is ZSH else "1"  # zsh has a second hook
    assert shown(shell.run("echo $A $B")) == (0, f"{kept}\n", "")


@each(DASH, BUSYBOX, MKSH)
def test_exec_of_a_missing_program_saves_the_state(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: an `exec` that fails ends the shell with 127, and the state comes back."""
    result = shell.run("A=1; exec /nonexistent")
    assert (result.exit_code, result.shell_state) == (127, "restored")
    assert shown(shell.run("echo $A")) == (0, "1\n", "")


@each(BASH, YASH, ZSH, KSH)
def test_exec_of_a_missing_program_falls_back_on_the_checkpoint_instead(
    kind: Kind, shell: BlockingExecutor, checkpointed: Callable[[BlockingExecutor], None]
) -> None:
    """D3: these run no EXIT trap then, so what the command itself changed is lost."""
    shell.run("A=1")
    checkpointed(shell)
    result = shell.run("A=2; exec /nonexistent")
    assert (result.exit_code, result.shell_state) == (127, "restored")
    assert shown(shell.run("echo $A")) == (0, "1\n", "")


# -- F: time-outs -----------------------------------------------------------------------------------------

STUCK = [
    "sleep 100; touch f",
    "while :; do :; done; touch f",
    "trap 'touch f' INT; sleep 100; touch f",
    "trap '' INT; while :; do :; done; touch f",
    "g() { sleep 100; touch f; }; g; touch f",
    "for i in 1 2 3; do sleep 100; done; touch f",
    "(sleep 100; touch f); touch f",
    "sleep 100 | cat; touch f",
    "x=$(sleep 100; touch f); touch f",
]


@every
@pytest.mark.parametrize("stuck", STUCK)
def test_a_time_out_interrupts_and_the_rest_does_not_run(
    kind: Kind, stuck: str, open_shell: Opens, tmp_path: Path
) -> None:
    """F1, F3: an interrupt ends the command long before the grace period, nothing after it runs, the state is kept."""
    shell = open_shell(shell=kind.name, grace=8.0)
    shell.run("X=1")
    result = shell.run(f"echo o; Y=2; {stuck}", timeout=0.1)
    assert (result.exit_code, result.timed_out, result.stdout, result.shell_state) == (124, True, "o\n", "restored")
    assert result.duration < 0.1 + 0.35 * 8.0  # before the second rung
    assert not (tmp_path / "f").exists()
    assert shown(shell.run("echo $X $Y")) == (0, "1 2\n", "")


@each(BASH, DASH, BUSYBOX, ZSH, KSH, MKSH)
def test_a_time_out_interrupts_the_open_of_a_fifo(kind: Kind, open_shell: Opens, tmp_path: Path) -> None:
    """F1: a shell that waits in open(2) gives up at once."""
    shell = open_shell(shell=kind.name, grace=8.0)
    result = shell.run("mkfifo ff; read x <ff; touch f", timeout=0.1)
    assert (result.exit_code, result.shell_state, (tmp_path / "f").exists()) == (124, "restored", False)
    assert result.duration < 0.1 + 0.35 * 8.0


@each(YASH)
def test_a_fifo_holds_until_the_last_rung_instead(kind: Kind, open_shell: Opens, tmp_path: Path) -> None:
    """F2: yash opens again after the signal, so it is killed within the grace period."""
    shell = open_shell(shell=kind.name, grace=0.5)
    result = shell.run("mkfifo ff; read x <ff; touch f", timeout=0.1)
    assert (result.exit_code, result.timed_out, (tmp_path / "f").exists()) == (124, True, False)
    assert result.duration < 0.1 + 0.5 + 0.5
    assert shown(shell.run("echo on")) == (0, "on\n", "")


@every
def test_a_background_job_belongs_to_its_command(kind: Kind, shell: BlockingExecutor) -> None:
    """I1: `&` returns at once, and later output does not reach later results."""
    result = shell.run("sh -c 'sleep 100; echo late' & echo started")
    assert (result.exit_code, result.stdout, len(result.background)) == (0, "started\n", 1)
    assert shown(shell.run("echo next")) == (0, "next\n", "")
    result.background[0].stop()


def test_every_local_family_has_a_dialect() -> None:
    """A: `shell=` takes a name, a path and an argv list for each family."""
    for kind in KINDS:
        try:
            family = LocalExecutor(shell=list(kind.argv)).shell.family
        except Exception as error:  # not here: the other tests say so
            assert type(error).__name__ == "SpawnError"
        else:
            assert family == {"ksh93": "ksh", "yash": "sh"}.get(kind.name, kind.name)
