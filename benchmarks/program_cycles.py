"""A thousand starts and stops of interactive programs; at the end as many descriptors, processes and MiB as before.

    python -m benchmarks.program_cycles [--cycles N]

In turn in a terminal and on pipes, ended gently, at once, by themselves and with something left behind, and drained
by one thread. Issue 5, "must hold": no leaked PTY, process, thread or descriptor after 1,000 start/stop cycles.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import sys
import time

from shellkit.errors import ProcessEnded, StdinClosed
from shellkit.sessions.interactive import InteractiveSession, Pump

from .census import differences, settled, watch_directories
from .measure import report

_WARM_UP = 100
_TOGETHER = 4

_PROGRAMS = (
    "cat",
    "echo done",
    "exec yes",
    "setsid sleep 100 & exit 3",
    "echo ready; exec python3 -q",
    "stty -echo 2>/dev/null; printf 'Password: '; read x",
)


async def _cycle(number: int, pump: Pump, env: dict[bytes, bytes]) -> None:
    argv = ["sh", "-c", _PROGRAMS[number % len(_PROGRAMS)]]
    program = InteractiveSession(argv, tty=number % 2 == 0, env=env, pump=pump, grace=1.0)
    await program.start()
    with contextlib.suppress(ProcessEnded, StdinClosed):
        await program.write("1\n" * (number % 50))
    await program.read_until_quiet(0.002, 0.02)
    if program.tty and number % 5 == 0:
        program.resize(10 + number % 50, 80)
        await program.screen()
    if number % 3:
        await program.terminate()
    else:
        program.abandon()
    program.read()


async def _cycles(count: int) -> None:
    pump = Pump()
    env = {**os.environb, b"SHELLKIT_CENSUS": b"%d" % os.getpid()}
    numbers = itertools.count()

    async def one_after_the_other() -> None:
        while (number := next(numbers)) < count:
            await _cycle(number, pump, env)

    await asyncio.gather(*(one_after_the_other() for _ in range(_TOGETHER)))
    pump.stop()


def main() -> bool:
    """Run the cycles and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.program_cycles")
    parser.add_argument("--cycles", type=int, default=1000)
    options = parser.parse_args()
    watch_directories()
    asyncio.run(_cycles(_WARM_UP))
    begin = settled()
    begun = time.perf_counter()
    asyncio.run(_cycles(options.cycles))
    spent = time.perf_counter() - begun
    end = settled()
    cycles = f"{options.cycles} cycles of {spent / options.cycles * 1e3:.0f} ms"
    return report("program_cycles", differences(begin, end, f"after {cycles}"))


if __name__ == "__main__":
    sys.exit(not main())
