"""Drive exchanges: the two ways to wait, under asyncio and in a thread that may block.

A procedure of a session is a generator that yields exchanges and returns its result; it is written once, and
`drive_async` and `drive_blocking` differ only in how they wait for each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from typing import TypeVar

from .exchange import Exchange

__all__ = ["Procedure", "drive_async", "drive_blocking"]

Result = TypeVar("Result")
Procedure = Generator[Exchange, None, Result]


def drive_blocking(procedure: Procedure[Result]) -> Result:
    """Run a procedure in this thread.

    An exception that arrives while it waits (KeyboardInterrupt) ends the running exchange by its ladder and
    is raised when the procedure has settled.
    """
    pending: BaseException | None = None
    try:
        exchange = next(procedure)
        while True:
            try:
                _wait(exchange)
            except BaseException as error:  # noqa: BLE001  (raised below, when the shell is in order again)
                pending = error
                exchange.stop()
                continue
            exchange = procedure.send(None)
    except StopIteration as stop:
        if pending is not None:
            raise pending from None
        return stop.value  # type: ignore[no-any-return]  # StopIteration carries Any
    except Exception as error:
        if pending is not None:
            raise pending from error
        raise


def _wait(exchange: Exchange) -> None:
    if exchange.step_while_quick():
        return
    poll = exchange.poller.poll
    while True:
        timeout = 0.0 if exchange.more else max(0.0, exchange.deadline - time.monotonic())
        if exchange.step(poll(timeout)):
            return


async def drive_async(procedure: Procedure[Result]) -> Result:
    """Run a procedure on the running event loop.

    Cancelling ends the running exchange by its ladder; CancelledError is raised when the procedure has
    settled, which takes no longer than the grace period.
    """
    loop = asyncio.get_running_loop()
    cancelled: asyncio.CancelledError | None = None
    try:
        exchange = next(procedure)
        while True:
            waiter = None if exchange.step_while_quick() else _Waiter(loop, exchange)
            while waiter is not None and not waiter.done():
                try:
                    await waiter.wait()
                except asyncio.CancelledError as error:
                    cancelled = error
                    exchange.stop()
            exchange = procedure.send(None)
    except StopIteration as stop:
        if cancelled is not None:
            raise cancelled from None
        return stop.value  # type: ignore[no-any-return]  # StopIteration carries Any
    except Exception as error:
        if cancelled is not None:
            raise cancelled from error
        raise


class _Waiter:
    """Waits for one exchange on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, exchange: Exchange) -> None:
        self._loop = loop
        self._exchange = exchange
        self._poll = exchange.poller.poll
        self._future: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._done = False

    def done(self) -> bool:
        return self._done

    async def wait(self) -> None:
        self._future = self._loop.create_future()
        fd = self._exchange.poller.fileno()
        self._loop.add_reader(fd, self._wake)
        self._schedule()
        try:
            await self._future
        finally:
            self._loop.remove_reader(fd)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _wake(self) -> None:
        future = self._future
        if future is None or future.done():
            return
        try:
            self._done = self._exchange.step(self._poll(0))
        except BaseException as error:  # noqa: BLE001  (handed to the task that waits)
            self._done = True
            future.set_exception(error)
            return
        if self._done:
            future.set_result(None)
        elif self._exchange.more:
            self._loop.call_soon(self._wake)
        else:
            self._schedule()

    def _schedule(self) -> None:
        # One timer is enough: it re-arms itself when the deadline has moved to a later time.
        deadline = self._exchange.deadline
        if self._timer is not None:
            if self._timer.when() <= self._loop.time() + (deadline - time.monotonic()) and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.0, deadline - time.monotonic()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._wake()
