"""A chat reply in pieces: put together whatever the server leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from shellkit.agent.chat import _Streamed, _whole
from shellkit.agent.client import BrokenReply


def chunk(finish_reason: str | None = None, **delta: Any) -> ChatCompletionChunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return ChatCompletionChunk.construct(id="x", choices=[choice])


def piece(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = ""
) -> dict[str, Any]:
    given: dict[str, Any] = {"index": index, "function": {"name": name, "arguments": arguments}}
    return given if call_id is None else {**given, "id": call_id, "type": "function"}


CALLS = [("a", "run_shell", '{"command": "1"}'), ("b", "run_shell", '{"command": "2"}')]


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(tool_calls=[piece(n, call_id, name, arguments)]) for n, (call_id, name, arguments) in enumerate(CALLS)],
        [chunk(tool_calls=[piece(n, *call) for n, call in enumerate(CALLS)])],
        [chunk(tool_calls=[piece(None, *call)]) for call in CALLS],
        [chunk(tool_calls=[piece(0, *call)]) for call in CALLS],
        [chunk(tool_calls=[piece(10**9 * n, *call)]) for n, call in enumerate(CALLS)],
        [
            chunk(tool_calls=[piece(None, *first, arguments[at])])
            for *first, arguments in CALLS
            for at in range(len(arguments))
        ],
        [
            chunk(tool_calls=[piece(None, *((call_id, name) if at == 0 else (None, None)), arguments[at])])
            for call_id, name, arguments in CALLS
            for at in range(len(arguments))
        ],
        [chunk(tool_calls=[piece(0, call_id, name, json.loads(arguments))]) for call_id, name, arguments in CALLS],
        [
            *(chunk(tool_calls=[piece(n, call_id, name)]) for n, (call_id, name, _) in enumerate(CALLS)),
            *(chunk(tool_calls=[piece(n, arguments=CALLS[n][2][at])]) for at in range(16) for n in (1, 0)),
        ],
        [chunk(tool_calls=[piece(1, *CALLS[1])]), chunk(tool_calls=[piece(0, *CALLS[0])])],
    ],
    ids=[
        "whole",
        "together",
        "no index",
        "one index",
        "huge index",
        "all repeated",
        "no index, in pieces",
        "objects",
        "interleaved",
        "backwards",
    ],
)
def test_calls_in_pieces(chunks: list[ChatCompletionChunk]) -> None:
    """Issue 4.2, Chat Completions streamed: however calls are cut, each is whole and in its place."""
    streamed = _Streamed()
    for each in (chunk(role="assistant"), chunk(content="I "), chunk(content="look."), *chunks, chunk("tool_calls")):
        streamed.take(each)
    reply = streamed.reply()
    assert reply.text == "I look."
    functions = [
        (call.call_id, call.item["function"]["name"], call.item["function"]["arguments"]) for call in reply.calls
    ]
    assert functions == CALLS
    assert reply.items[0]["tool_calls"] == [call.item for call in reply.calls]


def test_what_may_be_missing() -> None:
    """Compatible servers: no delta, no choices, no usage, a cut reply."""
    streamed = _Streamed()
    streamed.take(ChatCompletionChunk.construct(id="x", choices=[]))
    streamed.take(ChatCompletionChunk.construct(id="x", choices=[{"index": 0, "delta": None, "finish_reason": None}]))
    assert streamed.take(chunk(refusal="No.")) == "No."
    assert streamed.take(chunk(content=[{"type": "text", "text": " Why?"}, {"type": "thinking"}])) == " Why?"
    streamed.take(chunk("length"))
    reply = streamed.reply()
    assert (reply.text, reply.calls, reply.cut_off) == ("No. Why?", (), "length")
    assert (reply.input_tokens, reply.output_tokens) == (0, 0)


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": None, "completion_tokens": "3"}, "lots"])
def test_odd_usage(usage: Any) -> None:
    """Compatible servers: tokens that are not counted are none."""
    streamed = _Streamed()
    streamed.take(ChatCompletionChunk.construct(id="x", choices=[], usage=usage))
    streamed.take(chunk("stop"))
    assert (streamed.reply().input_tokens, streamed.reply().output_tokens) == (0, 0)


@pytest.mark.parametrize("reason", ["tool_calls", "function_call"])
def test_a_call_that_is_not_there(reason: Any) -> None:
    """Issue 4, must hold: a reply that ends with a call which cannot be answered is not the end of the task."""
    streamed = _Streamed()
    streamed.take(chunk(reason))
    with pytest.raises(BrokenReply, match="holds none"):
        streamed.reply()


def test_a_call_without_its_kind() -> None:
    """Compatible servers: a call in one piece that leaves out its type."""
    call = {"id": "a", "function": {"name": "run_shell", "arguments": {"command": "ls"}}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    (found,) = _whole(ChatCompletion.construct(id="x", choices=[choice])).calls
    assert found.item["function"] == {"name": "run_shell", "arguments": '{"command": "ls"}'}
