"""Drive exchanges: the two ways to wait, under asyncio and in a thread that may block.

A procedure of a session is a generator that yields exchanges and returns its result; it is written once, and
`drive_async` and `drive_blocking` differ only in how they wait for each.
"""

from __future__ import annotations

import asyncio
import select
import threading
import time
from collections.abc import Callable, Generator
from typing import TypeVar

from .exchange import Exchange
from .live import Reader

__all__ = ["Procedure", "drive_async", "drive_blocking"]

#: Events to take at a time: `epoll.poll` allocates room for as many as it is told, 12 KiB by default.
_EVENTS = 8
#: Seconds that a driver polls before it sleeps, if the last command of this shell was quick: on an idle machine a
#: wake-up and the cold caches after it cost as much as `true` (docs/decisions/busy-polling.md).
_BUSY_POLL = 0.0003

Result = TypeVar("Result")
Procedure = Generator[Exchange, None, Result]


def drive_blocking(procedure: Procedure[Result]) -> Result:
    """Run a procedure in this thread.

    An exception that arrives while it waits (KeyboardInterrupt) ends the running exchange by its ladder and
    is raised when the procedure has settled.
    """
    pending: BaseException | None = None
    try:
        exchange, begun = next(procedure), False
        while True:
            try:
                if not begun:
                    begun = True
                    exchange.begin()
                _wait(exchange)
            except BaseException as error:
                pending = pending or error
                if exchange.poller.closed:  # another thread has ended everything: the interpreter exits
                    raise
                exchange.stop()
                continue
            exchange.close()
            exchange, begun = procedure.send(None), False
            if pending is not None:
                exchange.stop()
    except StopIteration as stop:
        if pending is not None:
            raise pending from None
        return stop.value  # type: ignore[no-any-return]  # StopIteration carries Any
    except Exception as error:
        if pending is not None:
            raise pending from error
        raise
    finally:
        procedure.close()  # has ended, unless KeyboardInterrupt came between two exchanges: then it gets to know now


def _wait(exchange: Exchange) -> None:
    if _busy_poll(exchange):
        return
    poll = exchange.poller.poll
    while True:
        timeout = 0.0 if exchange.more else max(0.0, exchange.deadline - time.monotonic())
        if exchange.step(poll(timeout, _EVENTS)):
            return


def _busy_poll(exchange: Exchange) -> bool:
    """Poll for a moment if the shell is quick, and return whether the exchange is over."""
    home = exchange.home
    if home is None or not home.quick:
        return False
    poll = exchange.poller.poll
    until = exchange.started + _BUSY_POLL
    while time.monotonic() < until:
        if ((ready := poll(0, _EVENTS)) or exchange.more) and exchange.step(ready):
            return True
    return False


def _begin(exchange: Exchange) -> bool:
    exchange.begin()
    return _busy_poll(exchange)


async def drive_async(procedure: Procedure[Result]) -> Result:
    """Run a procedure on the running event loop.

    Cancelling ends the running exchange by its ladder; CancelledError is raised when the procedure has
    settled, which takes no longer than the grace period. So does any other exception while it waits.
    """
    loop = asyncio.get_running_loop()
    pending: BaseException | None = None
    try:
        exchange = next(procedure)
        while True:
            reader = _reader_of(exchange, loop)
            future = reader.start(exchange)
            while True:
                try:
                    if future.done():  # so quick a shell must not keep other tasks, or a cancellation, from their turn
                        await asyncio.sleep(0)
                    await future
                    break
                except BaseException as error:
                    pending = pending or error
                    if isinstance(error, GeneratorExit) or exchange.poller.closed:  # or the coroutine may not wait
                        raise
                    if reader.over:
                        break
                    exchange.stop()
                    future = reader.again(exchange)
            if exchange.home is None:
                reader.detach()
            exchange.close()
            exchange = procedure.send(None)
            if pending is not None:
                exchange.stop()
    except StopIteration as stop:
        if pending is not None:
            raise pending from None
        return stop.value  # type: ignore[no-any-return]  # StopIteration carries Any
    except Exception as error:
        if pending is not None:
            raise pending from error
        raise
    finally:
        procedure.close()  # as in `drive_blocking`


def _reader_of(exchange: Exchange, loop: asyncio.AbstractEventLoop) -> LoopReader:
    home = exchange.home
    if home is None:
        return LoopReader(loop, exchange.poller)
    reader = home.reader
    if isinstance(reader, LoopReader) and reader.loop is loop:
        return reader
    if reader is not None:
        reader.detach()
    home.reader = new = LoopReader(loop, home.poller)
    return new


class LoopReader(Reader):
    """Waits on one poller in one event loop.

    It stays in the loop's selector from one exchange to the next, and so does its timer: to put them there and
    take them out again would cost 50 us a command, half of what `true` takes. When something happens while no
    exchange waits here (somebody else drives the shell, or it has ended), it takes itself out.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, poller: select.epoll) -> None:
        self.loop = loop
        self._poller = poller
        self._fd = poller.fileno()
        self._thread = threading.get_ident()
        self._exchange: Exchange | None = None
        self._future: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0  # uvloop's handles do not tell
        self._registered = False

    @property
    def over(self) -> bool:
        """Whether the exchange that was started last is."""
        return self._exchange is None

    def start(self, exchange: Exchange) -> asyncio.Future[None]:
        """Begin an exchange, and return what becomes done with it."""
        self._exchange = exchange
        self._future = future = self.loop.create_future()
        if not self._registered:
            self._registered = True
            self.loop.add_reader(self._fd, self._ready)
        self._schedule(exchange)
        self._advance(_begin)
        return future

    def again(self, exchange: Exchange) -> asyncio.Future[None]:
        """Return a new future for the same exchange: the last one was cancelled, or a step has failed."""
        self._future = future = self.loop.create_future()
        self._schedule(exchange)
        return future

    def detach(self, then: Callable[[], object] | None = None) -> None:
        """Leave the loop, whatever thread this is called in, and call `then` afterwards."""
        if threading.get_ident() == self._thread or self.loop.is_closed():
            self._leave(then)
            return
        try:
            self.loop.call_soon_threadsafe(self._leave, then)
        except RuntimeError:  # it has been closed in between
            self._leave(then)

    def _leave(self, then: Callable[[], object] | None = None) -> None:
        if self._registered:
            self._registered = False
            if not self.loop.is_closed():
                self.loop.remove_reader(self._fd)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if then is not None:
            then()

    def _ready(self) -> None:
        if self._exchange is None:
            self._leave()
        elif self._future is not None and not self._future.done():  # else the driver is about to call `again`
            self._advance(self._step)

    def _step(self, exchange: Exchange) -> bool:
        return exchange.step(self._poller.poll(0, _EVENTS))

    def _advance(self, step: Callable[[Exchange], bool]) -> None:
        """Let the exchange do a step; if it is over then, or that failed, tell who waits."""
        exchange, future = self._exchange, self._future
        assert exchange is not None
        assert future is not None
        try:
            over = step(exchange)
        except BaseException as error:  # noqa: BLE001  (handed to the task that waits)
            future.set_exception(error)
            return
        if over:
            self._exchange = None
            future.set_result(None)
        elif exchange.more:
            self.loop.call_soon(self._ready)
        else:
            self._schedule(exchange)

    def _schedule(self, exchange: Exchange) -> None:
        # The loop's clock need not be `time.monotonic` (uvloop's is not).
        when = self.loop.time() + max(0.0, exchange.deadline - time.monotonic())
        if self._timer is not None:
            if self._timer_at <= when:
                return  # it looks again when it fires
            self._timer.cancel()
        self._timer, self._timer_at = self.loop.call_at(when, self._tick), when

    def _tick(self) -> None:
        self._timer = None
        exchange = self._exchange
        if exchange is None:
            return
        if exchange.deadline <= time.monotonic():
            self._ready()
        else:
            self._schedule(exchange)
