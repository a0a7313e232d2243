"""One owner, many callers: order of arrival, any loop, any thread (G1, G2)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, LocalExecutor


def test_calls_run_one_at_a_time_in_order(mode: str, tmp_path: Path) -> None:
    """G1: calls that start at the same time run one after the other, in order of arrival, each with its own output."""

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash", workdir=tmp_path, confinement="off") as shell:
            results = await asyncio.gather(
                *(shell.run(f"echo {n} >> order; echo {n}; echo e{n} >&2") for n in range(60))
            )
        assert [r.stdout for r in results] == [f"{n}\n" for n in range(60)]
        assert [r.stderr for r in results] == [f"e{n}\n" for n in range(60)]

    asyncio.run(main())
    assert (tmp_path / "order").read_text().split() == [str(n) for n in range(60)]


def test_parallel_calls_share_one_directory(tmp_path: Path) -> None:
    """G1: two calls on one session share its directory, so the second starts where the first ended."""

    async def main() -> None:
        async with LocalExecutor(shell="bash", workdir=tmp_path, confinement="off") as shell:
            await shell.run("mkdir -p pa pb")
            first, second = await asyncio.gather(shell.run("cd pa && pwd"), shell.run("cd pb && pwd"))
        assert (first.stdout, first.exit_code) == (f"{tmp_path}/pa\n", 0)
        assert (second.stdout, second.exit_code) == ("", 1)

    asyncio.run(main())


def test_sessions_do_not_influence_each_other(tmp_path: Path) -> None:
    """G1: two executors in their own directories, used in turn, never see each other's state."""
    shells = []
    for name in ("a", "b"):
        (tmp_path / name / "sub").mkdir(parents=True)
        shells.append(LocalExecutor(shell="bash", workdir=tmp_path / name, confinement="off").sync())
    for _ in range(50):
        for name, shell in zip("ab", shells, strict=True):
            assert shell.run("cd sub && pwd && cd ..").stdout == f"{tmp_path}/{name}/sub\n"
    for shell in shells:
        shell.close()


def test_time_in_the_queue_does_not_count(mode: str) -> None:
    """F5: a call that waits for its turn has its whole time-out when it runs."""

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash") as shell:
            slow = asyncio.create_task(shell.run("sleep 0.5"))
            await asyncio.sleep(0)
            quick = await shell.run("sleep 0.05; echo quick", timeout=0.4)
            assert (quick.stdout, quick.timed_out) == ("quick\n", False)
            assert quick.duration < 0.4
            await slow

    asyncio.run(main())


def test_one_session_in_several_event_loops() -> None:
    """G2: a second and third `asyncio.run` go on with the same shell."""
    shell = LocalExecutor(shell="bash")
    first = asyncio.run(shell.run("x=1; echo $$"))
    second = asyncio.run(shell.run("echo $$"))
    assert first.stdout == second.stdout
    assert asyncio.run(shell.run("echo $x")).stdout == "1\n"
    asyncio.run(shell.close())
    asyncio.run(shell.close())


def test_one_session_async_and_blocking_in_turn() -> None:
    """G2: a loop and `sync()` may use the same session in turn."""
    shell = LocalExecutor(shell="bash")
    asyncio.run(shell.run("x=1"))
    with shell.sync() as blocking:
        blocking.run("x=$((x+1))")
        assert asyncio.run(shell.run("echo $x")).stdout == "2\n"
        assert blocking.run("echo $x").stdout == "2\n"


def test_one_session_from_many_threads(either: BlockingExecutor) -> None:
    """G2: threads of a pool may share a session; every call gets its own result."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: either.run(f"echo {n}; echo e{n} >&2; (exit {n % 256})"), range(200)))
    assert [(r.stdout, r.stderr, r.exit_code) for r in results] == [(f"{n}\n", f"e{n}\n", n % 256) for n in range(200)]


def test_threads_and_loops_at_the_same_time(mode: str) -> None:
    """G2: two event loops and two plain threads use one session at the same time."""
    shell = LocalExecutor(mode=mode, shell="bash")
    wrong: list[str] = []

    def check(number: int, text: str) -> None:
        if text != f"{number}\n":
            wrong.append(text)

    async def in_a_loop(first: int) -> None:
        for number in range(first, first + 40):
            check(number, (await shell.run(f"echo {number}")).stdout)

    def in_a_thread(first: int) -> None:
        for number in range(first, first + 40):
            check(number, shell.sync().run(f"echo {number}").stdout)

    threads = [threading.Thread(target=asyncio.run, args=(in_a_loop(first),)) for first in (0, 100)]
    threads += [threading.Thread(target=in_a_thread, args=(first,)) for first in (200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    shell.sync().close()
    assert wrong == []


def test_a_loop_that_ends_while_its_call_waits(tmp_path: Path) -> None:
    """G2: a loop that is torn down with a call in the queue holds up nobody else."""
    shell = LocalExecutor(shell="bash", workdir=tmp_path, confinement="off")
    running = threading.Thread(target=lambda: shell.sync().run("touch up; until [ -e go ]; do :; done", timeout=10))
    running.start()
    while not (tmp_path / "up").exists():
        pass

    async def give_up() -> None:
        task = asyncio.create_task(shell.run("touch never"))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(give_up())
    (tmp_path / "go").touch()
    running.join()
    assert shell.sync().run("ls").stdout == "go\nup\n"
    shell.sync().close()


@pytest.fixture(scope="module")
def uvloop_has_run() -> None:
    """libuv opens a pipe for signals with the first loop of a process and keeps it."""
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.sleep(0))


@pytest.mark.requires("uvloop")
def test_uvloop(uvloop_has_run: None, mode: str, sleeps: Any) -> None:
    """G2: the same under uvloop: results, time-outs, cancelling and live output."""
    import uvloop

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash") as shell:
            seen: list[str] = []
            results = await asyncio.gather(*(shell.run(f"echo {n}") for n in range(30)))
            assert [r.stdout for r in results] == [f"{n}\n" for n in range(30)]
            assert (await shell.run("seq 1 20000 >&2", on_output=lambda _, text: seen.append(text))).exit_code == 0
            assert "".join(seen).endswith("20000\n")
            assert (await shell.run(f"sleep {sleeps()}", timeout=0.1)).timed_out
            task = asyncio.create_task(shell.run(f"sleep {sleeps()}"))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await shell.run("exit 3")).exit_code == 3
            assert (await shell.run("echo ok")).stdout == "ok\n"
            assert sleeps.left() == []

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_the_loop_stays_free(mode: str) -> None:
    """G2: the event loop serves other tasks while a command runs, prints, and is ended."""

    async def main() -> None:
        longest = 0.0

        async def beat() -> None:
            nonlocal longest
            loop = asyncio.get_running_loop()
            last = loop.time()
            while True:
                await asyncio.sleep(0.001)
                longest = max(longest, loop.time() - last)
                last = loop.time()

        async with LocalExecutor(mode=mode, shell="bash") as shell:
            heart = asyncio.create_task(beat())
            await shell.run("seq 1 2000000")
            await shell.run("trap '' INT TERM; sleep 5", timeout=0.2)
            await shell.run("exit 3")
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
        assert longest < 0.5

    asyncio.run(main())


@pytest.mark.slow
def test_an_idle_session_costs_no_processor_time(shell: BlockingExecutor, eventually: Any) -> None:
    """K, E4: neither a running command, an idle session, nor a shell that closed its streams keeps the host busy."""
    import time

    shell.run("exec 5>&1; sleep 0.4 & exec 1>&-")
    begun = time.process_time()
    shell.run("sleep 1")
    time.sleep(0.5)  # the thing measured is what an idle second costs
    assert time.process_time() - begun < 0.15


def test_a_host_with_a_child_watcher_keeps_its_own_children(mode: str) -> None:
    """G1: the host's own subprocesses keep their exit codes, and ours do not become zombies."""

    async def main() -> None:
        async with LocalExecutor(mode=mode, shell="bash") as shell:
            own = await asyncio.create_subprocess_exec("sh", "-c", "exit 7")
            result = await shell.run("(sleep 0.01 &) ; exit 5")
            assert result.exit_code == 5
            assert await own.wait() == 7

    asyncio.run(main())


def test_a_host_that_reaps_any_child(tmp_path: Path) -> None:
    """D1: a host that waits for any child (SIGCHLD handler) may take our shell's status; nothing hangs or raises."""
    script = """
        import os, signal
        def reap(*_):
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
        signal.signal(signal.SIGCHLD, reap)
        from shellkit import LocalExecutor
        for mode in ("persistent", "stateless"):
            with LocalExecutor(mode=mode, shell="bash").sync() as shell:
                for _ in range(20):
                    result = shell.run("echo a; exit 5")
                    assert result.stdout == "a\\n" and result.exit_code in (5, None), result
                    assert result.exit_code == 5 or "Judge by what was printed" in result.for_model(), result
                assert shell.run("echo ok").stdout == "ok\\n"
    """
    root = str(Path(sys.modules["shellkit"].__file__ or "").parent.parent)
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=True,
        timeout=60,
        env={"PYTHONPATH": root, "PATH": "/usr/bin:/bin"},
    )
