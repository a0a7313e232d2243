"""Find the lines of a spilled output that match a pattern, and show them as `grep -n -C` does.

Bounded in what it returns, in memory, and in time: a search that takes long says where to go on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

import attrs

from ...output.ansi import clean
from ...output.page import OutputPage
from ...output.search import LinePattern
from ...output.text import unfinished
from .stream import SpilledStream

__all__ = ["search"]

#: Seconds after which a search returns what it has found.
SECONDS = 5.0
#: Bytes of a line that are looked at and shown at a time.
LONGEST_LINE = 4096


def search(stream: SpilledStream, pattern: LinePattern, begin: int, limit: int, context: int) -> OutputPage:
    """Return the lines that match, from an offset on.

    Args:
        stream: where to look.
        pattern: what to find; it is held against lines as `ShellResult.for_model` would show them.
        begin: the offset.
        limit: bytes to return.
        context: lines to show before and after each.
    """
    begin = min(begin, stream.total)
    matches = _Matches(pattern, limit, context)
    next_offset: int | None = None
    notes: tuple[str, ...] = ()
    give_up = time.monotonic() + SECONDS
    for at, number, block in _by_lines(stream, begin):
        if time.monotonic() > give_up:
            next_offset = at
            notes = (f"The search was stopped after {SECONDS:g} s; go on with the same pattern and offset={at}.",)
        else:
            next_offset = matches.look(block, at, number)
        if next_offset is not None:
            break
    return OutputPage(
        ref="",
        text="".join(matches.shown),
        offset=begin,
        next_offset=stream.total if next_offset is None else next_offset,
        first_line=stream.line_at(begin),
        total=stream.total,
        matches=matches.count,
        notes=notes,
    )


@attrs.frozen
class _Line:
    at: int
    number: int
    text: str


class _Matches:
    """What was found so far.

    Attributes:
        shown: the lines, each with its number.
        count: how many of them match.
    """

    def __init__(self, pattern: LinePattern, limit: int, context: int) -> None:
        self.shown: list[str] = []
        self.count = 0
        self._pattern = pattern
        self._room = limit
        self._context = context
        self._before: deque[_Line] = deque(maxlen=context)
        self._after = 0  # lines that still follow the last match
        self._last = 0  # the number of the last line shown

    def look(self, block: bytes, at: int, number: int) -> int | None:
        """Look through whole lines; return where to go on if there is no more room for what was found."""
        text = block.decode("utf-8", "replace")
        if "\r" in text:
            text = text.replace("\r\n", "\n")
        hopeless = not self._pattern.may_match(clean(text))
        if hopeless and not self._after:
            if not self._context:
                return None
            skipped = _all_but_last(block, self._context)
            at, number, block = at + skipped, number + block.count(b"\n", 0, skipped), block[skipped:]
        for line in _lines(block, at, number):
            if not hopeless and self._pattern.matches(line.text):
                group = [*self._before, line]
                if not self._show(group, line):
                    return group[0].at
                self._before.clear()
                self._after = self._context
                self.count += 1
            elif self._after:
                if not self._show([line], None):
                    return line.at
                self._after -= 1
            else:
                self._before.append(line)
        return None

    def _show(self, group: list[_Line], match: _Line | None) -> bool:
        entries = [f"{line.number}{':' if line is match else '-'}{line.text}\n" for line in group]
        if self._context and self._last and group[0].number > self._last + 1:
            entries.insert(0, "--\n")
        size = sum(len(entry.encode()) for entry in entries)
        if size > self._room:
            if self.shown:
                return False
            # Never nothing, or nobody would get past this match: it alone, and as much of it as fits.
            entries = [entries[-1].encode()[: self._room].decode("utf-8", "ignore")]
        self.shown += entries
        self._room -= size
        self._last = group[-1].number
        return True


def _by_lines(stream: SpilledStream, begin: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (offset, number of the first line, whole lines); of a line that is too long, a part at a time."""
    at, number, rest = begin, stream.line_at(begin), b""
    for block_at, block in stream.blocks(begin, stream.total):
        if block_at != at + len(rest):  # what lies between is missing
            if rest:
                yield at, number, rest
            at, number, rest = block_at, stream.line_at(block_at), b""
        data = rest + block
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) >= LONGEST_LINE:
            cut = len(data) - unfinished(data)
        if cut:
            yield at, number, data[:cut]
            at, number, rest = at + cut, number + data.count(b"\n", 0, cut), data[cut:]
        else:
            rest = data
    if rest:
        yield at, number, rest


def _lines(block: bytes, at: int, number: int) -> Iterator[_Line]:
    begin = 0
    while begin < len(block):
        newline = block.find(b"\n", begin)
        end = len(block) if newline < 0 else newline
        if end - begin > LONGEST_LINE:
            end = begin + LONGEST_LINE
            end -= unfinished(block[begin:end])
        text = clean(block[begin:end].decode("utf-8", "replace").removesuffix("\r"))
        yield _Line(at + begin, number, text)
        ended = end == newline
        begin = end + ended
        number += ended


def _all_but_last(block: bytes, count: int) -> int:
    """Return the index at which the last `count` lines of a block begin."""
    at = len(block) - block.endswith(b"\n")
    for _ in range(count):
        at = block.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1
