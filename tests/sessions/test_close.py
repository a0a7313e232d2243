"""`close` ends everything, whenever it comes and whoever forgets it (G3)."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
import time
from typing import Any

import pytest

from shellkit import BlockingExecutor, ExecutorClosed, LocalExecutor
from shellkit.sessions.live import Capture


def test_close_during_a_run(mode: str, sleeps: Any) -> None:
    """G3: `close()` from another task ends the running command with `ExecutorClosed`, its output included."""

    async def main() -> None:
        shell = LocalExecutor(mode=mode, shell="bash", grace=1.0)
        task = asyncio.create_task(shell.run(f"echo partial; sleep {sleeps()}"))
        while not sleeps.left():
            await asyncio.sleep(0.005)
        begun = time.monotonic()
        await shell.close()
        assert time.monotonic() - begun < 2.0
        with pytest.raises(ExecutorClosed) as closed:
            await task
        assert closed.value.result is not None
        assert closed.value.result.stdout == "partial\n"
        assert sleeps.left() == []
        with pytest.raises(ExecutorClosed):
            await shell.run("echo x")

    asyncio.run(main())


def test_close_from_another_thread(either: BlockingExecutor, sleeps: Any) -> None:
    """G3, G2: `close()` from another thread ends a blocking run with `ExecutorClosed`."""
    length = sleeps()

    def close() -> None:
        while not sleeps.left():
            time.sleep(0.005)
        either.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(ExecutorClosed) as closed:
        either.run(f"echo partial; sleep {length}")
    closing.join()
    assert closed.value.result is not None
    assert closed.value.result.stdout == "partial\n"
    assert sleeps.left() == []


def test_close_while_calls_wait(mode: str, sleeps: Any) -> None:
    """G3: calls in the queue end with `ExecutorClosed` and never run."""

    async def main() -> None:
        shell = LocalExecutor(mode=mode, shell="bash", grace=1.0)
        tasks = [asyncio.create_task(shell.run(f"sleep {sleeps()}")) for _ in range(5)]
        while not sleeps.left():
            await asyncio.sleep(0.005)
        await asyncio.gather(shell.close(), shell.close())
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, ExecutorClosed)
        assert sleeps.left() == []

    asyncio.run(main())


def test_close_is_idempotent(mode: str) -> None:
    """G3: closing twice, before the start, and after a death of the shell never raises."""
    shell = LocalExecutor(mode=mode, shell="bash").sync()
    shell.close()
    shell.close()
    shell = LocalExecutor(mode=mode, shell="bash").sync()
    shell.run("kill -9 $$")
    shell.close()
    shell.close()
    for method in (lambda: shell.run("true"), shell.start, shell.restart):
        with pytest.raises(ExecutorClosed, match="closed"):
            method()


def test_close_right_as_a_command_ends(mode: str) -> None:
    """G3: twenty closes at the very end of a command neither hang nor raise anything else."""

    async def main() -> None:
        for turns in range(20):
            shell = LocalExecutor(mode=mode, shell="bash")
            await shell.start()
            task = asyncio.create_task(shell.run("true"))
            for _ in range(turns):
                await asyncio.sleep(0)
            await shell.close()
            (result,) = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(result, ExecutorClosed) or result.exit_code == 0  # type: ignore[union-attr]  # a ShellResult

    asyncio.run(main())


@pytest.mark.parametrize(
    "stubborn",
    [
        "trap '' INT TERM HUP; sleep S & sleep S &",
        "setsid sh -c \"trap '' TERM INT HUP; sleep S\" &",
        "(setsid sh -c 'sleep S & sleep S & exit' &)",
        "for i in 1 2 3 4 5 6 7 8 9 10; do nohup sleep S >/dev/null 2>&1 & done",
        "trap 'sleep S' EXIT",
        "trap 'while :; do :; done' EXIT",
        "sh -c 'kill -STOP $$; sleep S' &",
        "coproc { sleep S; }",
        "exec 7> >(sleep S)",
        "sleep S & disown",
    ],
)
def test_close_ends_everything_within_the_grace_period(
    open_shell: Any, containment: str, stubborn: str, sleeps: Any
) -> None:
    """G3: whatever a session has started is gone when `close` returns, which takes no longer than `grace`."""
    shell = open_shell(grace=1.0)
    shell.run(re.sub(r"\bS\b", lambda _: sleeps(), stubborn))
    begun = time.monotonic()
    shell.close()
    assert time.monotonic() - begun < 1.5
    assert sleeps.left() == []


@pytest.mark.requires("cgroup")
@pytest.mark.parametrize("escape", ["env -i setsid -f sleep S", "(unset SHELLKIT_SESSION; setsid -f sleep S)"])
def test_nothing_escapes_in_the_first_moment(either: BlockingExecutor, escape: str, sleeps: Any) -> None:
    """G3: what leaves its parent and drops its environment is gone after `close`, as a shell's first command too."""
    either.run(re.sub(r"\bS\b", sleeps(), escape))
    assert len(sleeps.left()) == 1
    either.close()
    assert sleeps.left() == []


def test_many_jobs_are_gone_after_close(either: BlockingExecutor, sleeps: Any) -> None:
    """G3: sixty detached builds are ended by `close`, which does not give up after the first."""
    lengths = " ".join(sleeps() for _ in range(60))
    result = either.run(f"for i in {lengths}; do nohup sleep $i >/dev/null 2>&1 & done; echo started")
    assert result.stdout == "started\n"
    either.close()
    assert sleeps.left() == []


def test_an_executor_that_is_garbage(mode: str, sleeps: Any) -> None:
    """G3: an executor that nobody holds any more ends what it had started."""
    shell = LocalExecutor(mode=mode, shell="bash")
    shell.sync().run(f"sleep {sleeps()} & sleep {sleeps()} & true")
    del shell
    gc.collect()
    assert sleeps.left() == []


def test_garbage_that_is_found_while_its_job_is_read(monkeypatch: pytest.MonkeyPatch, eventually: Any) -> None:
    """G3: a collection in the middle of draining a job's output, under the job's lock, ends that session all the same."""
    found = threading.Event()
    drain = Capture.drain

    def drain_and_collect(capture: Capture, most: int) -> int:
        if threading.current_thread().name == "shellkit-attendant" and forgotten.is_set() and not found.is_set():
            found.set()
            gc.collect()
        return drain(capture, most)

    monkeypatch.setattr(Capture, "drain", drain_and_collect)
    forgotten = threading.Event()
    executor = LocalExecutor(shell="bash")
    executor.sync().run("yes & echo started")
    executor.itself = executor  # type: ignore[attr-defined]  # a cycle, which only a collection finds
    gc.disable()
    try:
        del executor
        forgotten.set()
        eventually(found.is_set)
    finally:
        gc.enable()


def test_a_hundred_sessions_one_after_the_other(mode: str) -> None:
    """G3: sessions leave no descriptor, thread or process behind (see the fixture `nothing_left`)."""
    for number in range(30):
        with LocalExecutor(mode=mode, shell="bash").sync() as shell:
            assert shell.run(f"echo {number}").stdout == f"{number}\n"
            assert shell.run("sleep 5", timeout=0.01).timed_out


def test_twenty_sessions_at_the_same_time(mode: str, sleeps: Any) -> None:
    """G3: many live sessions do not end each other's processes."""
    shells = [LocalExecutor(mode=mode, shell="bash").sync() for _ in range(20)]
    lengths = [sleeps() for _ in shells]
    for shell, length in zip(shells, lengths, strict=True):
        shell.run(f"sleep {length} & true")
    if mode == "persistent":
        for index, shell in enumerate(shells):
            assert len(sleeps.left()) == len(shells) - index
            shell.close()
    for shell in shells:
        shell.close()
    assert sleeps.left() == []


def test_a_failed_body_still_closes(mode: str, sleeps: Any) -> None:
    """G3: `with` and `async with` close when their body raises."""
    with pytest.raises(RuntimeError), LocalExecutor(mode=mode, shell="bash").sync() as shell:
        shell.run(f"sleep {sleeps()} &")
        raise RuntimeError
    assert sleeps.left() == []
