"""Lines of an asciicast version 2 file: a header, then one event a line. `sessions/recording.py` writes them,
`shellkit play` reads them.

Format: https://docs.asciinema.org/manual/asciicast/v2/
"""

from __future__ import annotations

import json
import math
from typing import Any

import attrs

__all__ = ["INPUT", "OUTPUT", "RESIZED", "Event", "Header", "event_line", "header_line", "parse_event", "parse_header"]

OUTPUT, INPUT, RESIZED = "o", "i", "r"


@attrs.frozen(kw_only=True)
class Header:
    """What stands before the events.

    Attributes:
        columns: characters in a line of the terminal.
        rows: its lines.
        timestamp: when the recording began, in seconds since the epoch; None if unknown.
        title: what it shows.
        idle_limit: the longest pause in seconds that a player should make; None for any.
    """

    columns: int
    rows: int
    timestamp: int | None = None
    title: str | None = None
    idle_limit: float | None = None


@attrs.frozen
class Event:
    """Something that happened.

    Attributes:
        time: seconds since the beginning.
        code: OUTPUT, INPUT, RESIZED, or one that is not for us.
        data: what was printed or typed; the size as COLUMNSxROWS.
    """

    time: float
    code: str
    data: str


def header_line(header: Header) -> bytes:
    """Return the first line of a file."""
    named = {"timestamp": header.timestamp, "title": header.title, "idle_time_limit": header.idle_limit}
    return _line(
        {"version": 2, "width": header.columns, "height": header.rows}
        | {name: value for name, value in named.items() if value is not None}
    )


def event_line(event: Event) -> bytes:
    """Return a later line."""
    return _line([round(event.time, 6), event.code, event.data])


def _line(value: Any) -> bytes:
    # ASCII, so that a file cut anywhere is still UTF-8; a lone surrogate is written as JSON can: escaped.
    return json.dumps(value).encode() + b"\n"


def parse_header(line: bytes) -> Header:
    """Return what the first line says.

    Raises:
        ValueError: it is none of version 2.
    """
    value = _parsed(line)
    if not isinstance(value, dict) or value.get("version") != 2:
        raise ValueError("not an asciicast file of version 2 (`asciinema convert` makes one of another version)")
    try:
        limit = value.get("idle_time_limit")
        return Header(
            columns=int(value["width"]),
            rows=int(value["height"]),
            timestamp=value.get("timestamp"),
            title=value.get("title"),
            idle_limit=None if limit is None else float(limit),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the header of the asciicast file is wrong: {error!r}") from None


def parse_event(line: bytes) -> Event:
    """Return what a later line says.

    Raises:
        ValueError: it is no event.
    """
    match _parsed(line):
        case [int() | float() as time, str(code), str(data)] if math.isfinite(time):
            return Event(time, code, data)
    raise ValueError("not an event of an asciicast file: [seconds, code, data]")


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
