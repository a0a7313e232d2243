"""Names of keys and what they type."""

from __future__ import annotations

import pytest

from shellkit.sessions.interactive.keys import encode_key


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("a", "a"), ("é", "é"), (":", ":"), ("Space", " "), ("Enter", "\r"), ("Tab", "\t"), ("Escape", "\x1b"),
        ("BSpace", "\x7f"), ("BTab", "\x1b[Z"), ("Up", "\x1b[A"), ("PageDown", "\x1b[6~"), ("F1", "\x1b[[A"),
        ("F12", "\x1b[24~"), ("C-c", "\x03"), ("C-C", "\x03"), ("C-d", "\x04"), ("C-Space", "\0"), ("C-@", "\0"),
        ("C-[", "\x1b"), ("C-_", "\x1f"), ("C-?", "\x7f"), ("M-x", "\x1bx"), ("M-C-a", "\x1b\x01"),
        ("M-Up", "\x1b\x1b[A"), ("M--", "\x1b-"), ("-", "-"), ("^", "^"),
    ],
)  # fmt: skip
def test_a_key_types_what_the_linux_terminal_sends(name: str, typed: str) -> None:
    """Issue 5, build 1: named keys, Ctrl and Alt; the bytes are terminfo's for TERM=linux."""
    assert encode_key(name) == typed


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("ENTER", "Enter"), ("enter", "Enter"), ("up", "Up"), ("Esc", "Escape"), ("Backspace", "BSpace"),
        ("PgUp", "PageUp"), ("Pgdn", "PageDown"), ("Del", "Delete"), ("F13", "F12"), ("Ctrl-C", "C-c"), ("^c", "C-c"),
        ("ctrl+D", "C-d"), ("Control-x", "C-x"),
    ],
)  # fmt: skip
def test_a_wrong_name_is_answered_with_near_ones(name: str, near: str) -> None:
    """Issue 5, bad input: bad key names; the error names what was meant, and all there are."""
    with pytest.raises(ValueError, match=rf"no key is called .* did you mean .*{near}\b.*Keys are Enter"):
        encode_key(name)


@pytest.mark.parametrize("name", ["", "C-", "M-", "C-Up", "hello", "C-é"])
def test_what_is_no_key_is_refused(name: str) -> None:
    """Issue 5, bad input: text is no key, and not every key has a form with Ctrl."""
    with pytest.raises(ValueError, match="no key is called"):
        encode_key(name)
