"""The executor contract over `LocalExecutor` in both modes, and corners that only a scripted shell can show."""

from __future__ import annotations

from typing import Any

import pytest

from shellkit import Executor, LocalExecutor, SpawnError
from shellkit.testing import (
    Await,
    ExecutorContract,
    Exit,
    Expect,
    Hang,
    Report,
    ScriptedExecutor,
)

#: What a shell does first: it reads the prelude, and reports that it is ready.
HELLO = (Expect(rb"__skt \"\$\?\"\n"), Report())


class TestPersistent(ExecutorContract):
    """One shell for all commands."""

    def make_executor(self, **options: Any) -> Executor:
        return LocalExecutor(**options)


class TestStateless(ExecutorContract):
    """A fresh shell for each."""

    persistent = False

    def make_executor(self, **options: Any) -> Executor:
        return LocalExecutor(mode="stateless", **options)


@pytest.mark.parametrize("chunk", [1, 2, 7])
def test_report_in_pieces(chunk: int) -> None:
    """A report that arrives in many small writes is read as one."""
    executor = ScriptedExecutor((*HELLO, Expect(rb"true.*\n"), Report(5, b"/some where", chunk=chunk)))
    with executor.sync() as shell:
        result = shell.run("true")
    assert (result.exit_code, result.workdir) == (5, "/some where")
    executor.check()


def test_shell_that_never_answers() -> None:
    """A shell that does not report at the start is a SpawnError within `start_timeout`, and is not left behind."""
    executor = ScriptedExecutor((Expect(rb"\n"), Hang()), start_timeout=0.1)
    with pytest.raises(SpawnError, match=r"did not answer within 0\.1 s"):
        executor.sync().start()
    executor.sync().close()
    assert "kill" in executor.started[0].signals
    executor.check()


def test_shell_that_ends_at_the_start() -> None:
    """A shell that ends before it has reported is a SpawnError that tells its exit code."""
    executor = ScriptedExecutor((Exit(42),))
    with pytest.raises(SpawnError, match="exit code 42"):
        executor.sync().start()
    executor.sync().close()


def test_shell_dies_in_the_middle_of_a_report() -> None:
    """Half a report is none: the exit code is the process's, and the next command gets a new shell."""
    dying = (*HELLO, Expect(rb"first.*\n"), Report(0, b"/gone", chunk=0), Exit(9))
    executor = ScriptedExecutor(dying, (*HELLO, Expect(rb"second.*\n"), Report(3)))
    with executor.sync() as shell:
        shell.run("first")
        result = shell.run("second")
    assert result.exit_code == 3
    executor.check()


def test_shell_that_dies_while_a_command_runs() -> None:
    """The end of the process is the end of the command, although no report ever came."""
    dying = (*HELLO, Expect(rb"first.*\n"), Exit(137))
    executor = ScriptedExecutor(dying, (*HELLO, Expect(rb"second.*\n"), Report(0)))
    with executor.sync() as shell:
        lost = shell.run("first")
        result = shell.run("second")
    assert (lost.exit_code, lost.shell_state) == (137, "restarted")
    assert result.exit_code == 0
    executor.check()


def test_shell_dies_while_it_prints_its_state() -> None:
    """D4: it is like any other that ended while idle: the next result tells what is gone."""
    dying = (*HELLO, Expect(rb"first.*\n"), Report(), Expect(rb"__skk.*\n"), Exit(0))
    executor = ScriptedExecutor(dying, (*HELLO, Expect(rb"second.*\n"), Report(3)))
    with executor.sync() as shell:
        assert shell.run("first").shell_state == "alive"
        result = shell.run("second", on_timeout="background")
    assert (result.exit_code, result.shell_state) == (3, "restarted")
    assert "ended while it was idle" in result.notes[0]
    executor.check()


def test_ladder_of_a_shell_that_ignores_everything() -> None:
    """At the time-out the rungs come in order: interrupt, terminate, kill."""
    stubborn = (*HELLO, Expect(rb"forever.*\n"), Await("interrupt"), Await("terminate"), Hang())
    executor = ScriptedExecutor(stubborn, HELLO, grace=0.2)
    with executor.sync() as shell:
        result = shell.run("forever", timeout=0.05)
    assert (result.timed_out, result.exit_code) == (True, 124)
    first_of_each = dict.fromkeys(executor.started[0].signals)
    assert [signal for signal in first_of_each if signal != "close"] == ["interrupt", "terminate", "kill"]
