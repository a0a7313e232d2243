"""A conversation by the Chat Completions API, which has function calls alone. The loop uses it.

The server keeps nothing: every request holds the whole history.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from .base import Call, Item, Model, Part, Reply
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
        self._calls: list[Item] = []
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
        text = choice.delta.content or choice.delta.refusal or ""
        self._text.append(text)
        return text

    def reply(self) -> Reply:
        """Return the whole."""
        return _reply("".join(self._text), self._calls, self.finish_reason, self._usage)

    def _take_call(self, piece: Any) -> None:
        # Some servers leave out the index, and send each call in one piece.
        at = len(self._calls) if piece.index is None else piece.index
        while len(self._calls) <= at:
            self._calls.append(_call(None, "", ""))
        call = self._calls[at]
        call["id"] = call["id"] or piece.id or ""
        if piece.function is not None:
            call["function"]["name"] += piece.function.name or ""
            call["function"]["arguments"] += piece.function.arguments or ""


def _whole(completion: Any) -> Reply:
    if not completion.choices:
        raise BrokenReply("the reply holds nothing; try again")
    choice = completion.choices[0]
    said = choice.message
    # A call of another kind is of no tool that is declared.
    calls = [
        _call(call.id, call.function.name, call.function.arguments)
        for call in said.tool_calls or ()
        if call.type == "function"
    ]
    return _reply(said.content or said.refusal or "", calls, choice.finish_reason, completion.usage)


def _call(call_id: str | None, name: str | None, arguments: str | None) -> Item:
    return {"id": call_id or "", "type": "function", "function": {"name": name or "", "arguments": arguments or ""}}


def _reply(text: str, calls: list[Item], finish_reason: str, usage: Any) -> Reply:
    message: Item = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    return Reply(
        items=(message,),
        text=text,
        calls=tuple(_calls(message)),
        input_tokens=usage.prompt_tokens if usage else 0,
        output_tokens=usage.completion_tokens if usage else 0,
        cut_off=finish_reason if finish_reason in ("length", "content_filter") else "",
    )


def _calls(message: Item) -> list[Call]:
    return [Call(call_id=call["id"], item=call) for call in message.get("tool_calls", ())]
