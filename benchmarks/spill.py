"""Output that is kept whole: what 10 GB take of disk and memory, and what keeping it costs a command."""

from __future__ import annotations

import os
import sys
import tempfile
import time

import attrs

from shellkit import BlockingExecutor, LocalExecutor

from .measure import Row, alternate, report, resident

_LIMIT = 512 << 20
_ENDLESS = 10_000_000_000
_DRAINED = 500_000_000
#: Lines of 100 bytes; `yes` makes them faster than they can be drained.
_LINE = "x" * 99 + "\n"
_PRINT = f"yes {_LINE[:-1]} | head -c"


@attrs.frozen
class _Endless:
    """What 10 GB did: bytes of disk, the rise of the peak of memory, seconds, and the parts that could not be read."""

    disk: int
    memory: int
    seconds: float
    unreadable: list[str]


def _endless(directory: str) -> _Endless:
    with LocalExecutor(shell="bash", timeout=None, spill_dir=directory, spill_limit=_LIMIT).sync() as shell:
        shell.run(f"{_PRINT} 1000000")
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak starts anew (proc(5))
        before = resident()
        began = time.perf_counter()
        result = shell.run(f"{_PRINT} {_ENDLESS}")
        seconds = time.perf_counter() - began
        memory = resident("VmHWM") - before
        assert result.stdout_ref is not None
        return _Endless(_on_disk(directory), memory, seconds, _unreadable(shell, result.stdout_ref))


def _on_disk(directory: str) -> int:
    return sum(os.stat(f"{at}/{name}").st_blocks * 512 for at, _, names in os.walk(directory) for name in names)


def _unreadable(shell: BlockingExecutor, ref: str) -> list[str]:
    ten = _LINE * 10

    def reads(offset: int) -> bool:
        """Whether what is kept from the next line after `offset` on is right, and stands where it says."""
        page = shell.read_output(ref, offset=offset, limit=2 * len(_LINE))
        at = -page.offset % len(_LINE)
        again = shell.read_output(ref, offset=page.offset + at, limit=len(ten))
        return again.text == ten and again.first_line == (page.offset + at) // len(_LINE) + 1

    late = _ENDLESS // len(_LINE) - 5
    parts = {
        "head": shell.read_output(ref, limit=len(ten)).text == ten,
        "every tenth": all(reads(_ENDLESS // 10 * tenth) for tenth in range(10)),
        "tail": shell.read_output(ref, tail=10).text == ten,
        "a late line": shell.read_output(ref, lines=(late, late)).offset == (late - 1) * len(_LINE),
        "a search": shell.read_output(ref, pattern="^x+$", offset=_ENDLESS // 2, limit=1000).matches is not None,
    }
    return [name for name, right in parts.items() if not right]


def main() -> bool:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="shellkit-benchmark-") as directory:
        endless = _endless(directory)
        plain = LocalExecutor(shell="bash", timeout=None).sync()
        keeping = LocalExecutor(shell="bash", timeout=None, spill_dir=directory, spill_limit=_LIMIT).sync()
        with plain, keeping:
            draining = alternate(
                {
                    "kept": lambda: keeping.run(f"{_PRINT} {_DRAINED}"),
                    "not kept": lambda: plain.run(f"{_PRINT} {_DRAINED}"),
                },
                calls=1,
            )
            small = alternate({"kept": lambda: keeping.run("true"), "not kept": lambda: plain.run("true")}, calls=300)
    speed = ", ".join(f"{name} {_DRAINED / draining.median(name) / 1e9:.2f} GB/s" for name in ("kept", "not kept"))
    rows = [
        Row(
            what="disk after 10 GB",
            yardstick=f"spill_limit of {_LIMIT >> 20} MiB; one stream gets half",
            value=endless.disk / (1 << 20),
            unit="MiB",
            bound=_LIMIT / (1 << 20),
            aim=_LIMIT / (1 << 21),
            detail=f"{_ENDLESS / endless.seconds / 1e9:.2f} GB/s",
        ),
        Row(what="peak memory over 10 GB", yardstick="before", value=endless.memory / (1 << 20), unit="MiB", bound=8.0),
        Row(
            what="parts that cannot be read",
            yardstick="head, middle, tail, a line by number, a search",
            value=float(len(endless.unreadable)),
            unit="",
            bound=0.0,
            detail=", ".join(endless.unreadable),
        ),
        Row(
            what="draining what is kept",
            yardstick="the same without spill_dir",
            value=draining.ratio("not kept", "kept"),
            compare=">=",
            detail=f"{speed}; rounds {draining.spread('not kept', 'kept')}",
        ),
        Row(
            what="true with spill_dir",
            yardstick="the same without",
            value=small.ratio("kept", "not kept"),
            bound=1.1,
            aim=1.05,
            detail=f"rounds {small.spread('kept', 'not kept')}",
        ),
    ]
    return report("spill", rows)


if __name__ == "__main__":
    sys.exit(not main())
