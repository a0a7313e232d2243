"""Results as text for a model."""

from __future__ import annotations

import pytest

from shellkit import ShellResult
from shellkit.output.tokens import estimate_tokens

LONG = "".join(f"line {n}\n" for n in range(5000))


def result(**fields: object) -> ShellResult:
    """Return a result with some fields of its own."""
    return ShellResult(**{"command": "x", "exit_code": 3, "workdir": "/", "notes": ("take note",), **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("room", [100, 500, 3000])
@pytest.mark.parametrize(("out", "err"), [(LONG, ""), ("", LONG), (LONG, LONG), (LONG, "short\n"), ("short\n", LONG)])
def test_text_for_a_model_is_cut_to_tokens(out: str, err: str, room: int) -> None:
    """Issue 5, item 5: head and tail of both streams, how it ended and the notes; no more tokens than asked for."""
    text = result(stdout=out, stderr=err).for_model(max_tokens=room)
    assert estimate_tokens(text) <= room + 20  # the lines that say what was left out, and where stderr begins
    assert "[exit code 3" in text
    assert text.endswith("[note: take note]")
    assert "tokens omitted" in text
    for stream in (out, err):
        assert stream.split("\n")[0] in text
    assert out != "short\n" or "short" in text
    if out == LONG == err:
        assert text.count("tokens omitted") == 2
        assert text.count("line 0\n") == 2
        assert text.count("line 4999") == 2


def test_what_fits_is_untouched() -> None:
    """Issue 5, item 5: with room for everything nothing changes."""
    whole = result(stdout="out\n", stderr="err\n")
    assert whole.for_model(max_tokens=1000) == whole.for_model()


def test_a_counter_of_ones_own() -> None:
    """Issue 5, item 5: any function counts."""
    text = result(stdout=LONG).for_model(max_tokens=100, count_tokens=lambda text: len(text.split()))
    assert 50 < len(text.split()) <= 110


def test_references_are_told() -> None:
    """E5: a model is told that there is more, and how to ask for it."""
    text = result(stdout="x", stdout_ref="0123456789abcdef").for_model()
    assert "read_output, ref 0123456789abcdef" in text
