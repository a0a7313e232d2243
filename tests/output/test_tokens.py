"""Text cut to a number of tokens, by the estimate and by a real tokenizer."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shellkit.output.tokens import TokenCounter, estimate_tokens, tokenizer, truncate_tokens

# bpe-openai opens its tables by a function of importlib.resources that Python 3.11 and 3.12 call deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")

MARKER = re.compile(r"\n?\[\.\.\. (\d+) tokens omitted \.\.\.\]\n")


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é" * 4, 2), ("日本語", 3), ("\ud800", 1)]
)
def test_the_estimate_is_a_quarter_of_the_bytes(text: str, tokens: int) -> None:
    """Issue 5, item 5: bytes/4 by default, rounded up."""
    assert estimate_tokens(text) == tokens


@settings(deadline=None)
@given(st.text(max_size=400), st.integers(min_value=0, max_value=60))
def test_what_fits_is_untouched_and_the_rest_keeps_head_and_tail(text: str, limit: int) -> None:
    """Issue 5, item 5: never more tokens than asked for (the marker's own excepted), the kept parts are exact."""
    short = truncate_tokens(text, limit)
    if estimate_tokens(text) <= limit:
        assert short == text
        return
    found = list(MARKER.finditer(short))[-1]
    head, tail = short[: found.start()], short[found.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert estimate_tokens(short) <= limit or (head, tail) == ("", "")
    assert int(found[1]) == max(1, estimate_tokens(text) - estimate_tokens(head) - estimate_tokens(tail))


def words(text: str) -> int:
    """Count words, as a tokenizer of one's own."""
    return len(text.split())


def test_any_function_counts() -> None:
    """Issue 5, item 5: a caller's own counter is used, and the head and the tail are half and half."""
    text = " ".join(f"w{n}" for n in range(1000))
    short = truncate_tokens(text, 25, words)
    assert words(short) <= 25
    assert short.startswith("w0 w1 w2")
    assert short.endswith("w998 w999")


@pytest.fixture
def count() -> TokenCounter:
    """The tokenizer of a model."""
    return tokenizer("gpt-4o")


@pytest.mark.requires("bpe_openai")
def test_a_real_tokenizer(count: TokenCounter) -> None:
    """Issue 5, item 5: `shellkit[tokens]` counts as the model does, without the network."""
    assert count("hello world, this is a test") == 7
    assert count("<|endoftext|>") > 1  # what looks like a control token in an output is text
    text = "".join(f"line {n} of a log, 行\n" for n in range(20_000))
    assert count(text) > 100_000
    short = truncate_tokens(text, 500, count)
    assert 400 < count(short) <= 500
    assert count("a" * 3_000_000) > 0


@pytest.mark.requires("bpe_openai")
def test_an_unknown_tokenizer() -> None:
    """Issue 5, item 5: the error names what there is."""
    with pytest.raises(ValueError, match="o200k_base"):
        tokenizer("no-such-model")


@pytest.mark.parametrize(("limit", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError), (None, TypeError)])
def test_wrong_limits(limit: object, error: type[Exception]) -> None:
    """House rules: a wrong limit is an error."""
    with pytest.raises(error, match="max_tokens"):
        truncate_tokens("text", limit)  # type: ignore[arg-type]  # that is the point
