"""A conversation by the Chat Completions API, which has function calls alone. The loop uses it.

The server keeps nothing: every request holds the whole history.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from .base import Call, Item, Model, Part, Reply, tokens
from .client import BrokenReply
from .events import TextDelta

__all__ = ["ChatModel"]


class ChatModel(Model):
    """See `Model`."""

    async def turn(self) -> AsyncGenerator[Part, None]:
        """Ask for the next reply."""
        create = self._client.client.chat.completions.create
        parameters = {
            "model": self.name,
            "messages": [{"role": "system", "content": self.instructions}, *self.history],
            "tools": list(self.tools),
        }
        if not self._stream:
            yield _whole(await self._client.call(create, **parameters))
            return
        streamed = _Streamed()
        chunks = self._client.stream(create, **parameters, stream_options={"include_usage": True})
        try:
            async for chunk in chunks:
                if text := streamed.take(chunk):
                    yield TextDelta(text=text)
        finally:
            await chunks.aclose()
        if not streamed.finish_reason:
            raise BrokenReply("the reply's stream ended before the reply was whole; try again")
        yield streamed.reply()

    def open_calls(self) -> list[Call]:
        """Return the calls without an output; only the last reply can have some."""
        answered: list[str] = []
        for message in reversed(self.history):
            if message["role"] == "tool":
                answered.append(message["tool_call_id"])
            elif message["role"] == "assistant":
                return [call for call in _calls(message) if call.call_id not in answered]
        return []


class _Streamed:
    """A reply that comes in pieces.

    The package's `ChatCompletionStreamState` does the same, but copies the whole message for each piece: 0.4 ms a
    piece of a short reply, and more the longer it is.
    """

    def __init__(self) -> None:
        self.finish_reason = ""
        self._text: list[str] = []
        self._calls: list[tuple[int, Item]] = []  # each with its index
        self._usage: Any = None

    def take(self, chunk: Any) -> str:
        """Add a piece, and return what the model says in it."""
        self._usage = chunk.usage or self._usage
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        self.finish_reason = choice.finish_reason or self.finish_reason
        if choice.delta is None:
            return ""
        for piece in choice.delta.tool_calls or ():
            self._take_call(piece)
        text = _said(choice.delta)
        self._text.append(text)
        return text

    def reply(self) -> Reply:
        """Return the whole."""
        calls = [call for _, call in sorted(self._calls, key=lambda known: known[0])]
        return _reply("".join(self._text), calls, self.finish_reason, self._usage)

    def _take_call(self, piece: Any) -> None:
        # Some servers leave out the index, or give all calls the same; some repeat id and name in each piece.
        index = piece.index if isinstance(piece.index, int) else self._calls[-1][0] if self._calls else 0
        call = next((call for at, call in reversed(self._calls) if at == index), None)
        if call is None or (piece.id and call["id"] and piece.id != call["id"]):
            call = _call(piece.id, "", "")
            self._calls.append((index, call))
        call["id"] = call["id"] or piece.id or ""
        if piece.function is not None:
            called = call["function"]
            called["name"] += "" if piece.function.name == called["name"] else piece.function.name or ""
            called["arguments"] += _as_text(piece.function.arguments)


def _whole(completion: Any) -> Reply:
    if not completion.choices:
        raise BrokenReply("the reply holds nothing; try again")
    choice = completion.choices[0]
    said = choice.message
    # A call of another kind is of no tool that is declared. Some servers leave the kind out.
    calls = [
        _call(call.id, call.function.name, call.function.arguments)
        for call in said.tool_calls or ()
        if getattr(call, "function", None) is not None
    ]
    return _reply(_said(said), calls, choice.finish_reason, completion.usage)


def _said(message: Any) -> str:
    content = message.content or message.refusal or ""
    if isinstance(content, str):
        return content
    # Some servers send parts, among them what the model thinks, which is no text of its message.
    return "".join(part.get("text") or "" for part in content if isinstance(part.get("text"), str))


def _as_text(arguments: Any) -> str:
    """Return arguments as the API has them; some servers send them as an object."""
    return arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)


def _call(call_id: str | None, name: str | None, arguments: Any) -> Item:
    called = {"name": name or "", "arguments": _as_text(arguments)}
    return {"id": call_id or "", "type": "function", "function": called}


def _reply(text: str, calls: list[Item], finish_reason: str, usage: Any) -> Reply:
    if finish_reason in ("tool_calls", "function_call") and not calls:
        raise BrokenReply("the reply ends with a call, and holds none that can be answered; try another model or --api")
    message: Item = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    return Reply(
        items=(message,),
        text=text,
        calls=tuple(_calls(message)),
        input_tokens=tokens(usage, "prompt_tokens"),
        output_tokens=tokens(usage, "completion_tokens"),
        cut_off=finish_reason if finish_reason in ("length", "content_filter") else "",
    )


def _calls(message: Item) -> list[Call]:
    return [Call(call_id=call["id"], item=call) for call in message.get("tool_calls", ())]
