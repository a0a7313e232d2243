"""What a call asks for: for those who watch, and to know it again. Pure; the loop and its gate use it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .base import Call, Item
from .events import CallRequested

__all__ = ["requested", "same"]


def requested(call: Call, wanted: Sequence[Mapping[str, Any] | str]) -> CallRequested:
    """Return the event of a call.

    Args:
        call: the call.
        wanted: the tool's arguments for each of its commands; none if it is malformed.
    """
    item = call.item
    if "action" in item:
        name, arguments = item["type"].removesuffix("_call"), json.dumps(item["action"])
    else:
        function = item.get("function", item)  # in Chat Completions it is wrapped
        name, arguments = function.get("name") or "", function.get("arguments") or ""
    return CallRequested(
        call_id=call.call_id,
        name=name,
        commands=tuple(command for each in wanted if (command := _command(each)) is not None),
        arguments=arguments,
    )


def _command(arguments: Mapping[str, Any] | str) -> str | None:
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:  # the gate tells the model
        return None
    command = given.get("command") if isinstance(given, Mapping) else None
    return command if isinstance(command, str) else None


def same(one: Item, other: Item) -> bool:
    """Return whether two items ask for the same."""
    return all(one.get(name) == other.get(name) for name in ("type", "name", "arguments", "action", "function"))
