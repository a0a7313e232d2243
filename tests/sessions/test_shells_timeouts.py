"""Every shell can be interrupted (contract F), and lets jobs go on (I); docs/shells.md says where one cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, ShellResult

Kind = Any
Opens = Callable[..., BlockingExecutor]
shells = pytest.mark.shells


def shown(result: ShellResult) -> tuple[int | None, str, str]:
    """Return what most tests compare."""
    return result.exit_code, result.stdout, result.stderr


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


@shells("bash", "dash", "busybox", "zsh", "ksh93", "mksh")
def test_a_time_out_interrupts_the_open_of_a_fifo(kind: Kind, open_shell: Opens, tmp_path: Path) -> None:
    """F1: a shell that waits in open(2) gives up at once."""
    shell = open_shell(shell=kind.name, grace=8.0)
    result = shell.run("mkfifo ff; read x <ff; touch f", timeout=0.1)
    assert (result.exit_code, result.shell_state, (tmp_path / "f").exists()) == (124, "restored", False)
    assert result.duration < 0.1 + 0.35 * 8.0


@shells("zsh", "mksh")
def test_a_user_who_traps_the_interrupt_is_killed_instead(
    kind: Kind, open_shell: Opens, checkpointed: Callable[[BlockingExecutor], None]
) -> None:
    """F2: zsh and mksh cannot trap a real-time signal, so SIGUSR2 interrupts, which a user may trap."""
    shell = open_shell(shell=kind.name, grace=0.5)
    shell.run("A=1")
    checkpointed(shell)
    result = shell.run("trap : USR2; while :; do :; done", timeout=0.1)
    assert (result.exit_code, result.timed_out, result.shell_state) == (124, True, "restored")
    assert shown(shell.run("echo $A")) == (0, "1\n", "")


@shells("ksh93")
def test_an_interrupted_pipeline_saves_the_state_every_time(kind: Kind, open_shell: Opens) -> None:
    """F3: ksh93 hangs in a pipeline that follows an interrupted one, so printing the state must use none."""
    shell = open_shell(shell=kind.name, grace=8.0)
    for number in range(12):
        result = shell.run(f"X={number}; sleep 100 | cat", timeout=0.05)
        assert (result.exit_code, result.shell_state) == (124, "restored")
        assert result.duration < 0.05 + 0.35 * 8.0
        assert shown(shell.run("echo $X")) == (0, f"{number}\n", "")


@shells("yash")
def test_a_fifo_holds_until_the_last_rung_instead(kind: Kind, open_shell: Opens, tmp_path: Path) -> None:
    """F2: yash opens again after the signal, so it is killed within the grace period."""
    shell = open_shell(shell=kind.name, grace=0.5)
    result = shell.run("mkfifo ff; read x <ff; touch f", timeout=0.1)
    assert (result.exit_code, result.timed_out, (tmp_path / "f").exists()) == (124, True, False)
    assert result.duration < 0.1 + 0.5 + 0.5
    assert shown(shell.run("echo on")) == (0, "on\n", "")


def test_a_background_job_belongs_to_its_command(kind: Kind, shell: BlockingExecutor) -> None:
    """I1: `&` returns at once, and later output does not reach later results."""
    result = shell.run("sh -c 'sleep 100; echo late' & echo started")
    assert (result.exit_code, result.stdout, len(result.background)) == (0, "started\n", 1)
    assert shown(shell.run("echo next")) == (0, "next\n", "")
    result.background[0].stop()
