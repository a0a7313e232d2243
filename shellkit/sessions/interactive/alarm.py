"""`Alarm`: how the pump's thread wakes a task that waits for something to happen to a program."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

__all__ = ["Alarm"]


class Alarm:
    """Wakes one task of the running loop, from any thread; rings once until it is waited for again."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rang = asyncio.Event()
        self._ringing = False

    def __call__(self) -> None:
        if not self._ringing:
            self._ringing = True
            with contextlib.suppress(RuntimeError):  # the loop was closed while it waited
                self._loop.call_soon_threadsafe(self._rang.set)

    async def wait_until(self, done: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until `done`, asked after each ring, returns true; False if it has not within `timeout` seconds."""
        give_up = None if timeout is None else time.monotonic() + timeout
        while not done():
            left = None if give_up is None else give_up - time.monotonic()
            if left is not None and left <= 0:
                return False
            await self._wait(left)
        return True

    async def _wait(self, timeout: float | None) -> None:
        """Wait until it has rung since the last time, or for `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._rang.wait()
        self._rang.clear()
        self._ringing = False
