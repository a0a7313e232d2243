"""Words behind a command's name, with options between them (H6)."""

from __future__ import annotations

import pytest

from shellkit.policy.base import Word
from shellkit.policy.phrase import Match, find_phrase

PHRASE = [("tool",), ("run", "exec")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("uv tool run rm", Match.YES),
        ("uv -q tool --index x exec rm", Match.YES),
        ("uv -a tool tool run", Match.YES),
        ("uv run tool", Match.NO),
        ("uv tool", Match.NO),
        ("uv", Match.NO),
        ("uv tool install run", Match.NO),
        ("uv tool $what rm", Match.MAYBE),
    ],
)
def test_a_phrase(text: str, found: Match) -> None:
    """H6: in their order, behind options that may have a value; what is only known when it runs may be one."""
    words = [Word(word, known=False) if word.startswith("$") else Word.of(word) for word in text.split()]
    assert find_phrase(words, PHRASE) is found


def test_options_that_could_be_read_in_many_ways() -> None:
    """H6: each of 100,000 values could be the first word, and the time stays linear: minutes otherwise."""
    words = [Word.of(word) for word in ("uv " + "-a tool " * 100_000 + "run rm").split()]
    assert find_phrase(words, PHRASE) is Match.YES
