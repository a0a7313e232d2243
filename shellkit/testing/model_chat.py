"""A scripted model's reply in the form of the Chat Completions API, whole or as chunks. Pure.

`scripted_model` calls `completion`, `chunks` and `fault`; a script holds the Responses API's items, so that one
script serves both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .model_responses import pieces
from .model_steps import Item

__all__ = ["chunks", "completion", "fault"]


def fault(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return what the API would refuse about a conversation: calls and their answers that do not match; or ""."""
    waiting: set[str] = set()
    called: set[str] = set()
    for given in messages:
        if given.get("role") == "tool":
            if given.get("tool_call_id") not in called:
                return "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            waiting.discard(given["tool_call_id"])
        elif waiting:
            break
        else:
            called = {call["id"] for call in given.get("tool_calls") or ()}
            waiting = set(called)
    if waiting:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(sorted(waiting))}"
        )
    return ""


def completion(
    body: Mapping[str, Any], output: Sequence[Item], *, name: str, tokens: tuple[int, int]
) -> dict[str, Any]:
    """Return a whole completion.

    Args:
        body: the request's.
        output: the items, ids filled in.
        name: the completion's id.
        tokens: of input and of output.

    Raises:
        ValueError: an item has no form in this API.
    """
    calls, texts = [], []
    for item in output:
        if item["type"] == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            calls.append({"id": item.get("call_id"), "type": "function", "function": function})
        elif item["type"] == "message":
            texts += [part["text"] for part in item["content"]]
        elif item["type"] != "reasoning":
            raise ValueError(f"the Chat Completions API has no {item['type']}; use function_call")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
    return {**_head(body, name), "object": "chat.completion", "choices": [choice], "usage": usage}


def chunks(body: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the chunks in which a completion is streamed, with one for the usage if the request asks for it."""
    head = {**_head(body, whole["id"]), "object": "chat.completion.chunk"}
    choice = whole["choices"][0]
    for delta in _deltas(choice["message"]):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": whole["usage"]}


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "", "refusal": None}
    for piece in pieces(message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _head(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"id": name, "created": 1_700_000_000, "model": body.get("model")}
