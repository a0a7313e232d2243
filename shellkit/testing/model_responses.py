"""A scripted model's reply in the form of the Responses API, whole or as server-sent events. Pure.

`scripted_model` calls `response`, `events` and `fault`; the forms are those that the openai package parses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .model_steps import Item

__all__ = ["events", "fault", "history", "pieces", "response"]

#: What answers each kind of call.
_OUTPUTS = {
    "function_call": "function_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}


def pieces(text: str) -> list[str]:
    """Return a text in the pieces in which it is streamed: words, with the blanks before them."""
    return re.findall(r"\s*\S+|\s+$", text)


def history(body: Mapping[str, Any], before: Sequence[Item]) -> list[Item]:
    """Return the conversation that a request goes on with.

    Args:
        body: the request's.
        before: the conversation up to and with its `previous_response_id`.
    """
    given = body.get("input", [])
    return [*before, *([{"role": "user", "content": given}] if isinstance(given, str) else given)]


def fault(items: Sequence[Item]) -> str:
    """Return what the API would refuse about a conversation: a call without its output, or the reverse; or ""."""
    kinds = [(item.get("type", "message"), item.get("call_id") or "") for item in items]
    for index, (kind, call_id) in enumerate(kinds):
        if kind in _OUTPUTS and not call_id:
            return f"Missing required parameter: 'input[{index}].call_id'."
        if kind in _OUTPUTS and (_OUTPUTS[kind], call_id) not in kinds[index:]:
            return f"No tool output found for {kind.replace('_', ' ')} {call_id}."
    answers = {output: call for call, output in _OUTPUTS.items()}
    for index, (kind, call_id) in enumerate(kinds):
        if kind in answers and (answers[kind], call_id) not in kinds[:index]:
            return f"No tool call found for {kind.replace('_', ' ')} with call_id {call_id}."
    return ""


def response(body: Mapping[str, Any], output: Sequence[Item], *, name: str, tokens: tuple[int, int]) -> dict[str, Any]:
    """Return a whole response.

    Args:
        body: the request's.
        output: the items, ids filled in.
        name: the response's id.
        tokens: of input and of output.
    """
    return {
        "id": name,
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": body.get("model"),
        "output": list(output),
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "usage": {
            "input_tokens": tokens[0],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": tokens[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(tokens),
        },
    }


def events(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events in which a response is streamed, numbered."""
    for number, event in enumerate(_events(whole)):
        yield {**event, "sequence_number": number}


def _events(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        parts = _PARTS.get(item["type"])
        empty = item if parts is None else {**item, "status": "in_progress", **_EMPTY[item["type"]]}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        for event in parts(item) if parts else ():
            yield {"output_index": index, **event}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


def _message(item: Item) -> Iterator[dict[str, Any]]:
    for index, part in enumerate(item["content"]):
        at = {"item_id": item["id"], "content_index": index}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}


def _function_call(item: Item) -> Iterator[dict[str, Any]]:
    kind, at = "response.function_call_arguments", {"item_id": item["id"]}
    for piece in pieces(item["arguments"]):
        yield {"type": f"{kind}.delta", **at, "delta": piece}
    yield {"type": f"{kind}.done", **at, "name": item["name"], "arguments": item["arguments"]}


def _shell_call(item: Item) -> Iterator[dict[str, Any]]:
    kind = "response.shell_call_command"
    for index, command in enumerate(item["action"]["commands"]):
        yield {"type": f"{kind}.added", "command_index": index, "command": ""}
        for piece in pieces(command):
            yield {"type": f"{kind}.delta", "command_index": index, "delta": piece}
        yield {"type": f"{kind}.done", "command_index": index, "command": command}


def _shell_call_output(item: Item) -> Iterator[dict[str, Any]]:
    kind = "response.shell_call_output_content"
    for index, output in enumerate(item["output"]):
        at = {"item_id": item["id"], "command_index": index}
        yield {"type": f"{kind}.delta", **at, "delta": {"stdout": output["stdout"], "stderr": output["stderr"]}}
        yield {"type": f"{kind}.done", **at, "output": [output]}


_PARTS = {
    "message": _message,
    "function_call": _function_call,
    "shell_call": _shell_call,
    "shell_call_output": _shell_call_output,
}
#: What an item lacks when it is announced.
_EMPTY: dict[str, Item] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "shell_call": {"action": {"commands": [], "timeout_ms": None, "max_output_length": None}},
    "shell_call_output": {"output": []},
}
