"""Searching a stream for patterns, without a program."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shellkit.output.buffer import HeadTailBuffer
from shellkit.sessions.interactive.expectation import WINDOW, Expectation, compile_patterns


def feed(expectation: Expectation, buffer: HeadTailBuffer, *chunks: str) -> None:
    for chunk in chunks:
        buffer.append(chunk.encode())
        expectation.look(chunk, buffer)


def expecting(*patterns: str | re.Pattern[str]) -> Expectation:
    return Expectation(compile_patterns(patterns))


def test_the_earliest_match_wins_and_what_follows_stays() -> None:
    """Issue 5, build 1, `expect`: of several patterns the one that begins first; everything up to it is read."""
    expectation, buffer = expecting("two", "one", "on"), HeadTailBuffer(100)
    feed(expectation, buffer, "zero one two three")
    match = expectation.match
    assert match is not None
    assert (match.index, match.text, match.before, match.omitted) == (1, "one", "zero ", 0)
    assert buffer.text() == " two three"


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.integers(0, 130), max_size=6))
def test_a_match_is_found_however_the_output_is_cut(before: str, after: str, cuts: list[int]) -> None:
    """Issue 5, build 1, `expect`: chunks mean nothing; nothing is lost and nothing is read twice."""
    text = before.replace("<", "") + "<prompt>" + after
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    expectation, buffer = expecting("<prompt>"), HeadTailBuffer(10_000)
    feed(expectation, buffer, *(text[start:end] for start, end in itertools.pairwise(at)))
    match = expectation.match
    assert match is not None
    assert match.before + match.text + buffer.text() == text


def test_a_long_stream_is_searched_in_bounded_memory() -> None:
    """E1: a search holds its window and no more, and a match in the end of a long stream is found."""
    expectation, buffer = expecting("end of it"), HeadTailBuffer(1000)
    for _ in range(100):
        feed(expectation, buffer, "x" * WINDOW)
        assert len(expectation._window) == WINDOW
    feed(expectation, buffer, "end o", "f it, more")
    match = expectation.match
    assert match is not None
    assert match.omitted == 100 * WINDOW + len("end of it, more") - 1000
    assert match.before.endswith("x")
    assert buffer.text() == ", more"


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_buffer_too_small_for_the_match_does_no_harm(limit: int) -> None:
    """E3: with next to no output kept, a match is still found and what follows it is what is unread."""
    expectation, buffer = expecting("prompt> "), HeadTailBuffer(limit)
    feed(expectation, buffer, "some text\nprompt> and more")
    assert expectation.match is not None
    assert expectation.match.text == "prompt> "
    assert buffer.total == len("and more")


def test_groups_and_line_ends() -> None:
    """Issue 5, build 1, `expect`: groups are handed out, and in a string `.` matches line ends."""
    expectation, buffer = expecting(r"port (\d+)(x)?.*up"), HeadTailBuffer(100)
    feed(expectation, buffer, "listening on port 8080\r\nserver is up")
    assert expectation.match is not None
    assert expectation.match.groups == ("8080", None)


def test_a_compiled_pattern_is_taken_as_it_is() -> None:
    """Issue 5, build 1, `expect`: flags are the caller's."""
    expectation, buffer = expecting(re.compile("^READY$", re.IGNORECASE | re.MULTILINE)), HeadTailBuffer(100)
    feed(expectation, buffer, "not ready\n", "ready\n")
    assert expectation.match is not None
    assert expectation.match.before == "not ready\n"


@pytest.mark.parametrize(
    ("patterns", "error", "message"),
    [
        ("(", ValueError, "no regular expression"),
        ([], ValueError, "at least one pattern"),
        ([3], TypeError, "a pattern is a str"),
        (re.compile(b"x"), TypeError, "not from bytes"),
    ],
)
def test_what_is_no_pattern_is_refused(patterns: object, error: type[Exception], message: str) -> None:
    """Issue 5, bad input: a wrong pattern is an error before anything is waited for."""
    with pytest.raises(error, match=message):
        compile_patterns(patterns)  # type: ignore[arg-type]
