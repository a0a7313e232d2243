"""Whether words stand behind a command's name, in their order, with options between them. Asked by rules that ask or
deny, and by what looks for the commands that a command starts. Takes linear time, whatever the words.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from .base import Word

__all__ = ["Match", "find_phrase"]


class Match(enum.IntEnum):
    """How sure it is; the greater, the surer."""

    NO = 0
    MAYBE = 1
    YES = 2


def find_phrase(words: Sequence[Word], phrase: Iterable[Sequence[str]]) -> Match:
    """Look for the words of a phrase in their order, with options (and a value of each) before and between them.

    Args:
        words: a command's, its name first.
        phrase: for each word the alternatives.

    Returns:
        MAYBE where a word that is only known when the command runs may be one of them.
    """
    best, positions = Match.YES, {1}
    for alternatives in phrase:
        for position in range(min(positions, default=len(words)), len(words)):
            if position in positions and words[position].text.startswith("-"):
                positions |= {position + 1, position + 2}
        here = [position for position in positions if position < len(words)]
        after = {position + 1 for position in here if words[position].known and words[position].text in alternatives}
        if not after:
            after = {position + 1 for position in here if not words[position].known}
            best = Match.MAYBE if after else Match.NO
        positions = after
        if best is Match.NO:
            break
    return best
