"""What a call asks for: for those who watch, and to know it again. Pure; the loop and its gate use it."""

from __future__ import annotations

from collections.abc import Sequence

from ..tool.base import Wanted
from .base import Call, Item
from .events import CallRequested

__all__ = ["requested", "same"]


def requested(call: Call, asked: Sequence[Wanted]) -> CallRequested:
    """Return the event of a call.

    Args:
        call: the call.
        asked: what it asks for, as a person may see it; nothing if it is malformed.
    """
    item = call.item
    function = item.get("function", item)  # in Chat Completions it is wrapped
    return CallRequested(
        call_id=call.call_id,
        name=("" if "action" in item else function.get("name")) or item["type"].removesuffix("_call"),
        commands=tuple(each.command for each in asked if each.command),
        reader=next((each.reader for each in asked), ""),
    )


def same(one: Item, other: Item) -> bool:
    """Return whether two items ask for the same."""
    return all(one.get(name) == other.get(name) for name in ("type", "name", "arguments", "action", "function"))
