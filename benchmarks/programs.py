"""Programs that a model talks to: how long an answer takes through the tools, and what 64 that never stop cost.

The first row is an absolute bound (issue 5): a REPL that is typed to answers before a person would notice. The others
compare `run()` of the same executor, and this process's memory, with and without 64 programs that print without end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import time

from shellkit import LocalExecutor
from shellkit.tool import Tool

from .measure import ROUNDS, Row, Times, report, resident

_TALKS = 30
_CALLS = 200
_PROGRAMS = 64
_MIB = 1 << 20
#: Seconds that the programs print before anything is measured: their buffers are full by then.
_SETTLED = 2.0


async def _talk() -> tuple[float, float]:
    """Return the medians of launching python3 and of its answer to 6*7, in seconds, through the tools."""
    launched, answered = [], []
    async with LocalExecutor(shell="bash") as shell:
        tools = {tool.name: tool for tool in shell.as_tools(approval="never", acknowledge_unsafe=True)}
        for number in range(1, _TALKS + 1):
            began = time.perf_counter()
            output = await tools["exec_command"].call({"cmd": "python3", "tty": True})
            launched.append(time.perf_counter() - began)
            assert output.text.endswith("it waits for input]"), output.text
            began = time.perf_counter()
            output = await tools["write_stdin"].call({"session_id": number, "chars": "print(6*7)\n"})
            answered.append(time.perf_counter() - began)
            assert "\n42\n" in output.text, output.text
            await _stop(tools["stop_process"], number)
    return statistics.median(launched), statistics.median(answered)


async def _stop(tool: Tool, number: int) -> None:  # type: ignore[type-arg]  # of whatever arguments
    await tool.call({"session_id": number})


async def _crowd() -> tuple[Times, int, int]:
    """Return the times of `run` beside the crowd while it prints and while it is stopped, and what memory has grown."""
    async with LocalExecutor(shell="bash") as shell:
        await shell.run("true")
        before = resident()
        pids = []
        for _ in range(_PROGRAMS):
            update = await shell.launch("echo $$; exec yes 'a line that is printed without end'", until="line")
            pids.append(int(update.output.split()[0]))
        await asyncio.sleep(_SETTLED)
        grown = resident("VmHWM") - before

        async def calls(signal_number: int) -> float:
            for pid in pids:
                os.kill(pid, signal_number)
            await asyncio.sleep(_SETTLED / 10)
            times = []
            for _ in range(_CALLS):
                began = time.perf_counter()
                await shell.run("true")
                times.append(time.perf_counter() - began)
            return statistics.median(times)

        rounds: dict[str, list[float]] = {"beside": [], "alone": []}
        for _ in range(ROUNDS):
            rounds["beside"].append(await calls(signal.SIGCONT))
            rounds["alone"].append(await calls(signal.SIGSTOP))
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    return Times(rounds), grown, shell.max_output_bytes


def main() -> bool:
    """Measure and report."""
    launched, answered = asyncio.run(_talk())
    times, grown, limit = asyncio.run(_crowd())
    rows = [
        Row(
            what="write_stdin: print(6*7) in python3",
            yardstick="nothing",
            value=answered * 1e3,
            unit="ms",
            bound=100,
            detail=f"exec_command of python3 until its prompt {launched * 1e3:.0f} ms",
        ),
        Row(
            what=f"run() beside {_PROGRAMS} endless programs",
            yardstick="run() while they are stopped",
            value=times.ratio("beside", "alone"),
            bound=2.0,
            detail=f"{times.median('beside') * 1e6:.0f} us, alone {times.median('alone') * 1e6:.0f} us; "
            f"rounds {times.spread('beside', 'alone')}",
        ),
        Row(
            what=f"memory of {_PROGRAMS} endless programs",
            yardstick="before they were launched",
            value=grown / _MIB,
            unit="MiB",
            bound=_PROGRAMS * limit / _MIB + 32,
            detail=f"{limit} bytes kept of each",
        ),
    ]
    return report("programs", rows)


if __name__ == "__main__":
    sys.exit(not main())
