"""Lets the calls on one session through one at a time, in order of arrival, whatever loop or thread they come from.

`asyncio.Lock` belongs to one event loop and `threading.Lock` blocks it; a session serves both (contract G1, G2).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque

__all__ = ["Turnstile"]


class _Waiter:
    """One caller in the queue; `admit` may be called from any thread."""

    admitted = False

    def admit(self) -> bool:
        """Tell the caller that it is its turn; False if it cannot be reached any more."""
        raise NotImplementedError


class _ThreadWaiter(_Waiter):
    def __init__(self) -> None:
        self.event = threading.Event()

    def admit(self) -> bool:
        self.admitted = True
        self.event.set()
        return True


class _TaskWaiter(_Waiter):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[None] = loop.create_future()

    def admit(self) -> bool:
        self.admitted = True
        try:
            self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:  # its loop was closed while it waited
            return False
        return True

    def _resolve(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Turnstile:
    """A fair lock for tasks of any loop and for threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[_Waiter] = deque()
        self._busy = False

    def try_enter(self) -> bool:
        """Enter if nobody is inside; costs no coroutine."""
        with self._mutex:
            if self._busy:
                return False
            self._busy = True
            return True

    def enter_blocking(self) -> None:
        """Wait in this thread for the turn."""
        waiter = _ThreadWaiter()
        try:
            if not self._join(waiter):
                waiter.event.wait()
        except BaseException:
            self._withdraw(waiter)
            raise

    async def enter(self) -> None:
        """Wait in this task for the turn; a cancelled task leaves the queue and holds nobody up."""
        waiter = _TaskWaiter(asyncio.get_running_loop())
        try:
            if not self._join(waiter):
                await waiter.future
        except BaseException:
            self._withdraw(waiter)
            raise

    def leave(self) -> None:
        """Let the next one in."""
        with self._mutex:
            while self._queue:
                if self._queue.popleft().admit():
                    return
            self._busy = False

    def _join(self, waiter: _Waiter) -> bool:
        with self._mutex:
            if not self._busy:
                self._busy = waiter.admitted = True
            else:
                self._queue.append(waiter)
        return waiter.admitted

    def _withdraw(self, waiter: _Waiter) -> None:
        with self._mutex:
            if not waiter.admitted:
                with contextlib.suppress(ValueError):  # KeyboardInterrupt may have come before it was in there
                    self._queue.remove(waiter)
                return
        self.leave()
