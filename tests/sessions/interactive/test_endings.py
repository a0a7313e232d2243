"""How programs are ended, and that nothing of them is left: whatever they do, and whoever ends."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shellkit.sessions.interactive import InteractiveSession, Pump

#: Seconds that starting and ending may take on a busy machine beyond the grace period.
MARGIN = 3.0

STUBBORN = {
    "ignores all signals": "trap '' INT TERM HUP; echo ready; while :; do sleep 1; done",
    "stops itself": "echo ready; kill -STOP $$; sleep 60",
    "daemon": "(setsid sh -c 'trap \"\" HUP INT TERM; echo ready; sleep 60; sleep 60' &) ; sleep 60",
    "job that outlives it": "sleep 60 & echo ready",
    "prints for ever": "echo ready; exec yes",
    "holds the output": "(trap '' INT TERM HUP; sleep 60) & echo ready; exit 0",
}


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("script", STUBBORN.values(), ids=STUBBORN)
def test_everything_is_gone_within_the_grace(script: str, tty: bool, containment: str) -> None:
    """F1, F2, G3: interrupt, terminate, kill; descendants, daemons and what is stopped included."""

    async def main() -> None:
        program = InteractiveSession(["sh", "-c", script], tty=tty, grace=1.0)
        await program.start()
        await program.expect("ready", 10)
        begun = time.monotonic()
        await program.terminate()
        assert time.monotonic() - begun < program.grace + MARGIN
        assert not program.running
        assert not program._program.survives()
        assert program.exit_code is not None

    asyncio.run(main())


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["python3", "-c", "import time; print('ready', flush=True); time.sleep(60)"], 130),
        (["sh", "-c", "trap '' INT; trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"], 7),
        (["bash", "--norc", "-ic", "echo ready; read -r x"], None),
        (["bash", "--norc", "-i"], None),
    ],
)
def test_whoever_obeys_may_say_goodbye(argv: list[str], code: int | None, tty: bool) -> None:
    """F2: the ladder begins gently, and an interactive shell, which ignores SIGTERM, is hung up on."""

    async def main() -> None:
        async with InteractiveSession(argv, tty=tty, grace=5.0) as program:
            await program.expect("ready|bash-.*[$#] ", 20)
        assert program.exit_code != 137
        assert code is None or program.exit_code == code

    asyncio.run(main())


@pytest.mark.parametrize("how", ["key", "signal"])
def test_an_interrupt_reaches_what_runs_in_the_foreground(how: str) -> None:
    """F2, first rung: Ctrl-C ends the command of an interactive shell, not the shell."""

    async def main() -> None:
        async with InteractiveSession(["bash", "--norc", "-i"]) as shell:
            await shell.expect(r"bash-.*[$#] $")
            await shell.write("sh -c 'echo begun; exec sleep 60'\n")
            await shell.expect("begun\r\n")
            if how == "key":
                await shell.send_keys("C-c")
            else:
                shell.interrupt()
            await shell.expect(r"bash-.*[$#] $", 10)
            await shell.write("echo $?\n")
            await shell.expect("130\r\n")

    asyncio.run(main())


def test_a_cancelled_end_is_a_sudden_one(tty: bool) -> None:
    """F6: whoever cancels the waiting for an end leaves nothing behind."""

    async def main() -> None:
        script = "trap '' INT TERM HUP; echo ready; while :; do sleep 1; done"
        async with InteractiveSession(["sh", "-c", script], tty=tty, grace=60.0) as program:
            await program.expect("ready", 10)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(program.terminate(), 0.05)
            assert program.exit_code == 137
            assert not program._program.survives()

    asyncio.run(main())


def test_an_interrupt_ends_a_program_that_has_turned_the_key_off(tty: bool) -> None:
    """Issue 5, build 1, `interrupt`: the signal comes although the terminal is raw, or there is none."""

    async def main() -> None:
        raw = "import tty, sys; tty.setraw(0)" if tty else "0"
        script = f"import time\n{raw}\nprint('ready', flush=True)\ntime.sleep(60)"
        async with InteractiveSession(["python3", "-c", script], tty=tty) as program:
            await program.expect("ready", 10)
            program.interrupt()
            assert await program.wait(10) == 130

    asyncio.run(main())


def test_cycles_leave_nothing(tty: bool) -> None:
    """Issue 5, must hold: no PTY, process, thread or descriptor is left by many starts and stops (soak: 1,000)."""

    async def main() -> None:
        pump = Pump()
        before = None
        for number in range(60):
            argv = (["cat"], ["sh", "-c", "sleep 60 & exit"], ["true"])[number % 3]
            program = InteractiveSession(argv, tty=tty, pump=pump)
            await program.start()
            if number % 2:
                await program.terminate()
            else:
                program.abandon()
            now = (len(os.listdir("/proc/self/fd")), threading.active_count())
            before = before or now
            assert now == before
        assert not pump._watchers
        pump.stop()

    asyncio.run(main())


def test_many_end_together_within_the_grace(containment: str) -> None:
    """G3: 32 programs of one executor that obey nothing are ended at the same time."""

    async def main() -> None:
        pump = Pump()
        script = "trap '' INT TERM HUP; echo ready; while :; do sleep 1; done"
        programs = [InteractiveSession(["sh", "-c", script], pump=pump, grace=2.0) for _ in range(32)]
        for program in programs:
            await program.start()
        for program in programs:
            await program.expect("ready", 20)
        await asyncio.gather(*(program.terminate() for program in programs))
        assert not any(program._program.survives() for program in programs)
        assert all(program.exit_code == 137 for program in programs)
        pump.stop()

    asyncio.run(main())


def test_a_forgotten_program_is_ended(tty: bool, eventually: Callable[..., None]) -> None:
    """G3: what nobody holds any more is ended by the garbage collector."""
    pids: list[int] = []

    async def main() -> None:
        program = InteractiveSession(["sh", "-c", "sleep 60; :"], tty=tty)
        await program.start()
        pids.append(program.pid)

    asyncio.run(main())
    gc.collect()
    eventually(lambda: not alive(pids[0]))


_HOST = """
    import asyncio, os, signal, sys
    from shellkit.sessions.interactive import InteractiveSession

    async def main():
        program = InteractiveSession(["sh", "-c", "trap '' HUP INT TERM; setsid sleep 38417 & echo $!; cat"], tty={tty})
        await program.start()
        found = await program.expect(r"(\\d+)\\r?\\n")
        print(program.pid, found.groups[0], flush=True)
        globals()["kept"] = program
        {end}

    asyncio.run(main())
"""


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit()", "raise RuntimeError", "os.abort()"]
)
def test_the_host_ends_and_nothing_is_left(end: str, tty: bool, eventually: Callable[..., None]) -> None:
    """G3, G4: the interpreter exits without closing, or is killed: nothing is left after 5 s."""
    code = textwrap.dedent(_HOST).format(tty=tty, end=end)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    pids = [int(word) for word in answer.stdout.split()]
    assert len(pids) == 2, answer.stderr
    eventually(lambda: not any(map(alive, pids)))


def test_a_host_that_waits_for_any_child_hurts_nothing(tty: bool) -> None:
    """D1: when the host's own SIGCHLD handling takes the exit code, the end is noticed; only a new kernel knows it."""

    async def main() -> None:
        previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps at once (wait(2), "Notes")
        try:
            async with InteractiveSession(["cat"], tty=tty) as program:
                program.close_stdin()
                assert await program.wait(10) in (0, None)
                assert not program.running
        finally:
            signal.signal(signal.SIGCHLD, previous)

    asyncio.run(main())


def test_a_time_out_of_the_caller_ends_nothing(tty: bool, tmp_path: Path) -> None:
    """F6: a cancelled wait leaves the program and the next wait alone; leaving the block ends it."""

    async def main() -> None:
        async with InteractiveSession(["cat"], tty=tty, record=tmp_path / "session.cast") as cat:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(cat.expect("never", None), 0.01)
            await cat.write("here\n")
            await cat.expect("here", 10)
        assert '"here' in (tmp_path / "session.cast").read_text()

    asyncio.run(main())
