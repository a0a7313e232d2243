"""Cancelling a command ends it as a time-out does, then raises, at whatever point it comes (F6)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shellkit import LocalExecutor


async def cancel_after(task: asyncio.Task[Any], turns: int) -> bool:
    """Cancel `task` after that many turns of the loop; return whether it was still running."""
    for _ in range(turns):
        await asyncio.sleep(0)
    running = not task.done()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return running


@pytest.mark.parametrize(
    "command", ["true", "echo old; echo old >&2", "sleep 0.002; echo old", "exit 3", "cat", "sleep 0.001 & true"]
)
def test_cancelling_at_every_turn_of_the_loop(mode: str, command: str, tmp_path: Path) -> None:
    """F6: cancelled after any number of loop turns, a command leaves the session in order."""

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash", workdir=tmp_path, confinement="off") as shell:
            for turns in range(25):
                await cancel_after(asyncio.create_task(shell.run(command, input="x")), turns)
                result = await shell.run("echo new; (exit 3)", timeout=5)
                assert (result.stdout, result.stderr, result.exit_code) == ("new\n", "", 3)

    asyncio.run(main())


def test_cancelling_with_a_workdir_and_variables(tmp_path: Path) -> None:
    """F6: what holds for one command is undone when that command is cancelled at any point."""

    async def main() -> None:
        async with LocalExecutor(shell="bash", workdir=tmp_path, confinement="off") as shell:
            await shell.run("export A=kept")
            for turns in range(30):
                task = asyncio.create_task(shell.run("sleep 0.001", workdir="/", env={"A": "once", "B": "b"}))
                await cancel_after(task, turns)
                result = await shell.run('echo "$A${B-}" "$PWD"', timeout=5)
                assert result.stdout == f"kept {tmp_path}\n"

    asyncio.run(main())


@pytest.mark.parametrize("starts", [["true"], ["sleep 0.05"], []])
def test_cancelling_during_start(mode: str, starts: list[str]) -> None:
    """F6: cancelling during start-up leaks nothing, and the next call starts afresh."""

    async def main() -> None:
        for turns in range(12):
            shell = LocalExecutor(mode=mode, shell="bash", startup_commands=starts)
            await cancel_after(asyncio.create_task(shell.start() if turns % 2 else shell.run("true")), turns)
            assert (await shell.run("echo ok")).stdout == "ok\n"
            await shell.close()

    asyncio.run(main())


def test_cancelling_a_start_that_would_never_end(mode: str) -> None:
    """F6: a program that never answers is given up when its start is cancelled, and nothing of it is left."""

    async def main() -> None:
        shell = LocalExecutor(mode=mode, shell=["/bin/cat"], start_timeout=60)
        for turns in (1, 2, 5, 20):
            assert await cancel_after(asyncio.create_task(shell.start()), turns)
        await shell.close()

    asyncio.run(main())


def test_cancelling_ends_what_runs(mode: str, containment: str, tmp_path: Path, sleeps: Any) -> None:
    """F6, F2: cancelling takes down the command's processes before it raises, and the rest does not run."""

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash", workdir=tmp_path, confinement="off") as shell:
            lengths = [sleeps() for _ in range(3)]
            task = asyncio.create_task(
                shell.run(f"sleep {lengths[0]} & setsid sleep {lengths[1]} & sleep {lengths[2]}; touch ran")
            )
            while len(sleeps.left()) < 3:
                await asyncio.sleep(0.005)
            assert await cancel_after(task, 0)
            assert sleeps.left() == []
            assert (await shell.run("ls; echo next")).stdout == "next\n"

    asyncio.run(main())


def test_cancelling_twice_and_closing_at_once(mode: str, sleeps: Any) -> None:
    """F6: a second cancellation does not stop the ladder half-way, and `close` right after it is in order."""

    async def main() -> None:
        shell = LocalExecutor(mode=mode, shell="bash", grace=1.0)
        task = asyncio.create_task(shell.run(f"bash -c \"trap '' TERM INT; sleep {sleeps()}; sleep {sleeps()}\""))
        while not sleeps.left():
            await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.sleep(0)
        await shell.close()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sleeps.left() == []

    asyncio.run(main())


def test_a_nested_program_does_not_get_the_next_command(sleeps: Any) -> None:
    """F6: after a cancelled interpreter the next command runs in the session's shell."""

    async def main() -> None:
        async with LocalExecutor(shell="bash") as shell:
            pid = (await shell.run("echo $PPID")).stdout
            for nested in (
                "sh -c 'cat; sleep {}'",
                "python3 -c 'import time; time.sleep({})'",
                "exec sh -c 'sleep {}'",
            ):
                length = sleeps()
                task = asyncio.create_task(shell.run(nested.format(length)))
                while not sleeps.left() and "python" not in nested:
                    await asyncio.sleep(0.005)
                await asyncio.sleep(0.02)
                await cancel_after(task, 0)
                assert (await shell.run("echo $PPID")).stdout == pid

    asyncio.run(main())


def test_wait_for_and_timeout_contexts(mode: str, sleeps: Any) -> None:
    """F6: `asyncio.wait_for` and `asyncio.timeout` end a command as their own time-outs do."""

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash") as shell:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(shell.run(f"sleep {sleeps()}"), 0.1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await shell.run(f"sleep {sleeps()}")
            assert sleeps.left() == []
            assert (await shell.run("echo ok")).stdout == "ok\n"

    asyncio.run(main())


def test_cancelling_in_the_queue(mode: str, tmp_path: Path) -> None:
    """F6, G1: a call that is cancelled while it waits never runs and holds nobody up."""

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash", workdir=tmp_path, confinement="off") as shell:
            first = asyncio.create_task(shell.run("until [ -e go ]; do :; done; echo A", timeout=10))
            await asyncio.sleep(0)
            second = asyncio.create_task(shell.run("touch b-ran"))
            third = asyncio.create_task(shell.run("echo C"))
            await asyncio.sleep(0.02)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            (tmp_path / "go").touch()
            assert (await first).stdout == "A\n"
            assert (await third).stdout == "C\n"
            assert not (tmp_path / "b-ran").exists()

    asyncio.run(main())


def test_cancelling_close(mode: str, sleeps: Any) -> None:
    """F6, G3: a cancelled `close` has closed all the same."""

    async def main() -> None:
        for turns in range(6):
            shell = LocalExecutor(mode=mode, shell="bash")
            await shell.run(f"sleep {sleeps()} & true")
            await cancel_after(asyncio.create_task(shell.close()), turns)
            await shell.close()
            assert sleeps.left() == []

    asyncio.run(main())


def test_many_cancellations_leave_nothing(mode: str, sleeps: Any) -> None:
    """F6: fifty cancelled commands leave neither processes nor descriptors (see the fixture `nothing_left`)."""

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash") as shell:
            for _ in range(50):
                task = asyncio.create_task(shell.run(f"sleep {sleeps()}"))
                await asyncio.sleep(0.001)
                await cancel_after(task, 0)
            assert sleeps.left() == []

    asyncio.run(main())
