"""Which part of a spilled output is wanted, and reading it: from an offset, by lines, from the end, by a pattern.

Called by executors, in a thread: a stream has up to hundreds of megabytes. What is returned is bounded.
"""

from __future__ import annotations

import attrs

from ...errors import UnknownOutput
from ...output.page import OutputPage
from ...output.search import LinePattern
from ...output.text import orphans, unfinished
from .search import search
from .store import SpillStore
from .stream import SpilledStream

__all__ = ["PageRequest", "read_page"]

#: Bytes to return unless the caller says otherwise: some 4,000 tokens.
_DEFAULT_LIMIT = 16 * 1024
_LEAST_LIMIT, _MOST_LIMIT = 64, 1 << 20


@attrs.frozen(kw_only=True)
class PageRequest:
    """A part of a stream, as `Executor.read_output` explains it."""

    offset: int = 0
    limit: int = _DEFAULT_LIMIT
    lines: tuple[int, int] | None = None
    pattern: LinePattern | None = None
    context: int = 0
    tail: int | None = None

    @classmethod
    def of(
        cls, *, offset: object, limit: object, lines: object, pattern: str | None, context: object, tail: object
    ) -> PageRequest:
        """Return the request that a caller's arguments make.

        Raises:
            TypeError, ValueError: one of them is wrong, or they do not go together.
        """
        ways = [each for each in (lines, pattern, tail) if each is not None]
        if len(ways) > 1 or (offset is not None and ways and pattern is None):
            raise ValueError("ask for one of offset, lines, pattern and tail; only offset and pattern go together")
        context = _number("context", context, 0)
        if context and pattern is None:
            raise ValueError("context shows the lines around those that match: it needs a pattern")
        return cls(
            offset=0 if offset is None else _number("offset", offset, 0),
            limit=_DEFAULT_LIMIT if limit is None else _number("limit", limit, _LEAST_LIMIT, _MOST_LIMIT),
            lines=None if lines is None else _range(lines),
            pattern=None if pattern is None else LinePattern(pattern),
            context=context,
            tail=None if tail is None else _number("tail", tail, 1),
        )


def _number(name: str, value: object, least: int, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, not {value}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be {most} or less, not {value}; go on with next_offset")
    return value


def _range(lines: object) -> tuple[int, int]:
    if not isinstance(lines, tuple | list) or len(lines) != 2:
        raise TypeError("lines must be (first, last), both counted from 1")
    first, last = (_number("a line", line, 1) for line in lines)
    if last < first:
        raise ValueError(f"lines must be (first, last), not {(first, last)}")
    return first, last


def read_page(store: SpillStore, ref: object, request: PageRequest) -> OutputPage:
    """Return the part that is asked for.

    Raises:
        TypeError: `ref` is no string.
        UnknownOutput: nothing is kept under `ref`, or not any more.
        ExecutorClosed: the executor is.
    """
    kept = store.find(ref)
    with SpilledStream(kept.folder) as stream:
        if stream.gone:
            why = "it had to make room for newer output, or its files were removed; run the command again"
            raise UnknownOutput(f"the output {kept.ref} is no longer kept: {why}")
        page = _page(stream, request)
        return attrs.evolve(
            page,
            ref=kept.ref,
            next_offset=page.next_offset if kept.growing or page.next_offset != stream.total else None,
            missing=stream.missing,
            ended=not kept.growing,
            notes=page.notes if kept.failure is None else (*page.notes, kept.failure),
        )


def _page(stream: SpilledStream, request: PageRequest) -> OutputPage:
    if request.pattern is not None:
        return search(stream, request.pattern, request.offset, request.limit, request.context)
    if request.tail is not None:
        return _read(stream, _start_of_tail(stream, request.tail, request.limit), stream.total)
    if request.lines is not None:
        begin, end = (stream.start_of_line(number) for number in (request.lines[0], request.lines[1] + 1))
        return _read(stream, begin, min(end, begin + request.limit))
    return _read(stream, request.offset, request.offset + request.limit)


def _read(stream: SpilledStream, begin: int, end: int) -> OutputPage:
    """Return what is kept between two offsets, up to the first gap; if it begins in one, what follows the gap."""
    length = end - begin
    begin = next((up for low, up in stream.missing if low <= begin < up), min(begin, stream.total))
    data = bytearray()
    for at, block in stream.blocks(begin, begin + length):
        if at != begin + len(data):
            if data:
                break
            begin = at
        data += block
    skipped = orphans(data) if begin else 0
    text = data[skipped:]
    left = unfinished(text) if begin + len(data) < stream.total else 0
    return OutputPage(
        ref="",
        text=text[: len(text) - left].decode("utf-8", "replace"),
        offset=begin + skipped,
        next_offset=begin + len(data) - left,
        first_line=stream.line_at(begin + skipped),
        total=stream.total,
    )


def _start_of_tail(stream: SpilledStream, count: int, limit: int) -> int:
    """Return where the last `count` lines begin, or as many of them as `limit` bytes hold."""
    begin = max(0, stream.total - limit, *(up for _, up in stream.missing))
    data = b"".join(block for _, block in stream.blocks(begin, stream.total))
    last = at = len(data) - data.endswith(b"\n")
    for _ in range(count):
        found = data.rfind(b"\n", 0, at)
        if found < 0:
            # Whole lines only, unless it is the beginning of the stream or a line that is longer than the limit.
            return begin if begin == 0 or at == last else begin + at + 1
        at = found
    return begin + at + 1
