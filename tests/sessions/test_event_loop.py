"""However quick the shell is, a command gives the event loop a turn (F6): the driver polls before it sleeps."""

from __future__ import annotations

import asyncio

import pytest

from shellkit import LocalExecutor


def test_other_tasks_run_between_quick_commands(mode: str) -> None:
    """F6: a task that runs one command after the other does not keep the loop from the others."""

    async def main() -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with LocalExecutor(shell="bash", mode=mode) as shell:
            await shell.run("true")
            counting = asyncio.create_task(count())
            for commands in range(1, 31):
                await shell.run("true")
                assert turns >= commands
            counting.cancel()

    asyncio.run(main())


def test_a_time_out_reaches_a_task_that_runs_quick_commands() -> None:
    """F6: `asyncio.timeout` around commands without end ends them, and the session goes on."""

    async def main() -> None:
        async with LocalExecutor(shell="bash") as shell:
            await shell.run("n=0")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    while True:
                        await shell.run("n=$((n + 1))")
            assert int((await shell.run("echo $n")).stdout) > 0

    asyncio.run(main())


def test_a_cancellation_while_a_quick_command_runs_is_raised() -> None:
    """F6: what was asked for before the command began is not forgotten because it is over so soon."""

    async def main() -> None:
        async with LocalExecutor(shell="bash") as shell:
            await shell.run("true")

            async def cancelled() -> None:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await shell.run("true")

            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(cancelled())
            assert (await shell.run("echo ok")).stdout == "ok\n"

    asyncio.run(main())
