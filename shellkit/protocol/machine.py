"""The state machine of one shell: bytes and intentions in, bytes and events out. No loop, clock or process.

A driver writes what the methods return to the shell's stdin, and gives what arrives to `receive`. Every
transition of a shell's life stands in this file:

    STARTING --trailer--> IDLE --begin/arrange/settle/run_script--> RUNNING --trailer--> IDLE
    IDLE --checkpoint--> PRINTING --state--> IDLE
    any --shell_ended--> ENDED

Two framings: `Machine` has a control channel of its own (local shells), `InBandMachine` finds the report on the
command's output streams.

Reports are records that end in NUL on the control channel: `TOKEN E <exit code> <directory>` (the trailer)
and `TOKEN S <state>`. What stands before the token is noise of the user's traps, or the names of shadowed
words. The token is random per shell and the channel is read by the host only, so nothing a command prints
can be taken for a report.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterator

import attrs

from .base import Call, Dialect, Endpoints, Link
from .events import Channel, CheckpointTaken, Event, Finished, OutputReceived
from .scanner import MarkerScanner
from .state import Checkpoint, parse_sections

__all__ = ["InBandMachine", "Machine", "ProtocolViolation", "State"]


#: How a function is defined. The literals come first, for a search from `(\w+)` on is quadratic in a long word.
_PARENTHESES = re.compile(rb"\(\s*\)")
_NAME_BEFORE = re.compile(rb"(\w+)\s*\Z")
_KEYWORD = re.compile(rb"function\s+(\w+)")


class ProtocolViolation(Exception):
    """The driver asked for something that the shell's state does not allow: a fault in shellkit."""


class State(enum.Enum):
    """Where a shell is in its life."""

    STARTING = "starting"
    IDLE = "idle"
    RUNNING = "running"
    PRINTING = "printing"
    ENDED = "ended"


class Machine:
    """The conversation with one shell over a control channel.

    Args:
        dialect: how to talk to this family.
        link: the agreement with this shell.
    """

    def __init__(self, dialect: Dialect, link: Link) -> None:
        self.dialect = dialect
        self.link = link
        self.state = State.STARTING
        self._received = bytearray()
        self._searched = 0
        #: What the wrapper that the shell holds was made for; None if it needs a new one.
        self._wrapper: Endpoints | None = None
        self._redefine = False
        self._state_mark = link.token + b" S \n#" + link.token + b":"
        self._trailer_mark = link.token + b" E "

    # -- intentions: each returns what to write --------------------------------------------------------

    def start(self, workdir: bytes) -> bytes:
        """Return the lines that make the new shell ready in `workdir`."""
        self._expect(State.STARTING)
        return self.dialect.prelude(self.link, workdir)

    def begin(self, call: Call) -> bytes:
        """Return the line that runs a command."""
        self._move(State.IDLE, State.RUNNING)
        before, self._wrapper = self._wrapper, call.endpoints
        install = call.endpoints is not before and call.endpoints != before
        return self._definitions() + self.dialect.line(self.link, call, install_wrapper=install)

    def begin_last(self, call: Call) -> bytes:
        """Return the line that runs a command in a shell that ends with it; only its end is reported."""
        self._move(State.IDLE, State.RUNNING)
        return self.dialect.last_line(self.link, call)

    def send(self, line: bytes) -> bytes:
        """Account for a line of the dialect's that ends in a trailer (`arrange`, `settle`, `run_script`)."""
        self._move(State.IDLE, State.RUNNING)
        return line

    def restore(self, checkpoint: Checkpoint, environ: Collection[str]) -> bytes:
        """Return the script, for `Dialect.run_script`, that gives this new shell the state of another."""
        self._note_shadowed(b"\n".join(self.dialect.shadowing(checkpoint)))
        self._redefine = False  # the script defines the functions
        return self.dialect.restore(self.link, checkpoint, environ)

    def watch(self, text: bytes) -> bytes:
        """Return lines that ask for words that a command with this text has shadowed, with a trailer."""
        # What the text itself defines is gone round at once: the question goes through such words.
        self._note_shadowed(b"\n".join(_defined(text)))
        return self.send(self._definitions() + self.dialect.watch(self.link) + b"\\__skt 0\n")

    def checkpoint(self) -> bytes:
        """Return the line that makes the idle shell print its state."""
        self._move(State.IDLE, State.PRINTING)
        return self._definitions() + self.dialect.checkpoint(self.link)

    def recover(self, *, forcibly: bool) -> bytes:
        """Return lines for a shell that waits for input although it owes a report."""
        if self.state not in (State.RUNNING, State.PRINTING):
            raise ProtocolViolation(f"recover in {self.state}")
        self.state = State.RUNNING
        self._note_shadowed(self.take_noise())
        self._wrapper = None
        self._redefine = False
        return self.dialect.recover(self.link, forcibly=forcibly)

    # -- what arrives ----------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes from the control channel and return the reports they complete."""
        self._received += data
        events: list[Event] = []
        while (end := self._received.find(b"\0", self._searched)) >= 0:
            record = bytes(self._received[:end])
            del self._received[: end + 1]
            self._searched = 0
            if (event := self._parse(record)) is not None:
                events.append(event)
        self._searched = len(self._received)
        return events

    def shell_ended(self) -> None:
        """Account for the end of the shell's process."""
        self.state = State.ENDED

    def take_noise(self) -> bytes:
        """Return what has arrived since the last record without being part of one."""
        noise = bytes(self._received)
        self._received.clear()
        self._searched = 0
        return noise

    def _parse(self, record: bytes) -> Event | None:
        # State holds the text of the wrapper's own functions, so its mark is the first one in the record. The
        # noise before a trailer may hold the trailer's source (`$BASH_COMMAND`), so its mark is the last one.
        if (start := record.find(self._state_mark)) >= 0:
            self._note_shadowed(record[:start])
            if self.state is State.PRINTING:
                self.state = State.IDLE
            sections = parse_sections(record[start:], self.link.token)
            return CheckpointTaken(Checkpoint(self.dialect.family, sections))
        noise, mark, report = record.rpartition(self._trailer_mark)
        code, blank, workdir = report.partition(b" ")
        if mark and blank and (code.isdigit() or not code):
            self._note_shadowed(noise)
            self.state = State.IDLE
            return Finished(int(code) if code else None, workdir)
        return None  # a NUL in the noise of a user's trap

    def _note_shadowed(self, noise: bytes) -> None:
        words = self.dialect.watched.intersection(noise.split(b"\n")) - self.link.shadowed
        if words:
            self.link = attrs.evolve(self.link, shadowed=self.link.shadowed | words)
            self._wrapper = None
            self._redefine = True

    def _definitions(self) -> bytes:
        # The shell's functions were written for other shadowed words: it needs them anew.
        if not self._redefine:
            return b""
        self._redefine = False
        return self.dialect.functions(self.link)

    # -- transitions -----------------------------------------------------------------------------------

    def _expect(self, state: State) -> None:
        if self.state is not state:
            raise ProtocolViolation(f"expected a shell that is {state.value}, it is {self.state.value}")

    def _move(self, before: State, after: State) -> None:
        self._expect(before)
        self.state = after


def _defined(text: bytes) -> Iterator[bytes]:
    """Yield the names of functions that a command's text may define."""
    for found in _PARENTHESES.finditer(text):
        start = found.start()
        if name := _NAME_BEFORE.search(text, max(0, start - 64), start):
            yield name.group(1)
    yield from _KEYWORD.findall(text)


class InBandMachine:
    """The same conversation where the report has to come on the command's own output streams.

    For transports with standard input, output and error only. Both streams carry the marker, so the end of each is
    known exactly and nothing has to be waited for. States: STARTING, IDLE and RUNNING as above, and ENDED.

    Args:
        dialect: how to talk to this family.
        new_marker: returns random text, another one at every call; a marker is used for one command only, because
            what a command has seen it could print.
    """

    def __init__(self, dialect: Dialect, new_marker: Callable[[], bytes]) -> None:
        self.dialect = dialect
        self.state = State.STARTING
        self._new_marker = new_marker
        self._scanners: dict[Channel, MarkerScanner] = {}

    def start(self, workdir: bytes) -> bytes:
        """Return the lines that make the new shell ready in `workdir`; `Finished` reports 0 if it could."""
        self._expect(State.STARTING)
        marker = self._expect_report()
        return self.dialect.in_band_prelude(workdir, marker)

    def begin(self, text: bytes, previous_exit_code: int = 0) -> bytes:
        """Return the line that runs a command."""
        self._expect(State.IDLE)
        self.state = State.RUNNING
        return self.dialect.in_band_line(text, previous_exit_code, self._expect_report())

    def receive(self, channel: Channel, data: bytes) -> list[Event]:
        """Take bytes of one stream (`b""` is its end) and return output, and the report when it is complete."""
        scanner = self._scanners.get(channel)
        if scanner is None:
            return [OutputReceived(channel, data)] if data else []
        output = scanner.feed(data) if data else scanner.finish()
        events: list[Event] = [OutputReceived(channel, output)] if output else []
        if not data:
            self.state = State.ENDED
        elif self.state is not State.IDLE and all(s.report is not None for s in self._scanners.values()):
            events.append(self._finish())
        return events

    def _finish(self) -> Finished:
        self.state = State.IDLE
        report = self._scanners[Channel.STDOUT].report or b""
        code, _, workdir = report.strip(b" ").partition(b" ")
        return Finished(int(code) if code.isdigit() else None, workdir)

    def _expect_report(self) -> bytes:
        marker = self._new_marker()
        self._scanners = {channel: MarkerScanner(marker) for channel in (Channel.STDOUT, Channel.STDERR)}
        return marker

    def _expect(self, state: State) -> None:
        if self.state is not state:
            raise ProtocolViolation(f"expected a shell that is {state.value}, it is {self.state.value}")
