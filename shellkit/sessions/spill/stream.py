"""The segments of one stream as they are found on disk: bytes by offset, and lines by number.

The stream may grow, and its segments may go, while it is read: what is gone is missing, never an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import attrs

__all__ = ["SpilledStream"]

_BLOCK = 256 * 1024


@attrs.frozen
class _Segment:
    path: str
    begin: int
    end: int
    lines: int  # newlines of the stream before it


class SpilledStream:
    """A stream as it was at one moment.

    Args:
        folder: where its segments are.

    Attributes:
        total: bytes of the stream.
        missing: ranges of bytes (from, up to) that were given up.
    """

    def __init__(self, folder: str) -> None:
        self._segments = sorted(_found(folder), key=lambda segment: segment.begin)
        self.total = self._segments[-1].end if self._segments else 0
        ends = [0, *(segment.end for segment in self._segments)]
        begins = [segment.begin for segment in self._segments]
        self.missing = tuple((end, begin) for end, begin in zip(ends, begins, strict=False) if end < begin)

    @property
    def gone(self) -> bool:
        """Whether nothing of it is left."""
        return not self._segments

    def blocks(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield what is kept between two offsets as (offset, bytes), in pieces of up to 256 KiB."""
        for segment in self._segments:
            yield from _blocks(segment, max(begin, segment.begin), min(end, segment.end))

    def line_at(self, offset: int) -> int:
        """Return the number of the line that the byte at `offset` belongs to; the first is 1."""
        segment = self._last(lambda segment: segment.begin <= offset)
        passed = sum(block.count(b"\n") for _, block in _blocks(segment, segment.begin, min(offset, segment.end)))
        return segment.lines + passed + 1

    def start_of_line(self, number: int) -> int:
        """Return the offset of a line's first byte; if that is missing, of the first byte after it that is kept."""
        newlines = number - 1
        first = self._last(lambda segment: segment.lines < newlines)
        for segment in self._segments[self._segments.index(first) :]:
            passed = segment.lines
            if passed >= newlines:  # it began in what is missing before this segment, or is the very first
                return segment.begin
            for at, block in _blocks(segment, segment.begin, segment.end):
                count = block.count(b"\n")
                if passed + count >= newlines:
                    return at + _after(block, newlines - passed)
                passed += count
        return self.total

    def _last(self, fits: Callable[[_Segment], bool]) -> _Segment:
        return next((segment for segment in reversed(self._segments) if fits(segment)), self._segments[0])


def _found(folder: str) -> Iterator[_Segment]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        begin, _, lines = name.partition("-")
        try:
            size = os.stat(f"{folder}/{name}").st_size
        except FileNotFoundError:
            continue
        if size:
            yield _Segment(f"{folder}/{name}", int(begin), int(begin) + size, int(lines))


def _blocks(segment: _Segment, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    if at >= end:
        return
    try:
        file = open(segment.path, "rb", buffering=0)  # noqa: SIM115  (closed below; only opening it may find it gone)
    except FileNotFoundError:
        return
    with file:
        file.seek(at - segment.begin)
        while block := file.read(min(_BLOCK, end - at)):
            yield at, block
            at += len(block)


def _after(block: bytes, count: int) -> int:
    """Return the index after the newline with this number."""
    at = 0
    for _ in range(count):
        at = block.index(b"\n", at) + 1
    return at
