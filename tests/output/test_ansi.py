"""What a terminal would show, and what must survive."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shellkit.output.ansi import clean, draws_screen
from shellkit.output.text import StreamDecoder

MARKER = "[... 12345 bytes omitted ...]"
LEFT_OVER = re.compile(r"[\x07\b\r\x0e\x0f\x1b\x80-\x84\x86-\x9f]")

SEQUENCES = {
    "colour": ("\x1b[1;31mred\x1b[0m", "red"),
    "colour with colons": ("\x1b[38:2::255:0:0mred\x1b[m", "red"),
    "private mode": ("\x1b[?25lx\x1b[?25h", "x"),
    "bracketed paste": ("\x1b[?2004h$ \x1b[?2004l", "$ "),
    "intermediate byte": ("\x1b[2 qx\x1b[!p", "x"),
    "cursor movement": ("\x1b[2J\x1b[H\x1b[3;4Hx\x1b[1A", "x"),
    "OSC ended by BEL": ("\x1b]0;title\x07x", "x"),
    "OSC ended by ST": ("\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\", "link"),
    "OSC ended by 8-bit ST": ("\x1b]0;title\x9cx", "x"),
    "OSC cancelled": ("\x1b]0;title\x18x\x1b]0;t\x1ay", "xy"),
    "DCS": ("\x1bP1$r0m\x1b\\x", "x"),
    "SOS, PM, APC": ("\x1bXa\x1b\\1\x1b^b\x1b\\2\x1b_c\x1b\\3", "123"),
    "tmux passthrough": ("\x1bPtmux;\x1b\x1b]0;t\x07\x1b\\x", "x"),
    "screen title": ("\x1bkbash\x1b\\$ ", "$ "),
    "charset": ("\x1b(B\x1b)0x\x1b%G", "x"),
    "shift in and out": ("\x0ea\x0fb", "ab"),
    "two characters": ("\x1b7a\x1b8b\x1b=c\x1b>d\x1bMe\x1bcf", "abcdef"),
    "three characters": ("\x1b#8a\x1b Fb", "ab"),
    "8-bit CSI": ("\x9b31mred\x9b0m", "red"),
    "8-bit OSC": ("\x9d0;title\x07x\x9d0;title\x9cy\x9d0;title\x1b\\z", "xyz"),
    "8-bit DCS, SOS, PM, APC": ("\x90a\x9c1\x98b\x9c2\x9ec\x9c3\x9fd\x9c4", "1234"),
    "other 8-bit controls": ("a\x84b\x8dc\x8ed", "abcd"),
    "bell": ("ding\x07 dong\x07\x07\n", "ding dong\n"),
    "sequence in a sequence": ("\x1b\x1b[31mx\x1b[3\x1b[0my", "xy"),
    "sequence of a sequence": ("\x1b\x1b[31m[32mx", "[32mx"),
    "cut CSI at the end": ("x\x1b[38;5", "x"),
    "cut OSC at the end": ("x\x1b]8;;http://e", "x"),
    "cut DCS at the end": ("x\x1bPabc\x1b", "x"),
    "cut escape at the end": ("x\x1b", "x"),
    "cut charset at the end": ("x\x1b(", "x"),
    "cut 8-bit CSI at the end": ("x\x9b3", "x"),
    "everything": (
        "\x1b[31mred\x1b[0m \x1b[?25lx\x1b[?25h \x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\ \x1b]0;t\x07y\x1b(B\n",
        "red x link y\n",
    ),
}

LINES = {
    "crlf": ("a\r\nb\r\n", "a\nb\n"),
    "crcrlf": ("a\r\r\nb\r\r\n", "a\nb\n"),
    "crlf behind a colour": ("a\r\x1b[0m\nb", "a\nb"),
    "progress": (" 10%\r 50%\r100%\n", "100%\n"),
    "progress on two lines": ("1\r2\n3\r4\n", "2\n4\n"),
    "later text is shorter": ("abcdef\rXY\n", "XYcdef\n"),
    "later text is longer": ("ab\rXYZ\n", "XYZ\n"),
    "return at the end": ("50%\r", "50%"),
    "return at the end of a line": ("50%\r\r\nx", "50%\nx"),
    "only returns": ("\r\r\r", ""),
    "colours in a progress bar": ("\x1b[32m 10%\x1b[0m\r\x1b[32m100%\x1b[0m\n", "100%\n"),
    "backspace": ("a\bb", "b"),
    "backspace only moves": ("ab\b", "ab"),
    "rubout": ("ab\b \bc", "ac"),
    "two backspaces": ("abc\b\bX", "aXc"),
    "backspace at the start": ("\b\bx\n\by", "x\ny"),
    "spinner": ("-\b\\\b|\b/\bdone\n", "done\n"),
    "overstrike bold": ("N\bNA\bAM\bME\bE", "NAME"),
    "overstrike underline": ("_\bN_\bA", "NA"),
    "erase to the end": ("working ...\r\x1b[Kdone\n", "done\n"),
    "erase to the end, 0": ("working ...\r\x1b[0Kdone\n", "done\n"),
    "erase after the text": ("working ...\rdone\x1b[K\n", "done\n"),
    "erase nothing": ("\x1b[35mfile\x1b[m\x1b[K:\x1b[31mhit\x1b[m\x1b[K\n", "file:hit\n"),
    "erase the line": ("working ...\x1b[2K\rdone\n", "done\n"),
    "erase the line, then go on": ("working ...\x1b[2Kdone\n", "done\n"),
    "erase to the start is ignored": ("ab\x1b[1Kc\n", "abc\n"),
    "erase below": ("working ...\r\x1b[Jdone\n", "done\n"),
    "8-bit erase": ("working ...\r\x9bKdone\n", "done\n"),
    "column": ("working ...\x1b[2K\x1b[1Gdone\n", "done\n"),
    "column without a number": ("ab\x1b[Gc\n", "cb\n"),
    "column behind the end": ("ab\x1b[60Gc\n", "abc\n"),
    "column 0": ("ab\x1b[0Gc\n", "cb\n"),
    "left": ("10%\x1b[3D20%\x1b[D!\n", "20!\n"),
    "left of the start": ("10%\x1b[1000D20%\n", "20%\n"),
    "an absurd number": ("ab\x1b[" + "9" * 5000 + "Gc\n", "abc\n"),
    "erase keeps other lines": ("one\ntwo\r\x1b[Kthree\nfour\n", "one\nthree\nfour\n"),
}

KEPT = [
    "",
    "plain\n",
    "tab\tand\vform\ffeed\n",
    "[31m no escape [0m",
    r"\033[31m literal \x1b[0m",
    "a\0b\0\n",
    "ä € 😀 \u200b\n",
    "line\x85separator\u2028",
    "\x7f",
    "\udcff lone surrogate",
    MARKER,
]


@pytest.mark.parametrize(("text", "shown"), [*SEQUENCES.values(), *LINES.values()], ids=[*SEQUENCES, *LINES])
def test_shows_what_a_terminal_shows(text: str, shown: str) -> None:
    """E6: sequences are stripped, progress bars and backspaces resolved, whatever stands on the lines around."""
    assert clean(text) == shown
    assert clean(f"before\n{text}") == f"before\n{shown}"
    assert clean(f"{text}\nafter\n") == f"{shown}\nafter\n"
    assert clean(shown) == shown


@pytest.mark.parametrize("text", KEPT)
def test_keeps_text_that_only_looks_like_control(text: str) -> None:
    """E6: text without control characters comes back as the same object, NUL included."""
    assert clean(text) is text


@pytest.mark.parametrize("text", KEPT)
def test_keeps_it_beside_control(text: str) -> None:
    """E6: cleaning one part of the output changes nothing of another part."""
    assert clean(f"\x1b[31m{text}\x1b[0m\nx\ry") == f"{text}\ny"


@pytest.mark.parametrize(("text", "shown"), [*SEQUENCES.values(), *LINES.values()], ids=[*SEQUENCES, *LINES])
def test_decoded_chunks_are_cleaned_alike(text: str, shown: str) -> None:
    """E6: however the bytes arrived, the cleaned text is the same."""
    decoder = StreamDecoder()
    arrived = "".join(decoder.feed(bytes([byte])) for byte in text.encode())
    assert clean(arrived + decoder.finish()) == shown


@pytest.mark.parametrize("text", [text for text, _ in (*SEQUENCES.values(), *LINES.values()) if len(text) < 200])
def test_the_marker_line_survives_any_cut(text: str) -> None:
    """E2: the marker line of a truncated output is a line of its own, also where it cuts a sequence in half."""
    for cut in range(len(text) + 1):
        lines = clean(f"{text[:cut]}\n{MARKER}\n{text[cut:]}\nend\n").split("\n")
        assert MARKER in lines
        assert lines[-2:] == ["end", ""]
        assert not LEFT_OVER.search(clean(text[:cut]) + clean(text[cut:]))


def test_unterminated_strings_end_with_their_line() -> None:
    """E6: a string sequence without its end takes its line at most; an 8-bit one, only its first character."""
    assert clean("a\x1b]8;;http://e\nb") == "a\nb"
    assert clean("a\x1bPq#0\nb\x1b\\c") == "a\nbc"
    assert clean("a\x1bkb") == "ab"
    assert clean("â\x80\x9dquoted in Latin-1") == "âquoted in Latin-1"


@given(st.text(alphabet="ab \n\r\b\x07\x1b\x9b\x9d\x90\x9c[](\\;?019mKGDJHPkX€\0"))
def test_leaves_no_control(text: str) -> None:
    """E6: nothing that a terminal would act on is left, no line is lost, and cleaning again changes nothing."""
    cleaned = clean(text)
    assert not LEFT_OVER.search(cleaned)
    assert clean(cleaned) is cleaned
    assert cleaned.count("\n") == text.count("\n")
    assert cleaned.count("\0") <= text.count("\0")


MEGABYTE = 1_000_000
HOSTILE = {
    "returns": ("\r", ""),
    "backspaces": ("\b", ""),
    "text and backspaces": ("x\b", ""),
    "returns and text": ("\rx", ""),
    "CSI": ("\x1b[", ""),
    "CSI with digits": ("\x1b[0", ""),
    "escapes": ("\x1b", ""),
    "8-bit CSI": ("\x9b", ""),
    "OSC": ("\x1b]", ""),
    "OSC on many lines": ("\x1b]\n", ""),
    "screen titles": ("\x1bk", ""),
    "8-bit DCS": ("\x90a", ""),
    "one long CSI": ("0", "\x1b["),
    "one long OSC": ("a", "\x1b]"),
    "one long 8-bit OSC": ("a", "\x9d"),
    "one long title": ("a", "\x1bk"),
    "one long charset": (" ", "\x1b"),
    "erasing a long line": ("\x1b[2Ky", "x" * MEGABYTE),
    "erasing the start of a long line": ("\x1b[1K", "x" * MEGABYTE),
    "erasing the end of a long line": ("\x1b[9999Gy\x1b[K", "x" * MEGABYTE),
    "moving on a long line": ("\x1b[9999Dy", "x" * MEGABYTE),
}


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "start"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_output_takes_linear_time(unit: str, start: str) -> None:
    """E6: a megabyte made to be slow is cleaned in a moment (slow: quadratic work on it would take hours)."""
    cleaned = clean(start + unit * (MEGABYTE // len(unit)))
    assert not LEFT_OVER.search(cleaned)


@pytest.mark.parametrize(
    ("text", "draws"),
    [
        ("", False),
        ("a\nb\n", False),
        ("\x1b[H\x1b[2Jafter clear\n", False),
        ("\x1b[1;1Hone\x1b[2;1Htwo", True),
        ("\x1b[24;1H", True),
        ("\x1b[5dline", True),
        ("\x9b3;4fx", True),
        ("unpacking\nsetting up\n\x1b7\x1b[24;0f50 %\x1b8", False),
        ("\x1b[1m\x1b[0;32mcolour\x1b[K", False),
    ],
)
def test_what_draws_a_screen(text: str, draws: bool) -> None:
    """Issue 5, 1: text that goes to lines of a screen is told from text that prints lines, progress bars included."""
    assert draws_screen(text) is draws
