"""`Emulator`: the terminal emulator library pyte, and what it needs to survive arbitrary output.

Imported late, by `display` only: pyte and its tables of character widths take some 40 ms.
"""

from __future__ import annotations

import unicodedata
from itertools import groupby

import pyte
from pyte.screens import wcwidth

__all__ = ["Emulator"]

_JOINER = "\u200d"
#: Characters of one cell: a joined emoji has ten, and nobody shall fill the memory with one cell.
_MOST_IN_CELL = 16


class _Stream(pyte.ByteStream):
    """A parser that passes over what its screen refuses: pyte raises on some private sequences and huge numbers."""

    def _send_to_parser(self, data: str) -> bool | None:
        try:
            return super()._send_to_parser(data)
        except Exception:  # noqa: BLE001  (whatever a program prints must not hide its screen; the parser begins anew)
            return self._taking_plain_text


class _Screen(pyte.Screen):
    """A screen that draws on after a character without width, where pyte stops, and keeps what it answers."""

    def __init__(self, rows: int, columns: int) -> None:
        self.answers = ""
        super().__init__(columns, rows)

    def write_process_input(self, data: str) -> None:
        self.answers += data

    def draw(self, data: str) -> None:
        if data.isascii() and data.isprintable():
            super().draw(data)
            return
        for has_width, run in groupby(data, key=lambda char: wcwidth(char) > 0):
            if has_width:
                super().draw("".join(run))
            else:
                for char in run:
                    self._join(char)

    def _join(self, char: str) -> None:
        """Add a mark, a variation selector or a joiner to the character before the cursor; drop all else."""
        at = self.cursor.x - 1
        if at < 0 or (char != _JOINER and not unicodedata.category(char).startswith("M")):
            return
        line = self.buffer[self.cursor.y]
        if not line[at].data and at:  # the second half of a wide character
            at -= 1
        if len(line[at].data) < _MOST_IN_CELL:
            line[at] = line[at]._replace(data=unicodedata.normalize("NFC", line[at].data + char))


class Emulator:
    """A screen and the parser that draws on it.

    Args:
        rows: its height.
        columns: its width.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._screen = _Screen(rows, columns)
        self._stream = _Stream(self._screen)

    def feed(self, data: bytes) -> bytes:
        """Draw what a program printed; a character or sequence may go on in the next call.

        Returns:
            What the terminal answers.
        """
        self._stream.feed(data)
        answers, self._screen.answers = self._screen.answers, ""
        return answers.encode()

    def resize(self, rows: int, columns: int) -> None:
        """Change the size, as the program is told to."""
        self._screen.resize(rows, columns)

    @property
    def lines(self) -> tuple[str, ...]:
        """One string a row, without the blanks at its end."""
        return tuple(line.rstrip() for line in self._screen.display)

    @property
    def cursor(self) -> tuple[int, int]:
        """(row, column) from 0."""
        # Behind the last character of a full line pyte's cursor stands outside the screen.
        return self._screen.cursor.y, min(self._screen.cursor.x, self._screen.columns - 1)

    @property
    def size(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self._screen.lines, self._screen.columns

    @property
    def title(self) -> str:
        """What the program has set as the window's title."""
        return self._screen.title
