"""`Pump`: the one thread that drains all interactive programs of an executor, and does what may block for them.

A thread and not the event loop, because a program lives on between two `asyncio.run`, and must not be held up
while the host's loop is busy; one for all, because 64 programs must not cost 64 threads. It knows descriptors and
callbacks, nothing of programs; it never calls into a caller's loop.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import os
import select
import signal
import threading
import time
from collections.abc import Callable

__all__ = ["CHUNK_BYTES", "Pump", "Watcher"]

_log = logging.getLogger("shellkit")

#: What a pipe holds by default (pipe(7)): one read empties a full one.
CHUNK_BYTES = 65536

#: A descriptor rests this many times as long as draining it took, for each other one that prints as well: programs
#: that print without end wait for us a part of the time, and leave a processor to everybody else. One alone never
#: waits. They wake up together, so that one round serves many. With 64 of them on 2 cores `run("true")` takes 1 to
#: 1.6 times as long as without them; without rests 3 to 4 times.
_REST_RATIO = 4.0
_LONGEST_REST = 0.05
_REST_GRID = 0.01
#: Not worth a rest: a prompt that is printed takes 20 us to drain.
_SHORTEST_REST = 0.001

#: Called in the thread with the events and a buffer that all share.
Watcher = Callable[[int, memoryview], object]


class Pump:
    """The thread; it starts with the first thing to do and ends with `stop`."""

    def __init__(self) -> None:
        self._poller = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller.register(self._wake, select.EPOLLIN)
        self._buffer = memoryview(bytearray(CHUNK_BYTES))
        self._mutex = threading.Lock()
        self._watchers: dict[int, Watcher] = {}
        self._events: dict[int, int] = {}
        self._resting: set[int] = set()
        self._errands: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def watch(self, fd: int, events: int, watcher: Watcher) -> None:
        """Call `watcher` when `fd` has one of the events, until `forget`; it must take a call without reason.

        Raises:
            ValueError: the pump has been stopped.
        """
        with self._mutex:
            if self._stopping:
                raise ValueError("this pump has been stopped; make a new one")
            self._watchers[fd] = watcher
            self._events[fd] = events
            self._poller.register(fd, events | select.EPOLLONESHOT)
        self._start()

    def change(self, fd: int, events: int) -> None:
        """Watch a descriptor for other events from now on."""
        with self._mutex:
            self._events[fd] = events
            if fd not in self._resting:
                self._arm(fd)

    def forget(self, fd: int) -> None:
        """Watch a descriptor no more; the caller closes it. An unknown one is passed over."""
        with self._mutex:
            if self._watchers.pop(fd, None) is not None:
                del self._events[fd]
                self._resting.discard(fd)
                self._poller.unregister(fd)

    def run(self, errand: Callable[[], None], *, after: float = 0.0) -> None:
        """Call `errand` in the thread, `after` seconds from now; never, if the pump is stopped before that."""
        with self._mutex:
            if self._stopping:
                return
            heapq.heappush(self._errands, (time.monotonic() + after, next(self._order), errand))
            os.eventfd_write(self._wake, 1)
        self._start()

    def stop(self) -> None:
        """End the thread; nothing may be watched any more. Idempotent."""
        with self._mutex:
            if self._stopping:
                return
            self._stopping = True
            thread = self._thread
        os.eventfd_write(self._wake, 1)
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._poller.close()
        os.close(self._wake)

    # -- the thread ------------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._mutex:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="shellkit-pump", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        # A signal that the kernel gave to this thread would not wake the one that Python handles it in (Ctrl-C).
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while not self._stopping:
            ready = self._poller.poll(self._patience())
            for fd, events in ready:
                if fd == self._wake:
                    os.eventfd_read(fd)
                    continue
                begun = time.monotonic()
                self._call(fd, events)
                self._rest(fd, time.monotonic() - begun, len(ready) - 1)
            self._run_errands()

    def _arm(self, fd: int) -> None:
        # One shot at a time, because a hang-up is reported whatever is asked for (epoll_ctl(2), EPOLLHUP).
        if fd in self._watchers:
            self._poller.modify(fd, self._events[fd] | select.EPOLLONESHOT)

    def _rest(self, fd: int, spent: float, others: int) -> None:
        """Watch a descriptor again, at once or after a while."""
        with self._mutex:
            rest = _REST_RATIO * spent * (others + len(self._resting))
            if rest < _SHORTEST_REST:
                self._arm(fd)
                return
            self._resting.add(fd)
            at = time.monotonic() + min(rest, _LONGEST_REST)
            at = math.ceil(at / _REST_GRID) * _REST_GRID
            heapq.heappush(self._errands, (at, next(self._order), lambda: self._wake_up(fd)))

    def _wake_up(self, fd: int) -> None:
        with self._mutex:
            self._resting.discard(fd)
            self._arm(fd)

    def _call(self, fd: int, events: int) -> None:
        watcher = self._watchers.get(fd)
        if watcher is None:  # forgotten since the poll
            return
        try:
            watcher(events, self._buffer)
        except Exception:  # noqa: BLE001  (the thread must live on for the other programs)
            _log.exception("draining a program failed; it is not watched any more")
            self.forget(fd)

    def _run_errands(self) -> None:
        while True:
            with self._mutex:
                if not self._errands or self._errands[0][0] > time.monotonic():
                    return
                errand = heapq.heappop(self._errands)[2]
            try:
                errand()
            except Exception:  # noqa: BLE001  (as in `_call`)
                _log.exception("an errand of an interactive program failed")

    def _patience(self) -> float | None:
        with self._mutex:
            return max(0.0, self._errands[0][0] - time.monotonic()) if self._errands else None
