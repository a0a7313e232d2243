"""What it costs when a shell ends, and when a command has to be ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from shellkit import LocalExecutor

from .bare import BASH
from .measure import Row, alternate, report

_TIMEOUT = 0.2


def _bash_start() -> float:
    """Seconds from nothing to the first answer of a bash; its end is not counted."""
    began = time.perf_counter()
    process = subprocess.Popen(BASH, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    os.write(process.stdin.fileno(), b"echo\n")
    os.read(process.stdout.fileno(), 64)
    took = time.perf_counter() - began
    process.kill()
    process.communicate()
    return took


def main() -> bool:
    """Measure and report."""
    with LocalExecutor(shell="bash").sync() as shell:

        def recover() -> None:
            shell.run("exit 3")
            shell.run("true")

        times = alternate({"shellkit": recover, "start": _bash_start}, calls=40)

        def interrupt() -> float:
            began = time.perf_counter()
            shell.run("sleep 100", timeout=_TIMEOUT)
            return time.perf_counter() - began - _TIMEOUT

        late = alternate({"interrupt": interrupt}, calls=5)
    rows = [
        Row(
            what="`exit 3`, then the next result",
            yardstick="one bash start",
            value=times.ratio("shellkit", "start"),
            bound=2.5,
            aim=1.1,
            detail=f"shellkit {times.median('shellkit') * 1e3:.2f} ms, start {times.median('start') * 1e3:.2f} ms; "
            f"rounds {times.spread('shellkit', 'start')}",
        ),
        Row(
            what="`sleep 100` at its time-out",
            yardstick="the time-out",
            value=late.median("interrupt") * 1e3,
            unit="ms",
            bound=20.0,
            aim=5.0,
        ),
    ]
    return report("recovery", rows)


if __name__ == "__main__":
    sys.exit(not main())
