"""`Program`: the inside of an interactive session: one process, how it is connected, and what it has printed.

Shared by the pump's thread, which drains it and sees it end, and by callers of any thread and loop. It never waits
for the program; `session.InteractiveSession` does. It is no part of that object, so that one that was forgotten can
be ended when it is garbage (contract G3).
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from ...errors import ProcessEnded, StdinClosed
from ...output.buffer import HeadTailBuffer
from ...output.text import unfinished
from ...process import reaper
from ...process.awaiting import awaits_input, descendants
from ...process.ending import look, watch
from ...process.tree import Containment, containment, send
from .channel import Channel
from .display import Display
from .expectation import Expectation
from .input_queue import InputQueue
from .pump import CHUNK_BYTES, Pump
from .sink import Sink

__all__ = ["Output", "Program"]

_log = logging.getLogger("shellkit")

#: Seconds after which a program is put into its containment: one that is gone sooner is not worth the stall.
_ENTER_SECONDS = 0.05

#: Reads of one program before looking at the others.
_READS = 16

#: What is printed last when a program asks for a password on pipes, or without canonical mode (`sudo` with pwfeedback).
_SECRET_PROMPT = re.compile(rb"(?i)(?:pass ?(?:word|phrase|code)|\bPIN\b|secret|token)[^\n]*[:?] ?$")
_PROMPT_BYTES = 200

#: Bytes that may wait for the program when its terminal answers it.
_MOST_UNANSWERED = 1024

Alarm = Callable[[], object]


@attrs.frozen
class Output:
    """What a program has printed since it was last read.

    Attributes:
        text: decoded from UTF-8; over the limit its head and tail, with a marker line between them.
        omitted: bytes left out of `text`.
    """

    text: str = ""
    omitted: int = 0


class Program:
    """A program that has been started.

    Args:
        argv: the program, as a path, and its arguments.
        env: its whole environment but for the cookie.
        channel: how to connect it; owned by this object.
        buffer: what it prints is kept in it until it is read; owned by this object.
        display: what a person would see on its terminal, if it has one; owned by this object.
        pump: the thread that drains it; not owned.
        sinks: what else gets everything.

    Raises:
        SpawnError: it cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[bytes, bytes],
        channel: Channel,
        buffer: HeadTailBuffer,
        display: Display | None,
        pump: Pump,
        sinks: Iterable[Sink],
    ) -> None:
        # Reentrant, because its methods call each other.
        self._lock = threading.RLock()
        #: One of its own for what may take 20 ms: nobody who types shall wait for that.
        self._entering = threading.Lock()
        self._channel = channel
        self._pump = pump
        self._sinks = list(sinks)
        self._buffer = buffer
        self._display = display
        self._partial = b""
        self._last = b""
        self._input = InputQueue(channel, pump, self._writable)
        self._alarms: set[Alarm] = set()
        self._expectation: Expectation | None = None
        self._released = False
        self._ended_at: float | None = None
        self._status: int | None = None
        self._pidfd = -1
        self._cookie = secrets.token_hex(8)
        try:
            self._containment: Containment = containment(self._cookie)
        except BaseException:
            channel.close()
            raise
        try:
            self.started_at = self.output_at = time.monotonic()
            self.pid = channel.spawn(argv, {**env, b"SHELLKIT_SESSION": self._cookie.encode()})
            self._pidfd = watch(self.pid)
        except BaseException:
            channel.close()  # first: what ran out of descriptors needs some to end
            self._containment.close()
            raise
        try:
            self._containment.announce(self.pid)
            self._containment.command_starts()
            reaper.watch(self._cookie, self.pid, self._containment.path)
            pump.watch(channel.reader, select.EPOLLIN, self._readable)
            pump.watch(self._pidfd, select.EPOLLIN, self._process_ended)
            pump.run(self._enter, after=_ENTER_SECONDS)
        except BaseException:
            self.release()
            raise

    # -- what it is at -----------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether the process has ended, and everything that it printed is here."""
        return self._ended_at is not None

    @property
    def exit_code(self) -> int | None:
        """How it ended (0-255, a signal as 128+n); None if it has not, or nobody can know."""
        return self._status

    @property
    def runtime(self) -> float:
        """Seconds from its start to its end, or until now."""
        return (time.monotonic() if self._ended_at is None else self._ended_at) - self.started_at

    @property
    def unsent(self) -> int:
        """Bytes that were typed and that neither terminal nor pipe has room for yet."""
        return len(self._input)

    @property
    def echo(self) -> bool:
        """Whether the terminal shows what is typed; without a terminal nothing does."""
        terminal = self._channel.terminal
        with self._lock:
            return terminal is not None and not self._released and terminal.echo

    @property
    def asks_secret(self) -> bool:
        """Whether what is typed now is meant for no eyes, as far as terminal and prompt tell."""
        terminal = self._channel.terminal
        with self._lock:
            if self._released or (terminal is not None and terminal.echo):
                return False
            # Programs that edit lines themselves (readline, vim) turn off both; getpass(3), sudo and ssh only ECHO.
            if terminal is not None and terminal.canonical:
                return True
            return _SECRET_PROMPT.search(self._last) is not None  # on pipes (`sudo -S`) there is nothing else to go by

    @property
    def reads_lines(self) -> bool:
        """Whether a terminal passes whole lines on, and drops what is too long for one."""
        terminal = self._channel.terminal
        with self._lock:
            return terminal is not None and not self._released and terminal.canonical

    def waits_for_input(self) -> bool | None:
        """Return whether it, or what it runs, is blocked until somebody types; None if the kernel does not say."""
        with self._lock:
            if self.ended or self._released:
                return False
            names = self._channel.names()
        found = [awaits_input(pid, names) for pid in descendants(self.pid)]
        return True if True in found else None if None in found else False

    # -- talking -----------------------------------------------------------------------------------------

    def type(self, data: bytes) -> None:
        """Send bytes; what has no room now goes out when there is some.

        Raises:
            ProcessEnded: the program has.
            StdinClosed: the program or `close_stdin` has closed its input.
        """
        with self._lock:
            if self.ended or self._released:
                raise ProcessEnded("the program has ended; start it again to type to it")
            if self._input.closed:
                raise StdinClosed(
                    "the program's stdin is closed; start it again and leave it open, in a terminal if it has to "
                    "think that a person types"
                )
            shown = b"*" * len(data) if self._sinks and self.asks_secret else data
            self._tell_sinks(lambda sink: sink.input(shown))
            if self._channel.terminal is None and b"\n" in data:
                self._last = b""  # the prompt is answered
            self._input.add(data)

    def close_stdin(self) -> None:
        """Let the program see end-of-file after what was typed; in a terminal by Ctrl-D, as a person would."""
        with self._lock:
            if self.ended or self._released:
                return
            if self._channel.terminal is not None:
                self.type(b"\x04")
            else:
                self._input.end()

    def interrupt(self) -> None:
        """Send SIGINT to what runs in the foreground; what was typed and not yet taken is dropped, as by Ctrl-C."""
        with self._lock:
            if not self.ended and not self._released:
                self._input.clear()
                self._channel.interrupt(self.pid)

    def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size."""
        with self._lock:
            if self._channel.terminal is None:
                raise ValueError("a program on pipes has no size; start it with tty=True")
            if not self._released:
                self._channel.terminal.resize(rows, columns)
                if self._display is not None:
                    self._display.resized(rows, columns)
                self._tell_sinks(lambda sink: sink.resized(rows, columns))

    def take(self) -> Output:
        """Return what was printed since the last time, up to this moment."""
        with self._lock:
            if not self._released:
                # The pump may be resting, or behind: what a program printed before it asked for input is its answer.
                self._drain(memoryview(bytearray(CHUNK_BYTES)))
            output = Output(self._buffer.text(), self._buffer.omitted)
            self._buffer.clear()
            return output

    def peek(self) -> str:
        """Return what `take` would, and leave it unread."""
        with self._lock:
            return self._buffer.text()

    def expect(self, expectation: Expectation) -> None:
        """Let what is unread, and what comes from now on, be searched until `unexpect`.

        Raises:
            ValueError: somebody else waits for a pattern of the same program.
        """
        with self._lock:
            if self._expectation is not None:
                raise ValueError("somebody waits for a pattern of this program already; wait one after the other")
            self._expectation = expectation
            expectation.look(self._buffer.text(), self._buffer)

    def unexpect(self) -> None:
        """Search no more."""
        with self._lock:
            self._expectation = None

    def ring(self, alarm: Alarm) -> None:
        """Call `alarm`, in any thread, whenever something has happened, until `silence`."""
        with self._lock:
            self._alarms.add(alarm)

    def silence(self, alarm: Alarm) -> None:
        """Undo `ring`."""
        with self._lock:
            self._alarms.discard(alarm)

    # -- ending ------------------------------------------------------------------------------------------

    def signal(self, number: int) -> None:
        """Send a signal to everything that the program started, itself included; then let what is stopped go on."""
        if number == signal.SIGKILL and self._containment.complete:
            self._containment.kill_everything()
            return
        members = self._near() if number != signal.SIGTERM else self._containment.everything()
        send(members, number)
        send(members, signal.SIGCONT)

    def _near(self) -> list[int]:
        """Return what the program started.

        Without a cgroup, and while it runs, that is what can be found without a scan: one takes 5 ms and more, and when
        64 programs end at once, as many scans before the first SIGKILL has come would take all of the grace period.
        """
        if not self._containment.complete:
            with self._lock:  # it cannot be reaped now, so its number is its own
                if not self.ended:
                    return list(descendants(self.pid))
        return self._containment.everything()

    def survives(self) -> bool:
        """Return whether anything that the program started is alive, itself included."""
        return not self._released and (not self.ended or bool(self._containment.everything()))

    def release(self) -> None:
        """Kill what is left and give everything back; what it printed can still be read. Idempotent."""
        with self._lock:
            if self._released:
                return
            buffer = memoryview(bytearray(CHUNK_BYTES))
            self._drain(buffer)
            self._released = True
            self._input.clear()
            for fd in {self._channel.reader, self._channel.writer, self._pidfd}:
                self._pump.forget(fd)
            # Before the rest, which needs descriptors to look around with.
            self._channel.close()
            if not self.ended:
                self._containment.kill_everything()
                waiting = select.poll()
                waiting.register(self._pidfd, select.POLLIN)
                waiting.poll(1000)  # the kernel takes microseconds, a stuck device for ever
                self._look_at_end()
                self._note_end(buffer)
            os.close(self._pidfd)
        with self._entering:
            self._containment.close()
        reaper.unwatch(self._cookie)

    # -- called by the pump ------------------------------------------------------------------------------

    def _enter(self) -> None:
        with self._entering:
            if not self._released:
                self._containment.enter(self.pid)

    def _readable(self, events: int, buffer: memoryview) -> None:
        with self._lock:
            if not self._released:
                if events & select.EPOLLOUT:
                    self._writable(events, buffer)
                self._drain(buffer)

    def _writable(self, events: int, buffer: memoryview) -> None:
        with self._lock:
            if not self._released:
                self._input.flush()
                self._alert()

    def _process_ended(self, events: int, buffer: memoryview) -> None:
        with self._lock:
            if not self._released and not self.ended and self._look_at_end():
                self._pump.forget(self._pidfd)
                self._note_end(buffer)

    def _look_at_end(self) -> bool:
        ending = look(self._pidfd)
        if ending is not None:
            self._status = ending.exit_code
        return ending is not None

    def _note_end(self, buffer: memoryview) -> None:
        self._containment.leave(self.pid)
        # What it printed is in the pipe or the terminal by now; what goes on printing is something that it left.
        self._drain(buffer)
        self._keep(self._partial)
        self._partial = b""
        self._input.clear()
        self._ended_at = time.monotonic()
        self._alert()

    def _drain(self, buffer: memoryview) -> None:
        """Read what is there, within bounds; nothing once the channel has been given back."""
        if self._released:
            return
        reader = self._channel.reader
        for _ in range(_READS):
            try:
                count = os.readv(reader, [buffer])
            except BlockingIOError:
                return
            if not count:
                self._pump.forget(reader)
                return
            self._receive(buffer[:count])

    def _receive(self, data: memoryview) -> None:
        self._tell_sinks(lambda sink: sink.output(data))
        if self._display is not None:
            answer = self._display.output(data)
            # Who does not read the answers has no right to more of them.
            if answer and len(self._input) < _MOST_UNANSWERED:
                self._input.add(answer)
        block = memoryview(self._partial + data) if self._partial else data
        whole = len(block) - unfinished(block)
        self._keep(block[:whole])
        self._partial = bytes(block[whole:])
        self._last = (self._last + bytes(data[-_PROMPT_BYTES:]))[-_PROMPT_BYTES:]
        self.output_at = time.monotonic()
        self._alert()

    def _keep(self, data: bytes | memoryview) -> None:
        if data:
            self._buffer.append(data)
            if self._expectation is not None:
                self._expectation.look(bytes(data).decode("utf-8", "replace"), self._buffer)

    def _alert(self) -> None:
        for alarm in self._alarms:
            alarm()

    def _tell_sinks(self, tell: Callable[[Sink], None]) -> None:
        for sink in tuple(self._sinks):
            try:
                tell(sink)
            except Exception:  # noqa: BLE001  (somebody else's fault must not hurt the program)
                _log.exception("a sink of an interactive program raised; it gets no more")
                self._sinks.remove(sink)
