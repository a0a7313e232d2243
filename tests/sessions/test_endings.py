"""How a command ends: exit codes, and what happens when it takes its shell along (D1, D3, D6, D7)."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor

CODES = [
    ("sh -c 'exit 42'", 42),
    ("(exit 255)", 255),
    ("(exit 256)", 0),
    ("bash -c 'python3 -c \"import sys; sys.exit(7)\" >out.log 2>&1'", 7),
    ("nosuchcmd_zz", 127),
    ("printf x > f; ./f", 126),
    ("false | true", 0),
    ("set -o pipefail; false | true", 1),
    ("! true", 1),
    ("sh -c 'kill -TERM $$'", 143),
    ("sh -c 'kill -9 $$'", 137),
    ("(kill -SEGV $BASHPID)", 139),
    ("timeout 0.1 sleep 5", 124),
    ("grep zzz /etc/hostname", 1),
    ("exit_fn() { return 6; }; exit_fn", 6),
    ("[[ a == b ]]", 1),
    ("((0))", 1),
]


@pytest.mark.parametrize(("command", "code"), CODES)
def test_exit_codes(either: BlockingExecutor, command: str, code: int) -> None:
    """D1: the exit code is the command's, 0-255, a signal as 128+n; a command's own 124 is no time-out of ours."""
    result = either.run(command)
    assert (result.exit_code, result.timed_out, result.shell_state) == (code, False, "alive")
    assert result.ok is (code == 0)


@pytest.mark.parametrize("command", ["exit 1 2", "return 1 2; echo no", "shift 1 2", "a=(1); echo ${a[1/0]}; echo no"])
def test_a_line_that_bash_gives_up(either: BlockingExecutor, command: str) -> None:
    """D1: bash drops the whole line at some errors; its code is that of `bash -c`, and nobody is blamed for it."""
    either.run("(exit 3)")
    result = either.run(command)
    assert (result.stdout, result.exit_code, result.shell_state, result.notes) == ("", 1, "alive", ())
    assert result.stderr.count("\n") == 1


def test_the_last_exit_code_is_visible(shell: BlockingExecutor) -> None:
    """D1: `$?` is the last command's, and nobody's variables are touched."""
    for code in (1, 0, 9, 255, 128, 2):
        assert shell.run(f"(exit {code})").exit_code == code
        assert shell.run("echo $?").stdout == f"{code}\n"
        assert shell.run("echo $?").stdout == "0\n"
    shell.run("(exit 9)")
    assert shell.run("rc=$?; exit_status=1; status=3; ret=4; echo $rc").stdout == "9\n"
    shell.run("(exit 4)")
    assert shell.run("echo $?", env={"A": "1"}, workdir="/").stdout == "4\n"
    shell.run("if")
    assert shell.run("echo $?").stdout == "2\n"
    shell.run("echo before; exit 13")
    assert shell.run("echo $?").stdout == "13\n"


ENDS = [
    ("echo before; exit 7; echo after", "before\n", {7}),
    ("echo before; exit; echo after", "before\n", {0}),
    ("exit 0 || echo no", "", {0}),
    ("exit 300", "", {44}),
    ("f() { exit 5; }; f", "", {5}),
    ("set -e; echo before; false; echo after", "before\n", {1}),
    ("set -eu; echo before; (exit 4); echo after", "before\n", {4}),
    ("set -u; echo before; echo $undefined_zz; echo after", "before\n", {1, 127}),
    ("echo before; echo ${zz?gone}; echo after", "before\n", {1, 127}),
    ("echo before; kill -9 $$", "before\n", {137}),
    ("echo before; kill $$; sleep 5", "before\n", {143}),
    ("echo before; kill -HUP $$; sleep 5", "before\n", {129}),
    ("echo before; kill -SEGV $$; sleep 5", "before\n", {139}),
    ("echo before; exec true", "before\n", {0}),
    ("exec sh -c 'echo replaced; echo err >&2; exit 6'", "replaced\n", {6}),
    ("exec sh -c 'kill -9 $$'", "", {137}),
    ("exec cat /etc/hostname > copy", "", {0}),
    ("trap 'exit 9' EXIT; exit 3", "", {9}),
    ("trap 'exit 8' TERM; kill $$", "", {8}),
    ("trap 'exit 5' ERR; false", "", {5}),
    ("exec nosuch_program_zz; echo after", "", {127}),
    ("bash -c 'kill -9 $PPID'; sleep 5", "", {137}),
]


@pytest.mark.parametrize(("command", "stdout", "codes"), ENDS)
def test_the_session_outlives_its_shell(
    either: BlockingExecutor, tmp_path: Path, command: str, stdout: str, codes: set[int]
) -> None:
    """D1, D2, D3: exit code and all output of a command that ends its shell are in the result; the next one runs."""
    either.run("true")
    result = either.run(command, timeout=10)
    assert result.stdout == stdout
    assert result.exit_code in codes
    assert not result.timed_out
    assert result.duration < 2
    assert result.shell_state in ("alive", "restored", "restarted")
    after = either.run("pwd; echo err >&2")
    assert (after.stdout, after.stderr, after.exit_code) == (f"{tmp_path}\n", "err\n", 0)
    assert after.shell_state == "alive"


def test_large_output_before_the_end_is_whole(either: BlockingExecutor) -> None:
    """D2: all the output of a command that ends its shell is there, more than a pipe holds."""
    result = either.run("seq 1 10000; seq 1 9000 >&2; exit 7")
    assert result.stdout == "".join(f"{n}\n" for n in range(1, 10_001))
    assert result.stderr == "".join(f"{n}\n" for n in range(1, 9001))
    assert result.exit_code == 7


def test_the_program_that_replaced_the_shell_is_followed_to_its_end(either: BlockingExecutor) -> None:
    """D3: `exec program` is waited for, and what it prints late is in the result."""
    result = either.run("echo a; exec sh -c 'sleep 0.2; echo b; exit 3'")
    assert (result.stdout, result.exit_code) == ("a\nb\n", 3)


def test_a_users_exit_trap_runs(either: BlockingExecutor, tmp_path: Path) -> None:
    """D7: a user's own EXIT trap runs when that shell ends, and what it prints is in the result."""
    result = either.run("trap 'echo bye; echo bye >&2; touch trapped' EXIT; exit 3")
    assert (result.exit_code, (tmp_path / "trapped").exists()) == (3, True)
    # A persistent shell undoes the command's redirections before it runs the trap (docs/contract.md).
    stateless = either.executor.mode == "stateless"  # type: ignore[attr-defined]  # a LocalExecutor
    assert (result.stdout, result.stderr) == ("bye\n", "bye\n" if stateless else "")
    assert either.run("echo ok").stdout == "ok\n"


def test_a_users_exit_trap_runs_at_close(shell: BlockingExecutor, tmp_path: Path) -> None:
    """D7, G3: closing lets the shell run its EXIT trap."""
    shell.run("trap 'touch at-close' EXIT")
    shell.close()
    assert (tmp_path / "at-close").exists()


def test_a_subshells_exit_trap_is_its_own(shell: BlockingExecutor) -> None:
    """D7: the end of a subshell runs none of our traps, and the session's shell goes on."""
    result = shell.run("(trap 'echo sub' EXIT; exit 4); echo $?; (exit 5); x=$(exit 6); echo $?")
    assert (result.stdout, result.shell_state) == ("sub\n4\n6\n", "alive")


def test_death_is_noticed_although_a_child_holds_the_pipes(either: BlockingExecutor, sleeps: Any) -> None:
    """D6: a background child that holds the pipes delays nothing, neither an end nor a death."""
    for end in ("exit 7", "kill -9 $$", "true"):
        result = either.run(f"sleep {sleeps()} & echo started; {end}")
        assert result.stdout == "started\n"
        assert result.duration < 2
    either.close()
    assert sleeps.left() == []


def test_state_never_lands_in_a_users_file(shell: BlockingExecutor, tmp_path: Path) -> None:
    """D8: what the dying shell prints about itself is in no redirected file and in no output."""
    shell.run("secret=zz-value-zz")
    result = shell.run("exec >all.txt 2>&1 3>&1; echo hi; exit 4")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 4)
    assert (tmp_path / "all.txt").read_text() == "hi\n"
    result = shell.run("exec 1>&- 2>&-; exit 5")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 5)
    result = shell.run("{ echo a; exit 6; } >braces.txt 2>&1")
    assert (result.exit_code, (tmp_path / "braces.txt").read_text()) == (6, "a\n")
    assert shell.run("echo $secret").stdout == "zz-value-zz\n"


def test_a_shell_killed_while_idle(shell: BlockingExecutor, checkpointed: Any, eventually: Any) -> None:
    """D4: a shell that is killed while nobody runs anything is replaced by the next command, which is told."""
    pid = int(shell.run("kept=5; cd /; echo $$").stdout)
    checkpointed(shell)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: b") Z" in Path(f"/proc/{pid}/stat").read_bytes())
    result = shell.run("echo $kept $PWD")
    assert (result.stdout, result.shell_state) == ("5 /\n", "restored")
    assert result.notes
