"""What a person would see, drawn from bytes, without a program."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shellkit.sessions.interactive.display import KEPT_BYTES, Display


def show(*pieces: bytes | tuple[int, int], rows: int = 4, columns: int = 20) -> Display:
    display = Display(rows, columns)
    for piece in pieces:
        if isinstance(piece, tuple):
            display.resized(*piece)
        else:
            display.output(memoryview(piece))
    return display


@pytest.mark.parametrize(
    ("printed", "text", "cursor"),
    [
        (b"hello\r\nworld", "hello\nworld", (1, 5)),
        (b"100%\r  7%", "  7%", (0, 4)),
        (b"\x1b[2;3Hx\x1b[H", "\n  x", (0, 0)),
        (b"a\x1b[31mred\x1b[0m", "ared", (0, 4)),
        (b"one\x1b[2J\x1b[Htwo", "two", (0, 3)),
        (b"1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5", (3, 1)),
        ("世界🙂|".encode(), "世界🙂|", (0, 7)),
        ("e\u0301x".encode(), "éx", (0, 2)),
        ("世\u0301x".encode(), "世\u0301x", (0, 3)),
        ("👩\u200d👧 ❤\ufe0f|".encode(), "👩\u200d👧 ❤\ufe0f|", (0, 7)),
        ("ที่ हिन्दी|".encode(), "ที่ हिन्दी|", (0, 6)),
        ("a\u200b\u2060\x01b".encode(), "ab", (0, 2)),
        ("\u0301\u200dx".encode(), "x", (0, 1)),
        (b"\xff\xfeok", "\ufffd\ufffdok", (0, 4)),
        (b"x" * 20, "x" * 20, (0, 19)),
        (b"", "", (0, 0)),
    ],
)
def test_the_screen_shows_what_a_person_would_see(printed: bytes, text: str, cursor: tuple[int, int]) -> None:
    """Issue 5, build 1, `screen`: movements, erasures, scrolling, wide and combining characters."""
    whole = show(printed).view()
    single = show(*(printed[i : i + 1] for i in range(len(printed)))).view()
    assert (whole.text, whole.cursor) == (single.text, single.cursor) == (text, cursor)
    assert (whole.rows, whole.columns, len(whole.lines)) == (4, 20, 4)


def test_looking_changes_nothing() -> None:
    """Issue 5, build 1, `screen`: a sequence may be cut by a look, and a second look shows the same."""
    display = show(b"abc\x1b[1;")
    assert display.view() == display.view()
    display.output(memoryview(b"1HX\x1b]0;a title\x07"))
    view = display.view()
    assert (view.text, view.title) == ("Xbc", "a title")


def test_sizes_come_in_their_order() -> None:
    """Issue 5, build 1, `resize`: what was printed for one size is drawn at that size."""
    view = show(b"\x1b[4;1Hlast", (3, 20), (2, 10), b"\x1b[2;1Hbottom").view()
    assert (view.rows, view.columns, view.lines[-1]) == (2, 10, "bottom")


def test_a_flood_is_drawn_from_its_end() -> None:
    """E1: between two looks no more than a bound is kept, and the newest of it is what is seen."""
    display = Display(4, 20)
    line = "\x1b[32m十 line\x1b[0m\r\n".encode()
    for _ in range(3 * KEPT_BYTES // len(line)):
        display.output(memoryview(line))
        assert display._kept <= KEPT_BYTES + 16 * 1024
    display.output(memoryview(b"the end"))
    assert display.view().text == "十 line\n十 line\n十 line\nthe end"


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        (b"ab\x1b[6n", b"\x1b[1;3R"),
        (b"\x1b[999;999H\x1b[6n", b"\x1b[4;20R"),
        (b"\x1b[5n\x1b[c", b"\x1b[0n\x1b[?6c"),
        (b"text \x1b[31m", b""),
    ],
)
def test_the_terminal_answers_questions(printed: bytes, answer: bytes) -> None:
    """Issue 5, must hold: programs that ask the terminal, where the cursor is and so how large it is, get answers."""
    assert Display(4, 20).output(memoryview(printed)) == answer


def test_who_asks_without_end_gets_no_answer() -> None:
    """G1: answering takes the thread that drains all programs, so a flood of questions is only drawn."""
    display = Display(4, 20)
    flood = memoryview(b"\x1b[6n" * 4000)
    assert display.output(flood)
    assert any(not display.output(flood) for _ in range(1000))
    assert display.view().cursor == (0, 0)


@given(st.lists(st.one_of(st.binary(max_size=40), st.tuples(st.integers(1, 30), st.integers(1, 30))), max_size=12))
@example([b"\x1b[?6n\x1b[>c\x1b[?1;2cok"])
@example([b"\x1b[" + b"9" * 5000 + b"Hok"])
@example([b"\x1b#8\x1b[?3h\x1b[?3lok"])
def test_no_output_breaks_the_screen(pieces: list[bytes | tuple[int, int]]) -> None:
    """Issue 5, build 1, `screen`: whatever is printed, a look returns, and what comes later is drawn."""
    display = show(*pieces)
    display.view()
    display.resized(4, 20)
    display.output(memoryview(b"\x18\x1b\\\x1bc\x1b[2J\x1b[Hlater"))
    assert display.view().text == "later"


@given(st.text(alphabet="\x1b[]?;0123456789ABCDHJKLMPXcdfghlmnr#()%7 8=>x世\u0301", max_size=200))
def test_no_sequence_breaks_the_screen(text: str) -> None:
    """Issue 5, build 1, `screen`: the same for what looks like control sequences."""
    show(text.encode()).view()
