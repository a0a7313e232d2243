"""Patterns that a model may choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shellkit.output.search import LinePattern

PATTERNS = [
    "a",
    "^a",
    "a$",
    "^$",
    "b.a",
    r"\Aa",
    r"a\z",
    "(?i)A",
    r"\ba\b",
    "[^b]",
    r"\s",
    "(?-m)^a",
    "(?s)a.b",
    "a|^b",
    "",
]


@given(st.sampled_from(PATTERNS), st.lists(st.text("ab \tA行", max_size=5), max_size=6))
def test_a_block_without_a_match_holds_no_line_with_one(pattern: str, lines: list[str]) -> None:
    """E5: passing over a block loses no match, whatever the pattern says of the ends of lines."""
    found = LinePattern(pattern)
    block = "".join(line + "\n" for line in lines)
    if not found.may_match(block):
        assert [line for line in lines if found.matches(line)] == []


def test_blocks_are_passed_over() -> None:
    """E5: a block is not taken apart for nothing."""
    assert not LinePattern("^needle$").may_match("hay\nneedles\n" * 1000)
    assert LinePattern("^needle$").may_match("hay\nneedle\n")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}$"])
def test_no_pattern_explodes(pattern: str) -> None:
    """E5: what takes Python's `re` for ever takes time in proportion to the line."""
    assert not LinePattern(pattern).matches("a" * 10_000 + "!")
