"""Parts of a spilled output, held against the same done to the whole text."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shellkit.output.page import OutputPage
from shellkit.sessions.spill import SpillFile, SpillStore, search
from shellkit.sessions.spill.page import PageRequest, read_page
from shellkit.sessions.spill.store import LEAST_LIMIT


class Kept:
    """One output, and a way to ask for its parts."""

    def __init__(self, store: SpillStore, data: bytes, *, ended: bool = True) -> None:
        self.store = store
        self.file: SpillFile = store.file()
        self.file.write(data)
        if ended:
            self.file.close()

    def __call__(self, **parts: Any) -> OutputPage:
        wanted = dict.fromkeys(("offset", "limit", "lines", "pattern", "tail")) | {"context": 0} | parts
        return read_page(self.store, self.file.ref, PageRequest.of(**wanted))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SpillStore]:
    """Where output is kept."""
    made = SpillStore(str(tmp_path / "spill"), LEAST_LIMIT, None)
    yield made
    made.close()


LOG = "".join(f"{n} {'ERROR' if n % 100 == 0 else 'ok'} step {n * 7}\n" for n in range(1, 10_001))


@pytest.fixture
def log(store: SpillStore) -> Kept:
    """A log of 10,000 lines."""
    return Kept(store, LOG.encode())


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(text=st.text("aé行😀\n", min_size=1, max_size=300), start=st.integers(0, 200), limit=st.integers(64, 100))
def test_pages_join(store: SpillStore, text: str, start: int, limit: int) -> None:
    """E5, by offset: pages are cut at characters, and each begins where the last ended."""
    kept, at, joined = Kept(store, text.encode()), start, ""
    whole = text.encode()[start:]
    while at is not None:
        page = kept(offset=at, limit=limit)
        assert len(page.text.encode()) <= limit
        assert page.first_line == text.encode()[: page.offset].count(b"\n") + 1
        joined += page.text
        at = page.next_offset
    assert joined == whole.decode("utf-8", "ignore")


def test_an_offset_past_the_end(log: Kept) -> None:
    """E5, by offset: past the end there is nothing, and the page says so."""
    page = log(offset=10**12)
    assert (page.text, page.offset, page.next_offset) == ("", len(LOG), None)
    assert "[nothing there]" in page.for_model()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(text=st.text("a\n", min_size=1, max_size=60), first=st.integers(1, 30), more=st.integers(0, 30))
def test_line_ranges(store: SpillStore, text: str, first: int, more: int) -> None:
    """E5, by lines: both ends belong to the range, and lines past the end are not there."""
    lines = text.splitlines(keepends=True)
    assert Kept(store, text.encode())(lines=(first, first + more)).text == "".join(lines[first - 1 : first + more])


def test_a_long_range_goes_on_by_offset(log: Kept) -> None:
    """E5, by lines: a range larger than the limit says where to go on."""
    page = log(lines=(1, 10_000), limit=1000)
    assert page.text == LOG[:1000]
    assert log(offset=page.next_offset, limit=64).text == LOG[1000:1064]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(text=st.text("a\n", min_size=1, max_size=60), count=st.integers(1, 70))
def test_the_end(store: SpillStore, text: str, count: int) -> None:
    """E5, from the end: the last lines, with or without a newline after the last."""
    assert Kept(store, text.encode())(tail=count).text == "".join(text.splitlines(keepends=True)[-count:])


def test_the_end_is_bounded(log: Kept, store: SpillStore) -> None:
    """E5, from the end: whole lines, as many as the limit holds; of a line that is longer, its end."""
    page = log(tail=10_000, limit=1000)
    assert 900 < len(page.text) <= 1000
    assert page.text == "".join(LOG.splitlines(keepends=True)[-page.text.count("\n") :])
    assert Kept(store, b"start\n" + b"x" * 5000 + b"end\n")(tail=1, limit=64).text == "x" * 60 + "end\n"


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("ERROR", {}),
        ("^77 ", {}),
        ("step 7$", {}),
        (r"^\d+ ERROR step (700|7000)$", {"context": 2}),
        (r"\A1 ", {}),
        ("(?i)error step 70+$", {"context": 1}),
        ("(a+)+$", {}),
        ("", {"limit": 64}),
        ("nowhere", {"context": 3}),
    ],
)
def test_a_search_finds_what_python_finds(log: Kept, pattern: str, options: dict[str, int]) -> None:
    """E5, by pattern: every line that matches, numbered, with its context, page after page."""
    shown: dict[int, str] = {}
    matched: set[int] = set()
    at: int | None = 0
    count = 0
    while at is not None:
        page = log(pattern=pattern, offset=at, **options)
        count += page.matches or 0
        for line in page.text.splitlines():
            if (found := re.match(r"(\d+)([:-])(.*)", line)) is not None:
                shown[int(found[1])] = found[3]
                matched |= {int(found[1])} if found[2] == ":" else set()
        at = page.next_offset
        if len(shown) > 100:
            break
    lines = LOG.splitlines()
    numbers = [n for n, line in enumerate(lines, 1) if re.search(pattern.replace(r"\A", "^"), line)]
    if at is None:
        assert sorted(matched) == numbers
        around = options.get("context", 0)
        assert set(shown) == {m for n in numbers for m in range(n - around, n + around + 1) if 0 < m <= len(lines)}
        assert count == len(numbers)
    else:
        assert sorted(matched) == numbers[: len(matched)]
    assert all(lines[number - 1] == text for number, text in shown.items())


def test_a_search_looks_like_grep(log: Kept) -> None:
    """E5, by pattern: `12:` before a match, `11-` before its context, `--` between groups."""
    page = log(pattern="^(5|9) ", context=1)
    assert (
        page.text
        == "4-4 ok step 28\n5:5 ok step 35\n6-6 ok step 42\n--\n8-8 ok step 56\n9:9 ok step 63\n10-10 ok step 70\n"
    )
    assert "2 matching lines" in page.for_model()


def test_a_search_sees_what_a_model_sees(store: SpillStore) -> None:
    """E5, E6, by pattern: colours and line ends of terminals do not stand in the way, and are not shown."""
    kept = Kept(store, b"one\r\n\x1b[31mERR\x1b[0mOR: two\r\n10%\r100% done\r\nlast")
    assert kept(pattern="^ERROR: two$").text == "2:ERROR: two\n"
    assert kept(pattern="^100% done$").text == "3:100% done\n"
    assert kept(pattern="t$").text == "4:last\n"


def test_long_lines_are_taken_in_parts(store: SpillStore) -> None:
    """E5, by pattern: one endless line costs no more memory, and a match shows the part that it is in."""
    data = b"a" * 300_000 + "行".encode() + b"NEEDLE" + b"b" * 100_000 + b"\nNEEDLE too\n"
    page = Kept(store, data)(pattern="NEEDLE")
    first, second = page.text.splitlines()
    assert first.startswith("1:")
    assert "行NEEDLE" in first
    assert len(first) <= search.LONGEST_LINE + 2
    assert second == "2:NEEDLE too"
    huge = Kept(store, b"x" * 200_000)(pattern="x", limit=64)
    assert (huge.text, huge.matches) == ("1:" + "x" * 62, 1)
    assert huge.next_offset is not None
    assert huge.next_offset > 0


def test_a_search_across_a_gap(store: SpillStore) -> None:
    """E5, by pattern: what was given up is named, and lines after it keep their numbers."""
    kept = Kept(store, b"".join(b"%07d\n" % n for n in range(300_000)))
    page = kept(pattern="^(0000007|0299999|0100000)$")
    assert page.text == "8:0000007\n300000:0299999\n"
    assert len(page.missing) > 1
    assert "were not kept" in page.for_model()


def test_a_search_is_bounded_in_time(log: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """E5, by pattern: a search that takes too long returns, and says where to go on."""
    monkeypatch.setattr(search, "SECONDS", -1.0)
    page = log(pattern="ERROR")
    assert (page.text, page.next_offset) == ("", 0)
    assert "offset=0" in page.notes[0]


def test_a_growing_output(store: SpillStore) -> None:
    """E5: a stream that is still written can be read, and read on."""
    kept = Kept(store, b"one\n", ended=False)
    page = kept()
    assert (page.text, page.next_offset, page.ended) == ("one\n", 4, False)
    kept.file.write(b"two\n")
    assert kept(offset=page.next_offset).text == "two\n"
    kept.file.close()
    assert kept(offset=4).next_offset is None


@pytest.mark.parametrize("part", [{"offset": 400_000}, {"tail": 5}, {"lines": (50_000, 50_010)}, {"pattern": "7$"}])
def test_reading_while_it_grows(store: SpillStore, part: dict[str, Any]) -> None:
    """E5: what is read stands where it says, while pieces come and go under the reader."""
    kept = Kept(store, b"".join(b"%07d\n" % n for n in range(60_000)), ended=False)

    def write() -> None:
        for begin in range(60_000, 1_000_000, 10_000):
            kept.file.write(b"".join(b"%07d\n" % n for n in range(begin, begin + 10_000)))
        kept.file.close()

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        page = kept(**part, limit=1000)
        lines = page.text.splitlines()
        if page.matches is not None:
            assert all(int(number) == int(text) + 1 for number, text in (line.split(":") for line in lines))
        elif page.text:
            assert page.offset % 8 == 0 or len(lines[0]) < 7
            assert [int(line) for line in lines[1:-1]] == list(range(page.first_line, page.first_line + len(lines) - 2))
    writer.join()


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"offset": -1}, ValueError, "offset"),
        ({"offset": 1.0}, TypeError, "offset"),
        ({"limit": 10}, ValueError, "limit"),
        ({"limit": 10**9}, ValueError, "next_offset"),
        ({"lines": (0, 3)}, ValueError, "line"),
        ({"lines": (5, 3)}, ValueError, "lines"),
        ({"lines": 5}, TypeError, "lines"),
        ({"tail": 0}, ValueError, "tail"),
        ({"context": 1}, ValueError, "pattern"),
        ({"offset": 1, "tail": 1}, ValueError, "one of"),
        ({"lines": (1, 2), "pattern": "x"}, ValueError, "one of"),
        ({"pattern": "("}, ValueError, "unclosed group"),
        ({"pattern": "(?=x)"}, ValueError, "look-around"),
        ({"pattern": r"(a)\1"}, ValueError, "backreferences"),
        ({"pattern": "a{1000}{1000}"}, ValueError, "size limit"),
        ({"pattern": b"x"}, TypeError, "pattern"),
    ],
)
def test_wrong_requests(log: Kept, wrong: dict[str, Any], error: type[Exception], says: str) -> None:
    """E5: a wrong request is an error that says what to do."""
    with pytest.raises(error, match=says):
        log(**wrong)
