"""A chat reply in pieces: put together whatever the server leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from shellkit.agent.chat import _Streamed


def chunk(finish_reason: str | None = None, **delta: Any) -> ChatCompletionChunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return ChatCompletionChunk.construct(id="x", choices=[choice])


def piece(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: str = ""
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
        [
            *(chunk(tool_calls=[piece(n, call_id, name)]) for n, (call_id, name, _) in enumerate(CALLS)),
            *(chunk(tool_calls=[piece(n, arguments=CALLS[n][2][at])]) for at in range(16) for n in (1, 0)),
        ],
        [chunk(tool_calls=[piece(1, *CALLS[1])]), chunk(tool_calls=[piece(0, *CALLS[0])])],
    ],
    ids=["whole", "together", "no index", "interleaved", "backwards"],
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
    streamed.take(chunk("length"))
    reply = streamed.reply()
    assert (reply.text, reply.calls, reply.cut_off) == ("No.", (), "length")
    assert (reply.input_tokens, reply.output_tokens) == (0, 0)
