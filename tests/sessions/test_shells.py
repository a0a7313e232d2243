"""Every shell takes any text and keeps its own output apart (contract A, B, C); bash, dash, busybox, zsh, ksh93, mksh, yash.

What a shell cannot do stands in docs/shells.md and is pinned as `test_..._instead`, here and in the two files beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, LocalExecutor, ShellResult

Kind = Any
Opens = Callable[..., BlockingExecutor]
shells = pytest.mark.shells


def shown(result: ShellResult) -> tuple[int | None, str, str]:
    """Return what most tests compare."""
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
@pytest.mark.parametrize("command", ["-c", "--help", "--", "+x", "-n\necho never"])
def test_what_looks_like_an_option_is_a_command(kind: Kind, open_shell: Opens, mode: str, command: str) -> None:
    """B1, B4: a command that begins with a dash or a plus is looked for as a command, and is no option of a shell."""
    result = open_shell(shell=kind.name, mode=mode).run(f"{command.split()[0]} 2> errors; echo $?")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "127\n", "")
    result = open_shell(shell=kind.name, mode=mode).run(command)
    assert result.exit_code == (0 if "echo" in command else 127)
    assert result.stdout == ("never\n" if "echo" in command else "")


def test_each_way_of_naming_a_shell_finds_its_dialect(kind: Kind) -> None:
    """A: `shell=` takes a name and an argv list for each family."""
    expected = {"ksh93": "ksh", "yash": "sh"}.get(kind.name, kind.name)
    assert LocalExecutor(shell=kind.name).shell.family == expected
    assert LocalExecutor(shell=list(kind.argv)).shell.family == expected


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


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_text_does_what_the_shells_c_option_does(kind: Kind, mode: str, open_shell: Opens, tmp_path: Path) -> None:
    """B1: unbalanced text, heredocs and comments give the exit code and output of `-c`, and the session goes on."""
    with open_shell(shell=kind.name, mode=mode) as shell:
        for text in [*BROKEN, *WHOLE]:
            result = shell.run(text)
            assert (result.exit_code, result.stdout) == kind.alone(text, tmp_path), text
            assert shown(shell.run("echo on")) == (0, "on\n", ""), text


def test_a_syntax_error_has_the_shells_own_code_and_message(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: a syntax error gives the code of `-c` and a message; variables survive it even where it ends the shell."""
    shell.run("kept=1")
    result = shell.run("if")
    assert result.exit_code == kind.syntax_error
    assert result.stderr
    assert result.shell_state == ("restored" if kind.dies_of_errors else "alive")
    assert shown(shell.run("echo $kept")) == (0, "1\n", "")


@shells("bash", "dash", "busybox", "yash", "mksh")
def test_lines_before_a_syntax_error_run(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: what stands before the line with the error runs."""
    result = shell.run("echo before\nif\n")
    assert (result.exit_code, result.stdout) == (kind.syntax_error, "before\n")


@shells("ksh93")
def test_lines_before_a_syntax_error_do_not_run_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: ksh93's eval reads all of a command before it runs any of it."""
    assert shown(shell.run("echo before\nif\n"))[:2] == (3, "")


@shells("dash", "ksh93")
def test_messages_count_from_the_commands_first_line(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: the shell's messages number the lines of the command, not of the session."""
    shell.run("true\n\n\n\ntrue")
    assert re.search(r"\b3\b.*nosuch", shell.run("true\n\nnosuch\n").stderr)


@shells("yash", "zsh", "ksh93")
def test_line_numbers_count_from_the_commands_first_line(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: `$LINENO` numbers the lines of the command, not of the session."""
    shell.run("true\n\n\n\ntrue")
    assert shown(shell.run("true\n\necho $LINENO")) == (0, "3\n", "")


@shells("dash", "busybox", "mksh")
def test_line_numbers_are_the_sessions_or_empty_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """B1: dash (as Debian builds it) has no `$LINENO`; busybox and mksh count on through the session."""
    numbers = [shell.run("true\n\necho $LINENO").stdout.strip() for _ in range(2)]
    assert numbers == ["", ""] if kind.name == "dash" else "3" not in numbers


@pytest.mark.parametrize("size", [1_000_000, 10_000_000])
def test_a_long_command_works(kind: Kind, size: int, shell: BlockingExecutor) -> None:
    """B3: 1 MB and 10 MB of text arrive whole, quotes and newlines included."""
    # bash itself takes 0.3 s for 1 MB of text with 40,000 quotes, and quadratically more for 10.
    line = "it'\\''s a line of text\n" if size < 10_000_000 else "it  s a line of text\n"
    count = size // len(line)
    result = shell.run("v='" + line * count + "'; echo ${#v}; unset v", timeout=60)
    assert shown(result) == (0, f"{count * len(line.replace(chr(92) + chr(39) * 2, ''))}\n", "")


def test_many_commands_in_one_text_run(kind: Kind, shell: BlockingExecutor) -> None:
    """B3: 40,000 commands in one text take no quadratic time (zsh's eval would)."""
    result = shell.run("x=0\n" + "x=$((x+1))\n" * 40_000 + "echo $x", timeout=20)
    assert shown(result) == (0, "40000\n", "")


HIDDEN = "printf", "cd", "type", "kill", "umask", "print"
HOSTILE = [
    *(f"{name}() {{ echo evil; }}" for name in HIDDEN),
    "alias printf=false command=false builtin=false eval=false cd=false print=false trap=false set=false kill=false",
    "alias if=false; alias for=false; alias do=false; alias case=false; alias '{=false'; alias '}=false'",
    "IFS=0123456789abcdefESTOK",
    "set -C -f -u -a",
    "PATH=",
    "PS4='$(echo evil >&2)'",
]


def assert_unharmed(shell: BlockingExecutor) -> None:
    """Try a command, its code, env=, workdir=, and the state after a signal."""
    assert shown(shell.run("VV='1 2'")) == (0, "", "")
    assert shown(shell.run("/bin/sh -c 'exit 3'")) == (3, "", "")
    assert shown(shell.run('/bin/echo "$?"')) == (0, "3\n", "")
    assert shown(shell.run('/bin/echo "$VV $QQ"; /bin/pwd', env={"QQ": "a b"}, workdir="/")) == (0, "1 2 a b\n/\n", "")
    assert shown(shell.run('/bin/echo "${QQ-unset}"')) == (0, "unset\n", "")
    ended = shell.run("/bin/sh -c 'kill -TERM $PPID'")
    assert (ended.exit_code, ended.shell_state) == (143, "restored")
    assert shown(shell.run('/bin/echo "$VV"')) == (0, "1 2\n", "")


@pytest.mark.parametrize("setup", HOSTILE)
def test_what_a_user_redefines_breaks_only_their_own_commands(kind: Kind, setup: str, shell: BlockingExecutor) -> None:
    """B4: hidden builtins, aliased words, IFS, PATH and options reach neither reports, env=, workdir= nor the state."""
    shell.run(setup)
    assert_unharmed(shell)


@shells("bash", "dash", "busybox", "zsh", "ksh93", "mksh")
@pytest.mark.parametrize("setup", ["command() { echo evil; }", "printf() { echo evil; }; command() { echo evil; }"])
def test_a_function_named_command_breaks_only_the_users_own(kind: Kind, setup: str, shell: BlockingExecutor) -> None:
    """B4: `command`, which goes round functions, may be one itself."""
    shell.run(setup)
    assert_unharmed(shell)


ZSH_HOSTILE = [
    *(f"{name}() {{ echo evil; }}" for name in ("builtin", "eval", "trap", "set", "unset", "typeset", "emulate", "shift")),
    "setopt ksharrays", "setopt cshjunkiequotes", "setopt nullglob globsubst shwordsplit", "setopt rcquotes", "emulate sh",
    "setopt errreturn", "alias -g '$?=x' /dev/null=x 0=x", "NULLCMD=false READNULLCMD=false", "TMPPREFIX=/nonexistent/x",
    "emulate ksh", "setopt autopushd cdablevars chaselinks", "setopt warncreateglobal typesetsilent posixbuiltins",
]  # fmt: skip


@shells("zsh")
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


@shells("dash", "busybox")
def test_a_syntax_error_ends_the_shell_when_command_is_hidden_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """B4: with a function named `command` nothing keeps a syntax error from ending the shell; it comes back."""
    shell.run("kept=1; command() { echo evil; }")
    result = shell.run("if")
    assert (result.exit_code, result.shell_state) == (2, "restored")
    assert shown(shell.run("echo $kept")) == (0, "1\n", "")


@shells("yash")
def test_a_function_named_command_holds_until_the_time_out_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """B4: yash waits in pselect(2), so nobody can tell that it has lost the wrapper before the time-out does."""
    assert shell.run("command() { echo evil; }", timeout=0.5).timed_out
    assert shown(shell.run("echo on")) == (0, "on\n", "")


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


# -- C: input and output ----------------------------------------------------------------------------------


def test_stdin_is_empty_and_streams_are_separate(kind: Kind, shell: BlockingExecutor) -> None:
    """C1, C2: `cat` and `read` see end-of-file at once; stdout and stderr are exact."""
    result = shell.run("printf out; printf err >&2; cat; read x; echo $?; [ -t 0 ] || echo no")
    assert shown(result) == (0, "out1\nno\n", "err")
    for number in range(50):
        assert shown(shell.run(f"echo {number} >&2")) == (0, "", f"{number}\n")


def test_input_and_merged_streams(kind: Kind, shell: BlockingExecutor) -> None:
    """A: input= is the command's stdin; merge_stderr= keeps the order of writing."""
    assert shown(shell.run("cat; read x; echo $?", input="hello\n")) == (0, "hello\n1\n", "")
    assert shown(shell.run("echo a; echo b >&2; echo c", merge_stderr=True)) == (0, "a\nb\nc\n", "")


def test_redirections_of_the_shell_itself_last_for_their_command(kind: Kind, shell: BlockingExecutor) -> None:
    """C5: `exec >file` and closed descriptors affect the command they stand in; a descriptor 3 persists."""
    assert shown(shell.run("exec >/dev/null; echo no")) == (0, "", "")
    assert shown(shell.run("exec 1>&- 2>&-; exec 0</etc/passwd")) == (0, "", "")
    assert shown(shell.run("exec 3>three; echo a >&3; cat")) == (0, "", "")
    assert shown(shell.run("echo b >&3; exec 3>&-; cat three")) == (0, "a\nb\n", "")


def test_programs_inherit_an_opened_descriptor(kind: Kind, shell: BlockingExecutor) -> None:
    """C5: a descriptor that `exec 3>` opens reaches programs, but in ksh93 and mksh, which close it for them."""
    shell.run("exec 3>three; sh -c 'echo a >&3' 2>/dev/null; echo b >&3")
    expected = "b\n" if kind.name in ("ksh93", "mksh") else "a\nb\n"
    assert shown(shell.run("cat three")) == (0, expected, "")
