"""How every benchmark measures and reports: calls that alternate in one run, medians of rounds, ratios.

A machine that is busy with something else slows both sides of a ratio alike; that is why nothing here is an
absolute time, and why no test asserts any of it.
"""

from __future__ import annotations

import inspect
import json
import operator
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

__all__ = ["ROUNDS", "Row", "Times", "alternate", "alternate_async", "report", "resident"]

#: Rounds that a median is taken of (contract K: at least five).
ROUNDS = 7

RESULTS = Path(__file__).parent / "results"
_FITS: Mapping[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge}


@attrs.frozen(kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        what: what was measured.
        yardstick: what it was measured against.
        value: the figure; None if it was skipped.
        unit: "x" for a ratio, else a unit of its own.
        compare: whether the value must be at most or at least the bound.
        bound: what it must reach.
        aim: what it would like to reach.
        detail: the figures behind it, and the reason if it was skipped.
    """

    what: str
    yardstick: str
    value: float | None
    bound: float | None = None
    aim: float | None = None
    unit: str = "x"
    compare: Literal["<=", ">="] = "<="
    detail: str = ""

    @property
    def verdict(self) -> str:
        """Where the value stands."""
        if self.value is None:
            return "skipped"
        if self.bound is None:
            return "for comparison"
        fits = _FITS[self.compare]
        if not fits(self.value, self.bound):
            return "MISSES THE BOUND"
        return "aim reached" if self.aim is None or fits(self.value, self.aim) else "within the bound"


class Times:
    """Seconds per call of each candidate, round by round.

    Args:
        rounds: candidate -> one median a round.
    """

    def __init__(self, rounds: Mapping[str, Sequence[float]]) -> None:
        self._rounds = rounds

    def median(self, name: str) -> float:
        """Return the median of a candidate's rounds, in seconds."""
        return statistics.median(self._rounds[name])

    def ratio(self, name: str, yardstick: str) -> float:
        """Return the median of the rounds' ratios: what disturbs one round disturbs one ratio."""
        return statistics.median(a / b for a, b in zip(self._rounds[name], self._rounds[yardstick], strict=True))

    def difference(self, name: str, yardstick: str) -> float:
        """Return the median of the rounds' differences, in seconds."""
        return statistics.median(a - b for a, b in zip(self._rounds[name], self._rounds[yardstick], strict=True))

    def spread(self, name: str, yardstick: str) -> str:
        """Return the smallest and largest ratio of a round."""
        ratios = [a / b for a, b in zip(self._rounds[name], self._rounds[yardstick], strict=True)]
        return f"{min(ratios):.2f}-{max(ratios):.2f}"


Candidates = Mapping[str, Callable[[], Any]]


def alternate(candidates: Candidates, *, calls: int, rounds: int = ROUNDS) -> Times:
    """Call the candidates in turn, and return how long each took.

    Args:
        candidates: name -> function to time; one that returns a float has taken its time itself, in seconds.
        calls: calls of each candidate a round; the first round is thrown away.
        rounds: rounds that count.
    """
    medians: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(rounds + 1):
        times: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(calls):
            for name, call in candidates.items():
                began = time.perf_counter()
                own = call()
                took = time.perf_counter() - began
                times[name].append(own if isinstance(own, float) else took)
        if number:
            for name, taken in times.items():
                medians[name].append(statistics.median(taken))
    return Times(medians)


async def alternate_async(candidates: Candidates, *, calls: int, rounds: int = ROUNDS) -> Times:
    """As `alternate`, on the running event loop: a candidate may be a coroutine function or a plain one."""
    medians: dict[str, list[float]] = {name: [] for name in candidates}
    waits = {name: inspect.iscoroutinefunction(call) for name, call in candidates.items()}
    for number in range(rounds + 1):
        times: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(calls):
            for name, call in candidates.items():
                began = time.perf_counter()
                if waits[name]:
                    running: Awaitable[Any] = call()
                    await running
                else:
                    call()
                times[name].append(time.perf_counter() - began)
        if number:
            for name, taken in times.items():
                medians[name].append(statistics.median(taken))
    return Times(medians)


def resident(field: str = "VmRSS") -> int:
    """Return this process's resident memory in bytes; field "VmHWM" is its peak."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def report(name: str, rows: Sequence[Row]) -> bool:
    """Print the rows, write them to `results/NAME.json`, and return whether all keep their bound."""
    width = max(len(row.what) for row in rows)
    print(f"\n{name}")
    for row in rows:
        value = "-" if row.value is None else f"{row.value:.3g} {row.unit}"
        limits = "" if row.bound is None else f"bound {row.compare} {row.bound:g}"
        limits += "" if row.aim is None else f", aim {row.aim:g}"
        print(f"  {row.what:{width}}  {value:>11}  {limits:24} {row.verdict:16}  against {row.yardstick}")
        if row.detail:
            print(f"  {'':{width}}  {row.detail}")
    RESULTS.mkdir(exist_ok=True)
    machine = f"{os.cpu_count()} x {platform.machine()}, {platform.system()} {platform.release()}"
    document = {
        "name": name,
        "machine": machine,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "rows": [{**attrs.asdict(row), "verdict": row.verdict} for row in rows],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return all(row.verdict != "MISSES THE BOUND" for row in rows)
