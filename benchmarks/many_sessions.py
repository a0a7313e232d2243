"""A call while 200 sessions are open in the process, against a call in a process that has only one. Not as root.

Two rows: the calls go to one of the 200 while the others are idle (what idle sessions cost), and to all in turn
(every call then finds a shell whose memory has left the processor's caches: what the machine costs).

Root is exempt from the limits that many sessions run into (pipe-user-pages-soft), so both sides give it up.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import sys
import time
import traceback

from shellkit import LocalExecutor

from .measure import Row, alternate, report

_MANY = 200
_CALLS = 400
_NOBODY = 65534


def _become_nobody() -> None:
    """Give up root without exec, since a virtual environment may lie where nobody can read it."""
    with LocalExecutor(shell="bash").sync() as shell:
        shell.run("true")  # loads what is imported late, while it can still be read
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    # A process that was started as nobody may be looked at by its children; one that became it may not.
    set_dumpable = 4  # prctl(2), PR_SET_DUMPABLE
    if ctypes.CDLL(None).prctl(set_dumpable, 1, 0, 0, 0) != 0:
        raise SystemExit("prctl(PR_SET_DUMPABLE) was refused")


def _serve(count: int, requests: int, answers: int) -> None:
    """In a child: open `count` sessions; for "1" call one, for "*" all in turn, and answer the median in seconds."""
    os.chdir("/")
    shells = [LocalExecutor(shell="bash").sync() for _ in range(count)]
    for shell in shells:
        shell.start()
        shell.run("true")
    while request := os.read(requests, 1):
        times = []
        for number in range(_CALLS):
            shell = shells[number % count if request == b"*" else 0]
            began = time.perf_counter()
            shell.run("true")
            times.append(time.perf_counter() - began)
        os.write(answers, repr(statistics.median(times)).encode())
    for shell in shells:
        shell.close()


class _Worker:
    """A child with sessions of its own, as nobody when this process is root."""

    def __init__(self, count: int) -> None:
        requests, self._ask = os.pipe()
        self._answers, answers = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(requests)
            os.close(answers)
            return
        os.close(self._ask)
        code = 1
        try:
            if os.geteuid() == 0:
                _become_nobody()
            _serve(count, requests, answers)
            code = 0
        except BaseException:  # a child that returned would be a second parent
            traceback.print_exc()
        finally:
            os._exit(code)

    def measure_one(self) -> float:
        """Return the median of a round of calls on one session, in seconds."""
        return self._measure(b"1")

    def measure_all(self) -> float:
        """Return the median of a round of calls on all sessions in turn, in seconds."""
        return self._measure(b"*")

    def _measure(self, request: bytes) -> float:
        os.write(self._ask, request)
        answer = os.read(self._answers, 64)
        if not answer:
            raise SystemExit("a worker has ended; its error stands above")
        return float(answer)

    def close(self) -> None:
        """Let it close its sessions."""
        os.close(self._ask)
        os.waitpid(self._pid, 0)
        os.close(self._answers)


def main() -> bool:
    """Measure and report."""
    one, many = _Worker(1), _Worker(_MANY)
    calls = {"many": many.measure_one, "in turn": many.measure_all, "one": one.measure_one}
    times = alternate(calls, calls=3)
    many.close()  # first: it holds a copy of the pipe that the other waits on
    one.close()
    rows = [
        Row(
            what=f"true, {_MANY} live sessions, not root, {how}",
            yardstick="one session",
            value=times.ratio(name, "one"),
            bound=1.5,
            aim=1.2,
            detail=f"{times.median(name) * 1e6:.0f} us, one {times.median('one') * 1e6:.0f} us; "
            f"rounds {times.spread(name, 'one')}",
        )
        for name, how in (("many", "one called"), ("in turn", "all called in turn"))
    ]
    return report("many_sessions", rows)


if __name__ == "__main__":
    sys.exit(not main())
