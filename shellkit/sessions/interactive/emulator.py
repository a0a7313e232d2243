"""`Emulator`: the terminal emulator library pyte, and what it needs to survive arbitrary output.

Imported late, by `display` only: pyte and its tables of character widths take some 40 ms.
"""

from __future__ import annotations

import pyte

__all__ = ["Emulator"]


class _Stream(pyte.ByteStream):
    """A parser that passes over what its screen refuses: pyte raises on some private sequences and huge numbers."""

    def _send_to_parser(self, data: str) -> bool | None:
        try:
            return super()._send_to_parser(data)
        except Exception:  # noqa: BLE001  (whatever a program prints must not hide its screen; the parser begins anew)
            return self._taking_plain_text


class _Screen(pyte.Screen):
    """A screen that keeps what it answers to the program's questions."""

    def __init__(self, rows: int, columns: int) -> None:
        self.answers = ""
        super().__init__(columns, rows)

    def write_process_input(self, data: str) -> None:
        self.answers += data


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
