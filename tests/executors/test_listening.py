"""What hears a launched program: a line is found however it is cut into chunks, and only where it is (issue 5, 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shellkit.executors.listening import LineWatch, Spilled, has_line
from shellkit.output.search import LinePattern

Found = list[bool]


def watched(pattern: str) -> tuple[LineWatch, Found]:
    """Return a watch for a pattern, and the list that its hits go to."""
    watch, found = LineWatch(), Found()
    watch.add(LinePattern(pattern), lambda: found.append(True))
    return watch, found


CASES = [
    ("^ready$", b"ready\n", True),
    ("^ready$", b"starting\nready\nmore\n", True),
    ("^ready$", b"starting\r\nready\r\n", True),
    ("^ready$", b"\x1b[32mready\x1b[0m\n", True),
    ("^ready$", b"50 %\rready\n", True),
    (r"^>>> $", b"banner\r\n>>> ", True),
    ("^na\u00efve$", "na\u00efve\n".encode(), True),
    ("^ready$", b"not ready\n", False),
    ("a.*b", b"a\nb\n", False),
    ("^b", b"ab", False),
    ("x", b"", False),
]


@pytest.mark.parametrize(("pattern", "output", "is_there"), CASES)
def test_a_line_is_found_however_it_is_cut(pattern: str, output: bytes, is_there: bool) -> None:
    """A pattern matches one line as a terminal would show it, whole or in any two pieces or byte by byte."""
    assert has_line(LinePattern(pattern), output.decode()) is is_there
    cuts = [[output], *([output[:at], output[at:]] for at in range(len(output)))]
    for chunks in cuts:
        watch, found = watched(pattern)
        for chunk in chunks:
            watch.output(memoryview(chunk))
        assert found == [True] * is_there, chunks


def test_a_line_that_began_before_the_wait() -> None:
    """What has come of a line before somebody waits belongs to it."""
    watch, found = LineWatch(), Found()
    watch.output(memoryview(b"old\nrea"))
    watch.add(LinePattern("^ready$"), lambda: found.append(True))
    watch.output(memoryview(b"dy\n"))
    assert found == [True]


def test_each_waits_for_its_own_and_once() -> None:
    """Several calls wait at once; each is told once, and one that waits no more is not told."""
    watch, first, second, third = LineWatch(), Found(), Found(), Found()
    given_up = LinePattern("c")
    watch.add(LinePattern("a"), lambda: first.append(True))
    watch.add(LinePattern("b"), lambda: second.append(True))
    watch.add(given_up, lambda: third.append(True))
    watch.remove(given_up)
    watch.remove(given_up)
    for chunk in (b"a\n", b"a\n", b"c\n"):
        watch.output(memoryview(chunk))
    assert (first, second, third) == ([True], [], [])


def test_a_long_line_is_bounded() -> None:
    """E1: of an endless line only its end is kept."""
    watch, found = watched("^x+end$")
    for _ in range(100):
        watch.output(memoryview(b"x" * 65536))
    assert len(watch._line) == 4096
    watch.output(memoryview(b"end\n"))
    assert found == [True]


def test_what_is_spilled() -> None:
    """E5: all that a program prints goes to its file, chunk by chunk."""
    written: list[bytes] = []

    class File:
        write: Callable[[Any], None] = staticmethod(lambda chunk: written.append(bytes(chunk)))

    Spilled(File()).output(memoryview(b"chunk"))  # type: ignore[arg-type]
    assert written == [b"chunk"]
