"""`Recorder`: writes what happens in a session to an asciicast file, as it happens.

For the commands of a session, which have no terminal, it draws what a person would have seen: the command after a
prompt, then what it prints. For an interactive program it is a sink. It never waits for anything but the disk, and
no error of the disk reaches whoever it records.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable

from ..output.asciicast import INPUT, OUTPUT, RESIZED, Event, Header, event_line, header_line
from ..output.text import StreamDecoder
from .interactive.sink import Sink

__all__ = ["Recorder"]

_log = logging.getLogger("shellkit")

#: Bytes of a file after which it records no more: a command can print that in a minute, and nobody watches it.
MOST_BYTES = 1 << 30


class Recorder(Sink):
    """Record to a new file, readable for this user only.

    The file is opened for each event and closed again: it can be played at any moment, after a crash too, and there is
    nothing to give back. Any thread may call.

    Args:
        path: the file, which must not exist.
        rows: lines of the terminal.
        columns: characters in a line of the terminal.
        title: what it shows; None for nothing.

    Raises:
        TypeError: `path` is no path.
        ValueError: the file exists, or cannot be made.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, rows: int = 24, columns: int = 120, title: str | None = None
    ) -> None:
        self._path = os.path.abspath(os.path.expanduser(os.fsdecode(path)))
        self._mutex = threading.Lock()
        self._began = time.monotonic()
        self._decoder = StreamDecoder()
        self._room = MOST_BYTES
        header = Header(columns=columns, rows=rows, timestamp=int(time.time()), title=title)
        try:
            self._append(header_line(header), os.O_CREAT | os.O_EXCL)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            why = "exists" if isinstance(error, FileExistsError) else f"cannot be written ({error})"
            raise ValueError(f"the recording {self._path} {why}; name another file") from None

    def beside(self, *, rows: int, columns: int, title: str) -> Sink:
        """Return what records a program of the same session: demo.cast has demo-1.cast, demo-2.cast beside it."""
        stem, extension = os.path.splitext(self._path)
        with self._mutex:
            path = next(path for n in itertools.count(1) if not os.path.lexists(path := f"{stem}-{n}{extension}"))
            try:
                return Recorder(path, rows=rows, columns=columns, title=title)
            except ValueError as error:  # it was there when the session began, and is full or gone now
                _log.warning("a program is not recorded: %s", error)
                return Sink()

    # -- a program's terminal --------------------------------------------------------------------------

    def output(self, data: memoryview) -> None:
        self._add(OUTPUT, self._decoder.feed(data))

    def input(self, data: bytes) -> None:
        self._add(INPUT, data.decode("utf-8", "replace"))

    def resized(self, rows: int, columns: int) -> None:
        self._add(RESIZED, f"{columns}x{rows}")

    # -- a session's commands --------------------------------------------------------------------------

    def command(self, text: str) -> None:
        """Account for a command that is about to run."""
        self._add(INPUT, text + "\n")
        self._add(OUTPUT, _drawn(f"$ {text}\n"))

    def stream(self) -> Callable[[memoryview], None]:
        """Return what takes the output of one stream of the command, as it comes."""
        decoder = StreamDecoder()
        return lambda data: self._add(OUTPUT, _drawn(decoder.feed(data)))

    # -- the file --------------------------------------------------------------------------------------

    def _add(self, code: str, data: str) -> None:
        with self._mutex:
            if not data or self._room <= 0:
                return
            line = event_line(Event(time.monotonic() - self._began, code, data))
            self._room -= len(line)
            try:
                self._append(line if self._room > 0 else self._last_words())
            except OSError as error:
                self._room = 0
                _log.warning("%s records no more: %s", self._path, error)

    def _last_words(self) -> bytes:
        text = f"\r\n[the recording ends here: it has {MOST_BYTES} bytes]\r\n"
        return event_line(Event(time.monotonic() - self._began, OUTPUT, text))

    def _append(self, line: bytes, flags: int = 0) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)


def _drawn(text: str) -> str:
    """Return text as a terminal's driver would pass it on (termios(3), ONLCR)."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
