"""`InputQueue`: what was typed to a program and has not been taken by the terminal or pipe. Owned by `Program`."""

from __future__ import annotations

import os
import select

from .channel import Channel
from .pump import CHUNK_BYTES, Pump, Watcher

__all__ = ["InputQueue"]


class InputQueue:
    """Bytes on their way to a program; they go out as soon as there is room. Its owner lets one thread in at a time.

    Args:
        channel: where they go; not owned.
        pump: the thread that tells when there is room; it watches the channel's reader already.
        flusher: what it calls then, which calls `flush`.
    """

    def __init__(self, channel: Channel, pump: Pump, flusher: Watcher) -> None:
        self._channel = channel
        self._pump = pump
        self._flusher = flusher
        self._bytes = bytearray()
        self._ending = False
        self._watching = False

    def __len__(self) -> int:
        return len(self._bytes)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be typed."""
        return self._ending or self._channel.writer < 0

    def add(self, data: bytes) -> None:
        """Send bytes, at once as far as there is room."""
        self._bytes += data
        self.flush()

    def end(self) -> None:
        """Close the channel's writer after what is in the queue."""
        self._ending = True
        self.flush()

    def clear(self) -> None:
        """Forget what has not been taken."""
        self._bytes.clear()

    def flush(self) -> None:
        """Send as much as there is room for."""
        writer = self._channel.writer
        if writer < 0:
            return
        try:
            while self._bytes:
                del self._bytes[: os.write(writer, self._bytes[:CHUNK_BYTES])]
        except BlockingIOError:
            self._watch(True)
            return
        except BrokenPipeError:  # the program has closed its stdin
            self._bytes.clear()
            self._ending = True
        self._watch(False)
        if self._ending:
            self._channel.close_writer()

    def _watch(self, wanted: bool) -> None:
        if wanted == self._watching:
            return
        self._watching = wanted
        reader, writer = self._channel.reader, self._channel.writer
        if reader == writer:
            self._pump.change(reader, select.EPOLLIN | (select.EPOLLOUT if wanted else 0))
        elif wanted:
            self._pump.watch(writer, select.EPOLLOUT, self._flusher)
        else:
            self._pump.forget(writer)
