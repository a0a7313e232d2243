"""Ctrl-C at any moment ends the command and leaves the session in order (F6), under `sync()` and under asyncio."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import attrs
import pytest

from shellkit import BlockingExecutor, LocalExecutor, ShellResult
from shellkit.sessions.drive import drive_async


class _CtrlC:
    """Sends SIGINT to this process at the n-th point of shellkit's code where Python looks for signals.

    That is where a function begins and where a call of a C function has returned, which a profiler sees. One point is
    left out: a turn that is not given back because Ctrl-C came as `leave` was called cannot be.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        inside = "/shellkit/" in frame.f_code.co_filename and frame.f_code.co_name != "leave"
        if inside and event in ("call", "c_return"):
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)

    def during(self, shell: BlockingExecutor, command: str) -> bool:
        """Run a command, and return whether it was interrupted."""
        sys.setprofile(self)
        try:
            shell.run(command)
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


@pytest.fixture
def ctrl_c_raises() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, as it does unless somebody else has a use for it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_raises")
def test_ctrl_c_at_any_point_of_a_call(shell: BlockingExecutor) -> None:
    """F6: wherever KeyboardInterrupt comes, nothing of the command shows later, and the session has its state."""
    for point in itertools.count(1, 5):
        shell.run("x=1")
        interrupted = _CtrlC(point).during(shell, "echo old; echo old >&2; x=2")
        result = shell.run("echo new $((x > 0)); (exit 3)", timeout=5)
        assert (result.stdout, result.stderr, result.exit_code) == ("new 1\n", "", 3)
        if not interrupted:
            assert point > 100
            return


@pytest.mark.usefixtures("ctrl_c_raises")
def test_what_a_call_that_was_broken_off_has_left_is_told(shell: BlockingExecutor) -> None:
    """D2, F6: a call that is broken off before its command is sent costs the shell, whose state goes on."""
    shell.run("x=1")
    for point in itertools.count(1, 3):
        assert _CtrlC(point).during(shell, "true")
        result = shell.run("echo $x")
        assert result.stdout == "1\n"
        if result.shell_state == "restored" and "broken off" in "".join(result.notes):
            return


def test_ctrl_c_under_a_runner_ends_the_command(mode: Any, sleeps: Any) -> None:
    """F6: the first Ctrl-C cancels what `asyncio.run` runs; the command is ended before it returns, and life goes on."""
    shell = LocalExecutor(mode=mode, shell="bash")
    length = sleeps()

    async def main() -> ShellResult:
        return await shell.run(f"echo old; sleep {length}", timeout=20)

    def press() -> None:
        while not sleeps.left():
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    pressing.join()
    assert sleeps.left() == []
    assert asyncio.run(shell.run("echo new")).stdout == "new\n"
    asyncio.run(shell.close())


def test_an_exception_in_a_step_ends_the_command(sleeps: Any) -> None:
    """F6: what a step raises is raised when the command has ended, by its ladder, under asyncio as in a thread."""

    def listen(stream: str, data: memoryview) -> None:
        raise RuntimeError("mine")

    async def main() -> None:
        async with LocalExecutor(shell="bash") as shell:
            await shell.run("x=1")
            call = shell._make_call(f"echo old; sleep {sleeps()}", 20, None, None, None, False)
            assert shell._session is not None
            with pytest.raises(RuntimeError, match="mine"):
                await drive_async(shell._session.run(attrs.evolve(call, listener=listen)))
            assert sleeps.left() == []
            assert (await shell.run("echo new $x")).stdout == "new 1\n"

    asyncio.run(main())


def test_a_listener_that_raises_ends_the_command(shell: BlockingExecutor, sleeps: Any) -> None:
    """F6: so it is with what the listener of `run_into` raises."""

    def listen(stream: str, data: bytes) -> None:
        raise RuntimeError("mine")

    shell.run("x=1")
    with pytest.raises(RuntimeError, match="mine"):
        shell.run_into(f"echo old; sleep {sleeps()}", listen)
    assert sleeps.left() == []
    assert shell.run("echo new $x").stdout == "new 1\n"


def test_what_holds_for_one_command_is_not_undone_twice(shell: BlockingExecutor, checkpointed: Any) -> None:
    """D4: a shell that is killed while a variable is changed for one command leaves that variable as it was before."""
    shell.run("export A=kept; B=plain")
    checkpointed(shell)
    shell.run("kill -9 $$", env={"A": "once", "B": "once", "C": "once"}, workdir="/")
    assert shell.run("echo $A ${B-gone} ${C-gone}").stdout == "kept plain gone\n"
