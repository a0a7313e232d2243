"""Ten minutes of everything that can happen to a session; at the end as many descriptors, processes and MiB as before.

    python -m benchmarks.soak [--minutes N] [--seed N]

Random commands, time-outs, cancels and kills on executors of both modes. What is counted is counted when nothing
runs: descriptors and threads of this process, its children and whatever was started in a session of this run,
cgroups and temporary directories, and resident memory. Prints a table and exits non-zero if anything has grown.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import attrs

from shellkit import ExecutorClosed, LocalExecutor, SpawnError

from .census import Census, differences, settled, watch_directories
from .measure import Row, report

_WARM_UP = 60.0
_SLICE = 60.0
_HANG = 120.0

Executor = LocalExecutor
Event = Callable[[Executor, random.Random], Coroutine[Any, Any, None]]


async def _small(shell: Executor, dice: random.Random) -> None:
    number = dice.randrange(10**6)
    result = await shell.run(f"N={number}; echo $N; echo $N >&2")
    assert result.stdout == result.stderr == f"{number}\n", result


async def _burst(shell: Executor, dice: random.Random) -> None:
    numbers = range(dice.randrange(2, 12))
    results = await asyncio.gather(*(shell.run(f"echo {number}") for number in numbers))
    assert [result.stdout for result in results] == [f"{number}\n" for number in numbers]


async def _large(shell: Executor, dice: random.Random) -> None:
    size = dice.randrange(1, 5_000_000)
    result = await shell.run(f"head -c {size} /dev/zero", on_output=None if dice.random() < 0.5 else lambda *_: None)
    assert result.exit_code == 0, result


async def _arguments(shell: Executor, dice: random.Random) -> None:
    text = "x" * dice.randrange(10, 60_000)  # below the limit of output
    result = await shell.run(f"cat; # {text}", input=text, env={"SOAK": "1"}, workdir="/")
    assert result.stdout == text, (len(result.stdout), len(text), result.notes)


async def _broken(shell: Executor, dice: random.Random) -> None:
    command = dice.choice(['echo "open', "if true; then", "echo )", "cat <<X", "}; echo x; {"])
    await shell.run(command)


async def _ending(shell: Executor, dice: random.Random) -> None:
    command = dice.choice(
        ["exit 7", "set -e; false", "kill -9 $$", "kill -TERM $$", "exec true", "set -u; echo $NO_SUCH"]
    )
    await shell.run(command)
    await shell.run("set +e +u")


async def _time_out(shell: Executor, dice: random.Random) -> None:
    command = dice.choice(
        [
            "sleep 100",
            "trap '' INT; sleep 100",
            "while :; do :; done",
            "setsid sleep 100 & sleep 100",
            "yes",
            "kill -STOP $$",
            "cat /dev/zero | cat >/dev/null",
        ]
    )
    result = await shell.run(command, timeout=dice.uniform(0.01, 0.2))
    assert result.timed_out, result


async def _cancel(shell: Executor, dice: random.Random) -> None:
    command = dice.choice(["sleep 100", "yes", "while :; do :; done", "true"])
    task = asyncio.ensure_future(shell.run(command, on_output=None if dice.random() < 0.5 else lambda *_: None))
    await asyncio.sleep(dice.uniform(0, 0.05))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _background(shell: Executor, dice: random.Random) -> None:
    result = await shell.run(dice.choice(["sleep 100 & echo on", "(while :; do echo x; sleep 0.01; done) & echo on"]))
    for job in result.background:
        if dice.random() < 0.5:
            await job.read()
        if dice.random() < 0.9:
            await job.stop()


async def _restart(shell: Executor, _: random.Random) -> None:
    await shell.restart()


async def _idle(_: Executor, dice: random.Random) -> None:
    await asyncio.sleep(dice.uniform(0, 0.1))  # long enough for an idle checkpoint


async def _launch(shell: Executor, dice: random.Random) -> None:
    command = dice.choice(["cat", "yes", "true", "exec sleep 100", "trap '' INT TERM HUP; while :; do sleep 1; done"])
    tty = dice.random() < 0.5
    update = await shell.launch(command, tty=tty, yield_time=0.25)
    if update.process_id is not None:
        await shell.write(update.process_id, dice.choice(["", "x\n", "\x03"]), yield_time=0.25)
        if dice.random() < 0.5:
            await shell.stop(update.process_id)


_EVENTS: dict[str, tuple[int, Event]] = {
    "small": (40, _small),
    "burst": (8, _burst),
    "large": (6, _large),
    "arguments": (8, _arguments),
    "broken": (8, _broken),
    "ending": (8, _ending),
    "time-out": (5, _time_out),
    "cancel": (8, _cancel),
    "background": (5, _background),
    "launch": (5, _launch),
    "restart": (2, _restart),
    "idle": (4, _idle),
}


async def _one_executor(dice: random.Random, done: Counter[str]) -> None:
    """Open an executor, let things happen to it, and end it one way or another."""
    mode: Any = dice.choice(["persistent", "persistent", "stateless"])
    executor = LocalExecutor(
        mode=mode, shell="bash", grace=1.0, timeout=30.0, env={"SHELLKIT_CENSUS": str(os.getpid())}, workdir="/"
    )
    names = list(_EVENTS)
    weights = [_EVENTS[name][0] for name in names]
    for name in dice.choices(names, weights, k=dice.randrange(1, 40)):
        done[name] += 1
        await _watched(f"{name}, {mode}", _EVENTS[name][1](executor, dice), done)
    await _watched(f"closing, {mode}", _end(executor, dice), done)
    done[f"{mode} executors"] += 1


async def _watched(what: str, event: Coroutine[Any, Any, None], done: Counter[str]) -> None:
    """What must not happen is told and counted, and the soak goes on: it is about what stays behind."""
    task = asyncio.ensure_future(event)
    await asyncio.wait({task}, timeout=_HANG)
    if not task.done():
        # Nothing takes so long. Cancelling would hang as well, and so would the end of the loop.
        print(f"  FAULT in {what}: hangs for {_HANG:g} s, the soak ends here", flush=True)
        task.print_stack()
        os._exit(1)
    try:
        task.result()
    except Exception as error:
        print(f"  FAULT in {what}: {type(error).__name__}: {str(error)[:500]}")
        if not isinstance(error, AssertionError):
            traceback.print_exc()
        done["faults"] += 1


async def _end(executor: Executor, dice: random.Random) -> None:
    """Close it, at times under a command."""
    if dice.random() < 0.8:
        await executor.close()
        return
    task = asyncio.ensure_future(executor.run("sleep 100"))
    await asyncio.sleep(dice.uniform(0, 0.02))
    try:
        await executor.close()
    finally:
        with contextlib.suppress(ExecutorClosed, SpawnError):
            await task


async def _soak(seconds: float, dice: random.Random, done: Counter[str]) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.gather(*(_one_executor(random.Random(dice.random()), done) for _ in range(4)))


def _slices(seconds: float) -> list[float]:
    """Cut the time into pieces of equal length, so that the table shows whether something grows steadily."""
    count = max(1, round(seconds / _SLICE))
    return [seconds / count] * count


def _print_line(name: str, census: Census) -> None:
    figures = "".join(f"{getattr(census, field.name):>13g}" for field in attrs.fields(Census))
    print(f"  {name:>10}{figures}", flush=True)


def main() -> bool:
    """Soak and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    seconds = options.minutes * 60
    print(f"soak of {options.minutes:g} minutes, seed {options.seed}")
    print(f"  {'':10}" + "".join(f"{field.name:>13}" for field in attrs.fields(Census)))
    watch_directories()
    dice = random.Random(options.seed)
    done: Counter[str] = Counter()
    # A new event loop for each piece: an executor's threads end with it, and what is left is counted without one.
    asyncio.run(_soak(min(_WARM_UP, seconds / 3), dice, done))
    begin = end = settled()
    _print_line("warmed up", begin)
    passed = 0.0
    for piece in _slices(seconds):
        asyncio.run(_soak(piece, dice, done))
        end = settled()
        passed += piece
        _print_line(f"{passed / 60:.1f} min", end)
    print("  " + ", ".join(f"{count} {name}" for name, count in sorted(done.items())))
    rows = differences(begin, end, "at the end")
    commands = sum(count for name, count in done.items() if name in _EVENTS)
    rows.append(
        Row(
            what="faults",
            yardstick="none",
            value=float(done["faults"]),
            unit="in all",
            bound=0.0,
            detail=f"{options.minutes:g} minutes, {commands} steps, seed {options.seed}",
        )
    )
    return report("soak", rows)


if __name__ == "__main__":
    sys.exit(not main())
