"""The pieces of one stream as they are found on disk: bytes by offset, and lines by number.

The stream may grow, and its pieces may go, while it is read: what is open stays readable, and what is gone before is
missing, never an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import TracebackType

import attrs

__all__ = ["SpilledStream"]

_BLOCK = 256 * 1024


@attrs.frozen
class _Piece:
    fd: int
    begin: int
    end: int
    lines: int  # newlines of the stream before it


class SpilledStream:
    """A stream as it was at one moment; a context manager that holds its pieces open.

    Args:
        folder: where its pieces are.

    Attributes:
        total: bytes of the stream.
        missing: ranges of bytes (from, up to) that were given up.
    """

    def __init__(self, folder: str) -> None:
        self._pieces = sorted(_found(folder), key=lambda piece: piece.begin)
        self.total = self._pieces[-1].end if self._pieces else 0
        ends = [0, *(piece.end for piece in self._pieces)]
        begins = [piece.begin for piece in self._pieces]
        self.missing = tuple((end, begin) for end, begin in zip(ends, begins, strict=False) if end < begin)

    def __enter__(self) -> SpilledStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for piece in self._pieces:
            os.close(piece.fd)

    @property
    def gone(self) -> bool:
        """Whether nothing of it is left."""
        return not self._pieces

    def blocks(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield what is kept between two offsets as (offset, bytes), in pieces of up to 256 KiB."""
        for piece in self._pieces:
            yield from _blocks(piece, max(begin, piece.begin), min(end, piece.end))

    def line_at(self, offset: int) -> int:
        """Return the number of the line that the byte at `offset` belongs to; the first is 1."""
        piece = self._last(lambda piece: piece.begin <= offset)
        passed = sum(block.count(b"\n") for _, block in _blocks(piece, piece.begin, min(offset, piece.end)))
        return piece.lines + passed + 1

    def start_of_line(self, number: int) -> int:
        """Return the offset of a line's first byte; if that is missing, of the first byte after it that is kept."""
        newlines = number - 1
        first = self._last(lambda piece: piece.lines < newlines)
        for piece in self._pieces[self._pieces.index(first) :]:
            passed = piece.lines
            if passed >= newlines:  # it began in what is missing before this piece, or is the very first
                return piece.begin
            for at, block in _blocks(piece, piece.begin, piece.end):
                count = block.count(b"\n")
                if passed + count >= newlines:
                    return at + _after(block, newlines - passed)
                passed += count
        return self.total

    def _last(self, fits: Callable[[_Piece], bool]) -> _Piece:
        return next((piece for piece in reversed(self._pieces) if fits(piece)), self._pieces[0])


def _found(folder: str) -> Iterator[_Piece]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        begin, _, lines = name.partition("-")
        try:
            fd = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if size := os.fstat(fd).st_size:
            yield _Piece(fd, int(begin), int(begin) + size, int(lines))
        else:
            os.close(fd)


def _blocks(piece: _Piece, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    while at < end and (block := os.pread(piece.fd, min(_BLOCK, end - at), at - piece.begin)):
        yield at, block
        at += len(block)


def _after(block: bytes, count: int) -> int:
    """Return the index after the newline with this number."""
    at = 0
    for _ in range(count):
        at = block.index(b"\n", at) + 1
    return at
