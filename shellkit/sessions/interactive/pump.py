"""`Pump`: the one thread that drains all interactive programs of an executor, and does what may block for them.

A thread and not the event loop, because a program lives on between two `asyncio.run`, and must not be held up
while the host's loop is busy; one for all, because 64 programs must not cost 64 threads. It knows descriptors and
callbacks, nothing of programs; it never calls into a caller's loop.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable

__all__ = ["CHUNK_BYTES", "Pump"]

_log = logging.getLogger("shellkit")

#: What a pipe holds by default (pipe(7)): one read empties a full one.
CHUNK_BYTES = 65536

#: After a round that found more than it could read, the thread rests this many times as long as the round took.
#: Programs that print without end then wait for us a part of the time, and leave a processor to everybody else.
_REST_RATIO = 3.0
_LONGEST_REST = 0.01

#: Called in the thread with the events and a buffer that all share; returns whether there is more to read.
Watcher = Callable[[int, memoryview], bool]


class Pump:
    """The thread; it starts with the first thing to do and ends with `stop`."""

    def __init__(self) -> None:
        self._poller = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller.register(self._wake, select.EPOLLIN)
        self._buffer = memoryview(bytearray(CHUNK_BYTES))
        # Reentrant, because a garbage collection inside may run a finalizer that calls `forget` and `stop`.
        self._mutex = threading.RLock()
        self._watchers: dict[int, Watcher] = {}
        self._errands: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def watch(self, fd: int, events: int, watcher: Watcher) -> None:
        """Call `watcher` when `fd` has one of the events, until `forget`; it must take a call without reason."""
        with self._mutex:
            self._watchers[fd] = watcher
            self._poller.register(fd, events)
        self._start()

    def change(self, fd: int, events: int) -> None:
        """Watch a descriptor for other events from now on."""
        self._poller.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Watch a descriptor no more; the caller closes it. An unknown one is passed over."""
        with self._mutex:
            if self._watchers.pop(fd, None) is not None:
                self._poller.unregister(fd)

    def run(self, errand: Callable[[], None], *, after: float = 0.0) -> None:
        """Call `errand` in the thread, `after` seconds from now."""
        with self._mutex:
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
            begun = time.monotonic()
            # Not `any(...)` over a generator: each must be called.
            busy = [self._call(fd, events) for fd, events in ready]
            self._run_errands()
            if any(busy):
                time.sleep(min(_REST_RATIO * (time.monotonic() - begun), _LONGEST_REST))

    def _call(self, fd: int, events: int) -> bool:
        if fd == self._wake:
            os.eventfd_read(fd)
            return False
        watcher = self._watchers.get(fd)
        if watcher is None:  # forgotten since the poll
            return False
        try:
            return watcher(events, self._buffer)
        except Exception:  # noqa: BLE001  (the thread must live on for the other programs)
            _log.exception("draining a program failed; it is not watched any more")
            self.forget(fd)
            return False

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
