"""`AdoptedJob`: a command that outlived its time-out, seen as a program: it can be waited for, read and stopped.

It looks like an `InteractiveSession` to the table of an executor's programs. Its input is at its end and it has no
terminal, so nothing can be typed to it. The session that it comes from still owns it, and drains it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

from ..errors import ProcessEnded, StdinClosed
from ..result import ShellResult
from .interactive import Output, ScreenView, Sink
from .interactive.alarm import Alarm
from .jobs import BackgroundJob

__all__ = ["AdoptedJob"]


class AdoptedJob:
    """A handed-over command.

    Args:
        result: what `run(..., on_timeout="background")` returned, with the job.
        sinks: what hears all that it prints from now on.

    Attributes:
        output_at: when it last printed something (`time.monotonic`).
        ref: the reference to its whole stdout, once some of it was left out.
    """

    tty = False
    unsent = 0
    asks_secret = False
    reads_lines = False
    waits_for_input = False
    leaves_running = False

    def __init__(self, result: ShellResult, sinks: Sequence[Sink]) -> None:
        self._job: BackgroundJob = result.background[0]
        self._inside = self._job._job
        self._sinks = sinks
        self._alarms: set[Alarm] = set()
        self._began = time.monotonic() - result.duration
        self._ended_at: float | None = None
        self.output_at = time.monotonic()
        self.ref = result.stdout_ref
        with self._inside.lock:
            for capture in self._inside.captures or ():
                capture.listeners = (*capture.listeners, self._hear)
        self._inside.when_ended(self._end)

    @property
    def pid(self) -> int | None:
        """One of its processes."""
        return self._job.pids[0] if self._job.pids else None

    @property
    def running(self) -> bool:
        """Whether it, or something that it left, runs."""
        return not self._inside.ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs, or if nobody can know."""
        return self._job.exit_code

    @property
    def runtime(self) -> float:
        """Seconds that it has run, or ran, those before its time-out included."""
        return (self._ended_at or time.monotonic()) - self._began

    async def wait(self, timeout: float | None = None) -> int | None:
        """Wait until it has ended; see `InteractiveSession.wait`."""
        await self.wait_until(lambda: not self.running, timeout)
        return self.exit_code

    async def wait_until(self, done: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until `done` returns true; see `InteractiveSession.wait_until`."""
        alarm = Alarm()
        self._alarms.add(alarm)
        try:
            return await alarm.wait_until(done, timeout)
        finally:
            self._alarms.discard(alarm)

    def read(self) -> Output:
        """Return what it has printed since it was last read, stderr after stdout."""
        read = self._inside.read()
        self.ref = read.stdout_ref or self.ref
        after = "\n" if read.stdout and read.stderr and not read.stdout.endswith("\n") else ""
        stderr = f"{after}[stderr]\n{read.stderr}" if read.stderr else ""
        return Output(read.stdout + stderr, read.stdout_omitted + read.stderr_omitted)

    def peek(self) -> str:
        """Return what is unread, and leave it so."""
        with self._inside.lock:
            return "\n".join(capture.buffer.text() for capture in self._inside.captures or ())

    async def write(self, text: str) -> None:
        """Refuse to type."""
        if not self.running:
            raise ProcessEnded("the command has ended; run it again")
        raise StdinClosed("a command that outlived its time-out has no input; launch a program that shall be typed to")

    def close_stdin(self) -> None:
        """Do nothing: its input is at its end."""

    def interrupt(self) -> None:
        """Send SIGINT to all its processes."""
        self._inside.signal(signal.SIGINT)

    def resize(self, rows: int, columns: int) -> None:
        """Refuse: there is no terminal."""
        raise ValueError("a command that outlived its time-out has no terminal; launch it with tty=True")

    async def screen(self) -> ScreenView:
        """Refuse: there is no terminal."""
        raise ValueError("a command that outlived its time-out has no terminal; launch it with tty=True")

    async def terminate(self) -> None:
        """End it and all that it started."""
        await self._job.stop()

    def abandon(self) -> None:
        """Kill it at once; the session that owns it gives everything back."""
        if self.running:
            self._inside.kill()

    # -- called by the session's attendant --------------------------------------------------------------

    def _hear(self, data: memoryview) -> None:
        for sink in self._sinks:
            sink.output(data)
        self.output_at = time.monotonic()
        self._ring()

    def _end(self) -> None:
        self._ended_at = time.monotonic()
        self._ring()

    def _ring(self) -> None:
        for alarm in tuple(self._alarms):
            alarm()
