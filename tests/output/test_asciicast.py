"""Lines of asciicast files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shellkit.output.asciicast import Event, Header, event_line, header_line, parse_event, parse_header

LIMITS = st.none() | st.floats(0, 100)


@given(st.text(max_size=20), st.integers(1, 500), st.integers(1, 500), LIMITS)
def test_headers_are_read_as_they_were_written(title: str, rows: int, columns: int, limit: float | None) -> None:
    """Issue 5, item 6: the header is a JSON object of one line that says version 2, width and height."""
    header = Header(rows=rows, columns=columns, timestamp=7, title=title, idle_limit=limit)
    line = header_line(header)
    assert parse_header(line) == header
    assert line.count(b"\n") == 1
    value = json.loads(line)
    assert (value["version"], value["width"], value["height"]) == (2, columns, rows)


@given(st.integers(0, 10**9), st.sampled_from("oirm"), st.text(max_size=50))
def test_events_are_read_as_they_were_written(time: int, code: str, data: str) -> None:
    """Issue 5, item 6: an event is a JSON list of one line, whatever was printed."""
    event = Event(time / 1e6, code, data)
    line = event_line(event)
    assert parse_event(line) == event
    assert line.isascii()
    assert line.count(b"\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"text\n",
        b"[]\n",
        b"{}\n",
        b'{"version": 1}\n',
        b'{"version": 2}\n',
        b'{"version": 2, "width": "x", "height": 1}\n',
    ],
)
def test_wrong_headers(line: bytes) -> None:
    """Issue 5, item 6: what is no such file is told apart from one."""
    with pytest.raises(ValueError, match="asciicast"):
        parse_header(line)


@pytest.mark.parametrize("line", [b"", b"[1, 2, 3]\n", b'["1", "o", "x"]\n', b'[NaN, "o", "x"]\n', b"[" * 100_000])
def test_wrong_events(line: bytes) -> None:
    """Issue 5, item 6: a line that is no event is an error, however it is broken."""
    with pytest.raises(ValueError, match="event"):
        parse_event(line)
