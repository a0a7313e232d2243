"""`Display`: what a person would see on the terminal of an interactive program. Owned by `Program`.

It only keeps what was printed until somebody looks: the emulator (pyte) takes about a second a megabyte, far too
long for the thread that drains. `view` runs it in the caller's thread. Only a program that asks its terminal something,
which waits for the answer, makes it draw at once.
"""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from .emulator import Emulator

__all__ = ["Display", "ScreenView"]

#: Bytes to keep between two looks: some ten full screens in colour. Whoever prints more has drawn them all anew.
KEPT_BYTES = 128 * 1024
_SLACK = 16 * 1024

#: What answers may take of the thread that drains all programs: seconds of its processor at once, and a part of the
#: time. Who asks without end, as a binary file does that is printed, waits for no answer.
_FREE, _SHARE = 0.1, 0.02

#: Where is the cursor, are you well (DSR), which terminal are you (DA; ECMA-48, sections 8.3.35 and 8.3.24).
_QUESTION = re.compile(rb"\x1b\[(?:[56]n|0?c)")

#: Where an emulator may begin after a cut: before a control sequence, after a line end.
_SAFE_START = re.compile(rb"(?=\x1b)|(?<=\n)")


@attrs.frozen(kw_only=True)
class ScreenView:
    """A terminal's screen at one moment.

    Attributes:
        lines: one string a row, without the blanks at its end.
        cursor: (row, column) from 0; a wide character takes two columns.
        rows: height of the screen.
        columns: its width.
        title: what the program has set as the window's title.
    """

    lines: tuple[str, ...]
    cursor: tuple[int, int]
    rows: int
    columns: int
    title: str = ""

    @property
    def text(self) -> str:
        """The lines joined, without the blank ones at the end."""
        return "\n".join(self.lines).rstrip("\n")


class Display:
    """The screen of one terminal; looked at from any thread.

    Args:
        rows: its height.
        columns: its width.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._lock = threading.Lock()
        self._drawing = threading.Lock()
        self._size = (rows, columns)
        #: What was printed since the last look, and the sizes set in between.
        self._pending: list[bytearray | tuple[int, int]] = []
        self._kept = 0
        self._cut = False
        self._emulator: Emulator | None = None
        self._began = time.monotonic()
        self._spent = 0.0

    def output(self, data: memoryview) -> bytes:
        """Take what the program printed, and return what the terminal answers to it."""
        with self._lock:
            if not self._pending or isinstance(self._pending[-1], tuple):
                self._pending.append(bytearray())
            last = self._pending[-1]
            assert isinstance(last, bytearray)
            last += data
            self._kept += len(data)
            if self._kept > KEPT_BYTES + _SLACK:
                self._drop(self._kept - KEPT_BYTES)
        if not _QUESTION.search(data):
            return b""
        if self._spent > _FREE + _SHARE * (time.monotonic() - self._began):
            return b""
        before = time.thread_time()
        answers = self._draw()[1]
        self._spent += time.thread_time() - before
        return answers

    def resized(self, rows: int, columns: int) -> None:
        """Account for a new size."""
        with self._lock:
            if self._pending and isinstance(self._pending[-1], tuple):
                self._pending.pop()
            self._pending.append((rows, columns))

    def view(self) -> ScreenView:
        """Draw what is new, and return the screen; takes up to some tenths of a second."""
        return self._draw()[0]

    def _draw(self) -> tuple[ScreenView, bytes]:
        """Return the screen, and what the terminal answers to what is new on it."""
        with self._drawing:
            with self._lock:
                pending, self._pending = self._pending, []
                self._kept = 0
                cut, self._cut = self._cut, False
            emulator = self._emulator
            if emulator is None:
                from .emulator import Emulator

                emulator = self._emulator = Emulator(*self._size)
            answers = b""
            for piece in pending:
                if isinstance(piece, tuple):
                    emulator.resize(*piece)
                    continue
                start = _SAFE_START.search(piece) if cut else None
                answers += emulator.feed(bytes(piece[start.start() if start else 0 :]))
                cut = False
            rows, columns = emulator.size
            view = ScreenView(
                lines=emulator.lines, cursor=emulator.cursor, rows=rows, columns=columns, title=emulator.title
            )
            return view, answers

    def _drop(self, surplus: int) -> None:
        """Forget the oldest bytes; sizes are kept."""
        self._cut = True
        self._kept -= surplus
        for piece in self._pending:
            if isinstance(piece, bytearray):
                count = min(surplus, len(piece))
                del piece[:count]
                surplus -= count
        self._pending = [piece for piece in self._pending if piece]
