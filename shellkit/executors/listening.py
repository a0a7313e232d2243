"""What hears all that a launched program prints: `LineWatch` for calls that wait for a line, `Spilled` for a file.

Called in the thread that drains, so nothing here waits; a model's pattern is only ever matched in linear time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..output.ansi import clean
from ..output.search import LinePattern
from ..sessions.interactive import Sink
from ..sessions.spill import SpillFile

__all__ = ["LineWatch", "Spilled", "has_line"]

_LONGEST_LINE = 4096


class LineWatch(Sink):
    """Tells waiting calls when a program prints a line that they wait for; one for each program.

    It looks at every line as it comes, so that none is missed that is left out of a full buffer later on, and at the
    unfinished last one, which is where prompts stand. Of a longer line the last 4 KiB count.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._line = b""
        self._waiting: dict[LinePattern, Callable[[], object]] = {}

    def output(self, data: memoryview) -> None:
        with self._mutex:
            if self._waiting:
                self._look(bytes(data))
            # Of what nobody waits for only the end is copied: a chunk may have 64 KiB, and there may be 64 programs.
            end = bytes(data[-_LONGEST_LINE:])
            *lines, last = end.rsplit(b"\n", 1)
            self._line = last if lines else (self._line + end)[-_LONGEST_LINE:]

    def _look(self, data: bytes) -> None:
        text = (self._line + data).decode("utf-8", "replace")
        for pattern, found in list(self._waiting.items()):
            if has_line(pattern, text):
                del self._waiting[pattern]
                found()

    def add(self, pattern: LinePattern, found: Callable[[], object]) -> None:
        """Call `found`, in any thread, with the next line that matches."""
        with self._mutex:
            self._waiting[pattern] = found

    def remove(self, pattern: LinePattern) -> None:
        """Wait no more."""
        with self._mutex:
            self._waiting.pop(pattern, None)


def has_line(pattern: LinePattern, output: str) -> bool:
    """Return whether a line of `output` matches, as a terminal would show it."""
    text = clean(output.replace("\r\n", "\n"))  # replaced first: without other control it is clean then
    return pattern.may_match(text) and any(map(pattern.matches, text.split("\n")))


class Spilled(Sink):
    """Writes all that a program prints to a file.

    Args:
        file: where to.
    """

    def __init__(self, file: SpillFile) -> None:
        self._file = file

    def output(self, data: memoryview) -> None:
        self._file.write(data)
