"""Draining far more output than is kept: as fast as a bare loop, in memory that does not grow."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from shellkit import LocalExecutor

from .measure import Row, alternate, report, resident

_DRAINED = 2_000_000_000
_ENDLESS = 10_000_000_000


def _bare_loop() -> None:
    with subprocess.Popen(["head", "-c", str(_DRAINED), "/dev/zero"], stdout=subprocess.PIPE) as producer:
        assert producer.stdout is not None
        fd = producer.stdout.fileno()
        while os.read(fd, 65536):
            pass


def _growth() -> tuple[int, float]:
    """Bytes that the peak of resident memory rises by over 10 GB, and the seconds they took."""
    with LocalExecutor(shell="bash", timeout=None).sync() as shell:
        shell.run("head -c 1000000 /dev/zero")
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak starts anew (proc(5))
        before = resident()
        began = time.perf_counter()
        shell.run(f"head -c {_ENDLESS} /dev/zero")
        return resident("VmHWM") - before, time.perf_counter() - began


def main() -> bool:
    """Measure and report."""
    growth, seconds = _growth()
    with LocalExecutor(shell="bash", timeout=None).sync() as shell:
        candidates = {"shellkit": lambda: shell.run(f"head -c {_DRAINED} /dev/zero"), "loop": _bare_loop}
        times = alternate(candidates, calls=1)
    speed = ", ".join(f"{name} {_DRAINED / times.median(name) / 1e9:.2f} GB/s" for name in candidates)
    rows = [
        Row(
            what="draining 2 GB",
            yardstick="the same producer into a loop of 64 KiB os.read",
            value=times.ratio("loop", "shellkit"),
            compare=">=",
            bound=0.85,
            aim=1.0,
            detail=f"{speed}; rounds {times.spread('loop', 'shellkit')}",
        ),
        Row(
            what="peak memory over 10 GB",
            yardstick="before",
            value=growth / (1 << 20),
            unit="MiB",
            bound=8.0,
            detail=f"{_ENDLESS / seconds / 1e9:.2f} GB/s",
        ),
    ]
    return report("throughput", rows)


if __name__ == "__main__":
    sys.exit(not main())
