"""Nothing of the wrapper shows: not in output, listings, argv, history or descriptors (B4)."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

import pytest

from shellkit import BlockingExecutor

TOKEN = re.compile(r"[0-9a-f]{24}")


def test_variables_and_functions_keep_to_one_prefix(shell: BlockingExecutor) -> None:
    """B4: what the wrapper defines in the shell starts with one reserved prefix."""
    own = subprocess.run(["bash", "--norc", "-c", "compgen -v"], capture_output=True, text=True, check=True)
    names = set(shell.run("compgen -v").stdout.split()) - set(own.stdout.split())
    harmless = set(shell.run("compgen -e").stdout.split())
    assert {name for name in names - harmless if not name.startswith("__sk")} <= {"PIPESTATUS", "_"}
    assert all(name.startswith("__sk") for name in shell.run("compgen -A function").stdout.split())


def test_one_reserved_variable_in_the_environment(shell: BlockingExecutor) -> None:
    """B4: children see one variable of ours, and none of the wrapper's."""
    lines = shell.run("env").stdout.splitlines()
    inherited = [name for name in os.environ if name.startswith("SHELLKIT")]  # SHELLKIT_REQUIRE in CI
    ours = [line for line in lines if re.match(r"SHELLKIT|__sk|_sk", line) and line.partition("=")[0] not in inherited]
    assert [line.partition("=")[0] for line in ours] == ["SHELLKIT_SESSION"]


def test_traps_show_one_prefix(shell: BlockingExecutor) -> None:
    """B4: each trap of ours carries the reserved prefix; there is none for what users trap."""
    lines = shell.run("trap -p").stdout.splitlines()
    assert all("__sk" in line for line in lines)
    assert len(lines) <= 2


@pytest.mark.parametrize(
    "command",
    [
        "alias",
        "jobs",
        "history",
        "fc -l 2>/dev/null",
        "dirs -p | tail -n +2",
        "complete",
        "hash -l 2>/dev/null | grep -v /usr",
        'echo "$!"',
    ],
)
def test_listings_are_empty(shell: BlockingExecutor, command: str) -> None:
    """B4: aliases, jobs, history, completions and `$!` hold nothing that the user did not put there."""
    shell.run("true")
    assert shell.run(command).stdout.strip() == ""


def test_argv_and_open_descriptors_tell_nothing(either: BlockingExecutor) -> None:
    """B4, D8: argv of the shell holds no command text, and a child has descriptors 0, 1 and 2 only."""
    result = either.run("tr '\\0' ' ' < /proc/$$/cmdline; : secret_zz")
    assert "secret_zz" not in result.stdout
    assert not TOKEN.search(result.stdout)
    assert either.run("python3 -c 'import os; print(sorted(os.listdir(\"/proc/self/fd\")))'").stdout == (
        "['0', '1', '2', '3']\n"
    )
    assert "socket" not in either.run("ls -l /proc/self/fd").stdout


def test_pkill_does_not_match_the_shell(either: BlockingExecutor, sleeps: Any) -> None:
    """B4: `pkill -f` finds the program and not the shell that the command is written in."""
    length = sleeps()
    pattern = length.replace(".", "[.]")
    result = either.run(f"sleep {length} >/dev/null 2>&1 & sleep 0.05; pkill -f 'sleep {pattern}'; echo alive; wait")
    assert (result.stdout, result.shell_state) == ("alive\n", "alive")
    assert sleeps.left() == []


def test_a_trace_shows_one_line_at_most(shell: BlockingExecutor) -> None:
    """B4: under `set -x` stderr holds the command's own trace and at most one `eval` line of ours."""
    shell.run("set -x")
    result = shell.run("echo again")
    lines = result.stderr.splitlines()
    assert result.stdout == "again\n"
    assert [line.lstrip("+") for line in lines].count(" echo again") == 1
    assert len(lines) <= 2
    assert all("eval" in line or "echo again" in line for line in lines)
    assert not TOKEN.search(result.stderr)
    shell.run("set +x")
    assert shell.run("echo quiet").stderr == ""


@pytest.mark.parametrize("flag", ["x", "v", "e"])
@pytest.mark.parametrize("end", ["exit 3", "f() { exit 3; }; f", "exec nosuch_zz", "f() { false; }; set -e; f"])
def test_the_end_of_a_traced_shell_shows_one_line_at_most(shell: BlockingExecutor, flag: str, end: str) -> None:
    """B4: what ends the shell in a function leaves the command's stderr open to the trap that prints the state."""
    shell.run("kept=1")
    result = shell.run(f"set -{flag}; set -T\n{end}")
    assert len([line for line in result.stderr.splitlines() if "__sk" in line]) <= 1
    assert not TOKEN.search(result.stderr)
    shell.run("set +xv")
    assert shell.run("echo $kept").stdout == "1\n"


def test_verbose_shows_one_line_at_most(shell: BlockingExecutor) -> None:
    """B4: under `set -v` stderr holds what the user wrote and at most one `eval` line of ours."""
    shell.run("set -v")
    result = shell.run("echo v\necho w")
    assert result.stdout == "v\nw\n"
    assert len([line for line in result.stderr.splitlines() if not line.startswith("echo")]) <= 1
    assert not TOKEN.search(result.stderr)
    shell.run("set +v")
    assert shell.run("echo quiet").stderr == ""


@pytest.mark.parametrize("options", ["", "set -T; ", "shopt -s extdebug; ", "set -E; "])
def test_a_debug_trap_sees_one_line_at_most(shell: BlockingExecutor, options: str) -> None:
    """B4: a DEBUG trap runs for the user's commands and at most once for ours."""
    shell.run(options + "trap 'echo \"D $BASH_COMMAND\"' DEBUG")
    result = shell.run("echo hi; (exit 3)")
    lines = result.stdout.splitlines()
    assert "hi" in lines
    assert "D echo hi" in lines
    assert result.exit_code == 3
    ours = [line for line in lines if line.startswith("D ") and line not in ("D echo hi", "D exit 3", "D ( exit 3 )")]
    assert len(ours) <= 1
    assert not TOKEN.search(result.stdout)


def test_an_err_trap_sees_the_users_failures_only(shell: BlockingExecutor) -> None:
    """B4: an ERR trap fires as it does in a script, and at most once more for the `eval` that runs the command."""
    shell.run("trap 'echo E' ERR")
    assert shell.run("true").stdout == ""
    assert shell.run("false; true").stdout == "E\n"
    failing = shell.run("false")
    assert failing.stdout in ("E\n", "E\nE\n")
    assert failing.exit_code == 1
    assert shell.run("(exit 5)").exit_code == 5
    assert shell.run("echo $?").stdout == "5\n"


def test_a_return_trap_sees_the_users_functions_only(shell: BlockingExecutor) -> None:
    """B4: a RETURN trap does not fire for functions of the wrapper, functrace or not."""
    shell.run("trap 'echo R' RETURN; set -T; f() { :; }")
    assert shell.run("true").stdout == ""
    assert shell.run("f").stdout == "R\n"
    assert shell.run("echo a", workdir="/").stdout == "a\n"


def test_what_listings_print_can_be_printed_again(shell: BlockingExecutor) -> None:
    """B4: nothing that `env`, `set`, `declare` and `trap` print ends a later command when it is printed."""
    listing = shell.run(
        "env; set; declare -f; declare -p; trap -p; alias; cat /proc/$$/environ | tr '\\0' '\\n'"
    ).stdout
    result = shell.run("cat; (exit 9)", input=listing)
    assert result.stdout == listing
    assert result.exit_code == 9
    assert shell.run("echo one").stdout == "one\n"
