"""Live output: a command is drained in a thread of its own while a callback gets what it prints (contract C4).

The callback may be slow; the command must not feel it. So a thread drives the command and puts decoded chunks
into a bounded queue, and the caller's loop or thread takes them out. What does not fit is counted and noted.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import signal
import threading
from collections.abc import Callable

import attrs

from ..output.text import StreamDecoder
from ..result import ShellResult
from .base import RunCall, Session, StreamName
from .drive import drive_blocking

__all__ = ["stream_async", "stream_blocking"]

_log = logging.getLogger("shellkit")

#: Characters that may wait for a slow callback, of both streams together.
QUEUE_CHARACTERS = 1 << 20

Callback = Callable[[StreamName, str], object]


class _Chunks:
    """The bounded queue between the draining thread and the callback; `None` ends it."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._queue: queue.SimpleQueue[tuple[StreamName, str] | None] = queue.SimpleQueue()
        self._decoders: dict[StreamName, StreamDecoder] = {"stdout": StreamDecoder(), "stderr": StreamDecoder()}
        self._waiting = 0
        self._mutex = threading.Lock()
        self.lost = 0

    def listen(self, stream: StreamName, data: memoryview) -> None:
        self._put(stream, self._decoders[stream].feed(data))

    def finish(self) -> None:
        for stream, decoder in self._decoders.items():
            self._put(stream, decoder.finish())
        self._queue.put(None)
        self._notify()

    def _put(self, stream: StreamName, text: str) -> None:
        if not text:
            return
        with self._mutex:
            if self._waiting + len(text) > QUEUE_CHARACTERS and self._waiting:
                self.lost += 1
                return
            self._waiting += len(text)
        self._queue.put((stream, text))
        self._notify()

    def deliver(self, callback: Callback, *, wait: bool) -> bool:
        """Call back with everything there is, and return whether that was all there will ever be."""
        while True:
            try:
                item = self._queue.get(block=wait)
            except queue.Empty:
                return False
            if item is None:
                return True
            with self._mutex:
                self._waiting -= len(item[1])
            try:
                callback(*item)
            except Exception:  # noqa: BLE001  (a caller's fault must not hurt the command, contract C4)
                _log.exception("on_output raised; the command goes on")


def _with_losses(result: ShellResult, lost: int) -> ShellResult:
    if not lost:
        return result
    note = f"on_output was too slow for {lost} chunks, which it did not get; stdout and stderr are not affected."
    return attrs.evolve(result, notes=(*result.notes, note))


def stream_blocking(session: Session, call: RunCall, callback: Callback) -> ShellResult:
    """Run a command and call back in this thread. KeyboardInterrupt ends the command and is raised afterwards."""
    chunks = _Chunks(lambda: None)
    worker = _Worker(session, call, chunks)
    worker.start()
    interrupted: BaseException | None = None
    while True:
        try:
            if chunks.deliver(callback, wait=True):
                break
        except BaseException as error:  # noqa: BLE001  (raised below, when the command has ended)
            interrupted = error
            session.request_stop(for_good=False)
    worker.join()
    if interrupted is not None:
        raise interrupted
    return _with_losses(worker.outcome(), chunks.lost)


async def stream_async(session: Session, call: RunCall, callback: Callback) -> ShellResult:
    """Run a command and call back on the running loop. Cancelling ends the command first."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    chunks = _Chunks(lambda: _notify(loop, arrived))
    worker = _Worker(session, call, chunks)
    worker.start()
    interrupted: BaseException | None = None
    over = False
    while not over:
        try:
            await arrived.wait()
            arrived.clear()
            over = chunks.deliver(callback, wait=False)
        except BaseException as error:  # noqa: BLE001  (raised below, when the command has ended)
            interrupted = error
            session.request_stop(for_good=False)
    worker.join()
    if interrupted is not None:
        raise interrupted
    return _with_losses(worker.outcome(), chunks.lost)


def _notify(loop: asyncio.AbstractEventLoop, arrived: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(arrived.set)
    except RuntimeError:  # the loop was closed under the command; nobody listens any more
        _log.warning("the event loop was closed while a command streamed to it")


class _Worker(threading.Thread):
    """Drives one command; its result or exception is `outcome`."""

    def __init__(self, session: Session, call: RunCall, chunks: _Chunks) -> None:
        super().__init__(name="shellkit-stream", daemon=True)
        self._session = session
        self._call = attrs.evolve(call, listener=chunks.listen)
        self._chunks = chunks
        self._result: ShellResult | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        # As in the attendant: signals are for the thread that Python handles them in.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._result = drive_blocking(self._session.run(self._call))
        except BaseException as error:  # noqa: BLE001  (raised by `outcome` in the caller's thread)
            self._error = error
        finally:
            self._chunks.finish()

    def outcome(self) -> ShellResult:
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result
