"""`Expectation`: waiting for a pattern in what a program prints. Owned by one call, fed by `Program` under its lock.

The search runs where the output arrives, so that nothing is missed that is left out of a full buffer later on. It
is pexpect's; its `Expecter` is not used, since that reads by itself, blocks, and keeps everything before a match.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from ...output.buffer import HeadTailBuffer

__all__ = ["WINDOW", "Expectation", "Match", "Pattern", "compile_patterns"]

Pattern = str | re.Pattern[str]

#: Characters that a match can reach back from what has just arrived.
WINDOW = 16384


@attrs.frozen(kw_only=True)
class Match:
    """What was found.

    Attributes:
        index: which of the patterns matched; of several the one that begins first, then the first in the list.
        text: what matched.
        groups: the pattern's groups.
        before: what was unread and stands before it; bounded as `Output.text` is.
        omitted: bytes left out of `before`.
    """

    index: int
    text: str
    groups: tuple[str | None, ...]
    before: str
    omitted: int


class Expectation:
    """A search that goes on until something is found.

    Args:
        patterns: regular expressions.
    """

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        from pexpect.expect import searcher_re  # type: ignore[import-untyped]  # pexpect has no annotations

        self._searcher = searcher_re(patterns)
        self._window = ""
        self.match: Match | None = None

    def look(self, text: str, buffer: HeadTailBuffer) -> None:
        """Search `text`, with which `buffer`, the unread output, ends; what follows a match is left in it."""
        if self.match is not None:
            return
        window = self._window + text
        index = self._searcher.search(window, len(text))
        if index < 0:
            self._window = window[-WINDOW:]
            return
        found: re.Match[str] = self._searcher.match
        after = window[found.end() :]
        # A buffer too small for them holds neither of the two.
        before = buffer.text().removesuffix(after).removesuffix(found[0])
        self.match = Match(index=index, text=found[0], groups=found.groups(), before=before, omitted=buffer.omitted)
        buffer.clear()
        buffer.append(after.encode())


def compile_patterns(patterns: Pattern | Sequence[Pattern]) -> list[re.Pattern[str]]:
    """Return the patterns compiled; in a string `.` matches line ends, too, as in pexpect.

    Raises:
        TypeError: one is neither a string nor a compiled pattern of strings.
        ValueError: there is none, or one is no regular expression.
    """
    given = [patterns] if isinstance(patterns, str | re.Pattern) else list(patterns)
    if not given:
        raise ValueError("name at least one pattern to wait for")
    return [_compile(pattern) for pattern in given]


def _compile(pattern: Pattern) -> re.Pattern[str]:
    if isinstance(pattern, re.Pattern):
        if not isinstance(pattern.pattern, str):
            raise TypeError("output is text: compile the pattern from a str, not from bytes")
        return pattern
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern is a str or a compiled one, not {type(pattern).__name__}")
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}; escape what is meant literally") from error
