"""One live shell: its process, its half of the conversation, and the pipes of the running command.

Owned by one session, used by one exchange at a time (`sessions/exchange.py`). It knows descriptors and bytes;
when to give up, and what a result looks like, is decided above.
"""

from __future__ import annotations

import os
import select
from abc import ABC, abstractmethod
from collections.abc import Callable

from ..output.buffer import HeadTailBuffer
from ..process import procfs
from ..process.base import Process
from ..process.pipes import Pipe, PipeSource
from ..process.room import room_for
from ..protocol.base import Endpoints
from ..protocol.events import Event
from ..protocol.machine import Machine
from .spill import SpillFile
from .stop import StopRequest

__all__ = ["Capture", "LiveShell", "Reader"]

#: A trailer is 40 bytes, a state some KiB; a larger buffer costs more to allocate than a second read.
_CONTROL_BYTES = 4096

_EDGE = select.EPOLLIN | select.EPOLLET


class Capture:
    """One output stream of a command: the pipe it is written to and the buffer it is kept in.

    Args:
        pipe: the reading end; owned by this object.
        limit: bytes to keep.
    """

    def __init__(self, pipe: Pipe, limit: int) -> None:
        self.pipe = pipe
        self.buffer = HeadTailBuffer(limit)
        self.listeners: tuple[Callable[[memoryview], object], ...] = ()
        self.spill: SpillFile | None = None  # where the rest goes if the buffer cannot keep everything
        self.readable = False
        self.ended = False

    def drain(self, most: int) -> int:
        """Read what is there, about `most` bytes at the most; clear `readable` when the pipe is empty.

        Returns:
            The number of bytes that were read.
        """
        buffer, fd = self.buffer, self.pipe.fd
        taken = 0
        while taken < most:
            view = buffer.reserve()
            try:
                count = os.readv(fd, [view])
            except BlockingIOError:
                self.readable = False
                break
            if count == 0:
                self.readable, self.ended = False, True
                break
            for listener in self.listeners:
                listener(view[:count])
            if self.spill is not None:
                self.spill.follow(buffer, view[:count])
            buffer.commit(count)
            taken += count
            if count < len(view):
                # A short read emptied the pipe; the edge-triggered poller reports whatever comes next.
                self.readable = False
                break
        return taken

    def drain_rest(self) -> None:
        """Read what the finished command has left, but not what a background job goes on writing.

        Afterwards `ended` tells whether nobody holds the pipe any more.
        """
        self.ended = False
        allowance = -1
        while True:
            count = self.drain(1)
            if self.ended or count == 0:
                return
            # What was in the pipe at the first look is the command's; a job may go on writing for ever.
            allowance = procfs.bytes_waiting(self.pipe.fd) if allowance < 0 else allowance - count
            if allowance < 0:
                return

    @property
    def ref(self) -> str | None:
        """The reference of the file with the whole output; None if there is none."""
        return self.spill.ref if self.spill is not None else None

    def clear(self) -> None:
        """Make ready for the next command."""
        self.buffer.clear()
        if self.spill is not None:
            self.spill.close()
            self.spill = None

    def append(self, data: bytes) -> None:
        """Take what arrived by another way than the pipe as the next bytes of the stream."""
        if self.spill is not None:
            self.spill.follow(self.buffer, memoryview(data))
        self.buffer.append(data)

    def close(self) -> None:
        """Give the pipe and the file back; idempotent."""
        self.pipe.close()
        if self.spill is not None:
            self.spill.close()


class Reader(ABC):
    """Something in an event loop that watches a shell's poller, and must let go of it before it is closed."""

    @abstractmethod
    def detach(self, then: Callable[[], object] | None = None) -> None:
        """Let go, in whatever thread, and call `then` afterwards."""


class LiveShell:
    """A shell that has been started.

    Args:
        process: its process; owned by this object.
        machine: the conversation with it.
        pipes: where the command's pipes come from.
        limit: bytes to keep of each stream.
        stop: by which another thread calls for attention; not owned.
        poller: watches nothing yet; owned by this object.
    """

    def __init__(
        self,
        process: Process,
        machine: Machine,
        pipes: PipeSource,
        limit: int,
        stop: StopRequest,
        poller: select.epoll,
    ) -> None:
        self.process = process
        self.machine = machine
        self._pipes = pipes
        self._limit = limit
        self._unsent: bytes | memoryview = b""
        self._ends = False
        self.poller = poller
        self.stop = stop
        #: Whether the last command was over so soon that the next is worth polling for.
        self.quick = False
        #: What watches the poller in an event loop, between exchanges too.
        self.reader: Reader | None = None
        # Edge-triggered: a pipe that has hung up between two commands must not wake anybody again.
        for fd in (process.control.fd, process.exited, stop.wake):
            self.poller.register(fd, _EDGE)
        self.poller.register(process.stdin, select.EPOLLOUT | select.EPOLLET)
        self.captures: tuple[Capture, Capture] | None = None
        self._watching = False

    def open_captures(self) -> tuple[Capture, Capture]:
        """Return the standing pair of (stdout, stderr), made anew when a job has kept the last one."""
        if self.captures is None:
            with room_for("there are no pipes for a command's output"):
                stdout = Capture(self._pipes.make(), self._limit)
                try:
                    stderr = Capture(self._pipes.make(), self._limit)
                except BaseException:
                    stdout.close()
                    raise
            self.captures = (stdout, stderr)
            out, err = (capture.pipe.path for capture in self.captures)
            self._endpoints = (Endpoints(out, err), Endpoints(out, None))
        return self.captures

    def endpoints(self, *, merge_stderr: bool) -> Endpoints:
        """The paths of the standing pair, which must have been opened."""
        return self._endpoints[merge_stderr]

    def watch_captures(self) -> None:
        """Let the poller tell when the running command prints something."""
        if not self._watching:
            self._watching = True
            for capture in self.captures or ():
                self.poller.register(capture.pipe.fd, _EDGE)

    def unwatch_captures(self) -> None:
        """Undo `watch_captures`: between commands a pipe only hangs up, which is nobody's business."""
        if self._watching:
            self._watching = False
            for capture in self.captures or ():
                self.poller.unregister(capture.pipe.fd)

    def give_up_captures(self) -> tuple[Capture, Capture]:
        """Hand the standing pair over to a background job."""
        captures, self.captures = self.captures, None
        assert captures is not None
        return captures

    def end_input(self) -> None:
        """Close the shell's stdin as soon as everything has been sent: it ends after what it was given."""
        self._ends = True
        self.flush()

    def discard_output(self) -> None:
        """Forget what the last command printed."""
        for capture in self.captures or ():
            capture.clear()

    def look_again(self) -> None:
        """Have the poller tell anew: an exception (KeyboardInterrupt) may have come between an event and its due."""
        for fd in (self.process.control.fd, self.process.exited):
            self.poller.modify(fd, _EDGE)
        self.flush()

    # -- talking ---------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send bytes to the shell; what the pipe does not take now goes out when it has room."""
        self._unsent = b"".join((self._unsent, data)) if self._unsent else data
        self.flush()

    def flush(self) -> None:
        """Send what `write` could not."""
        while self._unsent and self.process.stdin >= 0:
            try:
                count = os.write(self.process.stdin, self._unsent)
            except BlockingIOError:
                return
            except BrokenPipeError:  # the shell has ended, or closed its stdin; its end is reported by `exited`
                self._unsent = b""
                return
            self._unsent = memoryview(self._unsent)[count:]
        if self._ends and self.process.stdin >= 0:
            self.poller.unregister(self.process.stdin)
            self.process.close_stdin()

    def receive(self) -> list[Event]:
        """Return the reports that have arrived on the control channel."""
        events: list[Event] = []
        while True:
            try:
                data = os.read(self.process.control.fd, _CONTROL_BYTES)
            except BlockingIOError:
                return events
            if not data:
                return events
            events += self.machine.receive(data)
            if len(data) < _CONTROL_BYTES:
                return events

    def sits_idle(self) -> bool:
        """Whether the shell waits for the next line, so that a report it owes will never come."""
        if self._unsent or self.process.stdin < 0:
            return False
        stdin = self.process.stdin
        return procfs.bytes_waiting(stdin) == 0 and bool(procfs.is_reading(self.process.pid, stdin))

    def holds_unread(self, count: int) -> bool:
        """Whether the shell has left the last `count` bytes that were sent unread."""
        stdin = self.process.stdin
        return stdin >= 0 and count > 0 and not self._unsent and procfs.bytes_waiting(stdin) >= count

    def workdir(self) -> bytes | None:
        """The real path of the shell's directory as the kernel knows it."""
        return procfs.workdir(self.process.pid)

    def wait_for_end(self) -> None:
        """Wait until a shell that has been killed is gone: the kernel takes microseconds, a stuck device for ever."""
        waiting = select.poll()
        waiting.register(self.process.exited, select.POLLIN)
        waiting.poll(1000)
        self.process.exit_code()

    def close(self) -> None:
        """Give everything back; the process must have ended. Idempotent."""
        self.process.close()
        if self.captures is not None:
            for capture in self.captures:
                capture.close()
            self.captures = None
        reader, self.reader = self.reader, None
        if reader is None:
            self.poller.close()
        else:
            reader.detach(self.poller.close)
