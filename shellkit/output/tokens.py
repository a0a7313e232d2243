"""Text cut to a number of tokens, by an estimate or by a model's own tokenizer.

`ShellResult.for_model` and the tools call it, last of all: what a model pays for is the text as it is shown.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["TokenCounter", "estimate_tokens", "tokenizer", "truncate_tokens"]

#: Returns how many tokens a text has.
TokenCounter = Callable[[str], int]

#: Bytes of UTF-8 to a token, as Codex counts: right for English and code, too few tokens for most other scripts.
_BYTES_PER_TOKEN = 4
#: No vocabulary in use has text of more characters than this to a token on average, long runs of blanks excepted.
_MOST_CHARACTERS = 16
#: Characters to encode at a time: bpe-openai takes no more than a million.
_PIECE = 100_000


def estimate_tokens(text: str) -> int:
    """Return the bytes of the text in UTF-8, divided by 4 and rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def tokenizer(name: str) -> TokenCounter:
    """Return the counter of a model's own tokenizer (`pip install shellkit[tokens]`); it needs no network.

    Args:
        name: a model ("gpt-4o") or an encoding ("o200k_base", "cl100k_base", "voyage3_base") that bpe-openai knows.

    Raises:
        ImportError: bpe-openai is not installed.
        ValueError: it does not know the name.
    """
    try:
        import bpe_openai
    except ImportError:
        raise ImportError(
            "counting by tokenizer needs bpe-openai: pip install 'shellkit[tokens]', or pass any function of your own "
            "from text to int"
        ) from None
    try:
        encode = bpe_openai.encoding_for_model(name).encode_ordinary
    except KeyError as error:
        raise ValueError(f"there is no tokenizer {name!r}: {error.args[0]}") from None

    def count(text: str) -> int:
        return sum(len(encode(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE))

    return count


def truncate_tokens(text: str, max_tokens: int, count: TokenCounter = estimate_tokens) -> str:
    """Return the text, or its head and its tail, half and half, with a line between that names the tokens left out.

    Args:
        text: what to cut.
        max_tokens: the most that the returned text may have; only the line that says so may go over it.
        count: how to count.

    Raises:
        TypeError, ValueError: `max_tokens` is no integer, or negative.
    """
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool):
        raise TypeError(f"max_tokens must be an int, not {type(max_tokens).__name__}")
    if max_tokens < 0:
        raise ValueError(f"max_tokens must be 0 (only the marker) or more, not {max_tokens}")
    total = count(text)
    if total <= max_tokens and len(text) <= max_tokens * _MOST_CHARACTERS:
        return text
    # Tokenizers only count whole texts: find the most characters that fit by halving, some 20 counts.
    fits, too_many = 0, min(len(text), max_tokens * _MOST_CHARACTERS) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if count(_shortened(text, middle, total, count)) <= max_tokens:
            fits = middle
        else:
            too_many = middle
    return _shortened(text, fits, total, count)


def _shortened(text: str, characters: int, total: int, count: TokenCounter) -> str:
    head, tail = text[: characters // 2], text[len(text) - (characters - characters // 2) :]
    omitted = max(1, total - count(head) - count(tail))
    before = "\n" if head and not head.endswith("\n") else ""
    return f"{head}{before}[... {omitted} tokens omitted ...]\n{tail}"
