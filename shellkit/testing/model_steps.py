"""What a scripted model answers, as values: steps, and the items that a step holds. Pure.

Tests and the demo write scripts with it; `scripted_model` serves them. The items are the Responses API's own JSON
objects, with the field names that the openai package parses; a script is free to change or break them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

__all__ = [
    "Broken",
    "Failure",
    "Hang",
    "Item",
    "Script",
    "Step",
    "function_call",
    "local_shell_call",
    "message",
    "reasoning",
    "shell_call",
    "shell_call_output",
]

#: One output item of the Responses API. A `call_id` or `id` that is None is filled in when the item is served.
Item: TypeAlias = dict[str, Any]


@attrs.frozen
class Failure:
    """An answer that is an error.

    Attributes:
        status: the HTTP status.
        message: what the error says.
        code: the error's code, as in "rate_limit_exceeded".
        headers: for the answer, such as {"retry-after-ms": "1"}.
    """

    status: int
    message: str = "scripted failure"
    code: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Broken:
    """A connection that drops in the middle of an answer.

    Attributes:
        items: what the answer would have held.
        after: events of a stream, or halves of a body, that are sent before; 0 drops it without a header.
    """

    items: Sequence[Item] = ()
    after: int = 0


@attrs.frozen
class Hang:
    """An answer that stops coming, until the server is closed.

    Attributes:
        items: what the answer would have held.
        after: as in `Broken`.
    """

    items: Sequence[Item] = ()
    after: int = 0


#: What answers one request: the output items of a reply, or a way to fail.
Step: TypeAlias = Sequence[Item] | Failure | Broken | Hang
#: The steps in order, or a function from a request's body to its step, for several conversations with one server.
Script: TypeAlias = Sequence[Step] | Callable[[dict[str, Any]], Step]


def message(text: str) -> Item:
    """Return the item with which a model says something."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": None, "role": "assistant", "status": "completed", "content": [part]}


def reasoning(encrypted_content: str | None = None) -> Item:
    """Return the item that stands for a model's thoughts; a stateless conversation must send it back."""
    return {"type": "reasoning", "id": None, "summary": [], "encrypted_content": encrypted_content}


def function_call(name: str, arguments: Mapping[str, Any] | str, call_id: str | None = None) -> Item:
    """Return the item that calls a function; text is sent as it stands, malformed or not."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "type": "function_call",
        "id": None,
        "call_id": call_id,
        "name": name,
        "arguments": text,
        "status": "completed",
    }


def shell_call(
    *commands: str,
    call_id: str | None = None,
    timeout_ms: int | None = None,
    max_output_length: int | None = None,
    container_id: str | None = None,
) -> Item:
    """Return the item that calls the `shell` tool; with a container it is a call that OpenAI runs itself."""
    local = {"type": "local"}
    return {
        "type": "shell_call",
        "id": None,
        "call_id": call_id,
        "status": "completed",
        "environment": local if container_id is None else {"type": "container_reference", "container_id": container_id},
        "action": {"commands": list(commands), "timeout_ms": timeout_ms, "max_output_length": max_output_length},
    }


def shell_call_output(call_id: str, stdout: str = "", stderr: str = "", exit_code: int = 0) -> Item:
    """Return the item that tells what a call in a container printed; it stands behind the call, in the same reply."""
    output = {"stdout": stdout, "stderr": stderr, "outcome": {"type": "exit", "exit_code": exit_code}}
    return {
        "type": "shell_call_output",
        "id": None,
        "call_id": call_id,
        "status": "completed",
        "max_output_length": None,
        "output": [output],
    }


def local_shell_call(
    argv: Sequence[str],
    *,
    call_id: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_ms: int | None = None,
    user: str | None = None,
    working_directory: str | None = None,
) -> Item:
    """Return the item that calls the legacy `local_shell` tool."""
    action = {
        "type": "exec",
        "command": list(argv),
        "env": dict(env or {}),
        "timeout_ms": timeout_ms,
        "user": user,
        "working_directory": working_directory,
    }
    return {"type": "local_shell_call", "id": None, "call_id": call_id, "status": "completed", "action": action}
