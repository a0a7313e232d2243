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
            yield _reply(await self._client.call(create, **parameters))
            return
        from openai.lib.streaming.chat import ChatCompletionStreamState

        state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
        finished = False
        chunks = self._client.stream(create, **parameters, stream_options={"include_usage": True})
        try:
            async for chunk in chunks:
                for event in state.handle_chunk(chunk):
                    if event.type in ("content.delta", "refusal.delta") and event.delta:
                        yield TextDelta(text=event.delta)
                finished = finished or any(choice.finish_reason for choice in chunk.choices)
        finally:
            await chunks.aclose()
        if not finished:
            raise BrokenReply("the reply's stream ended before the reply was whole; try again")
        yield _reply(state.current_completion_snapshot)

    def open_calls(self) -> list[Call]:
        """Return the calls without an output; only the last reply can have some."""
        answered: list[str] = []
        for message in reversed(self.history):
            if message["role"] == "tool":
                answered.append(message["tool_call_id"])
            elif message["role"] == "assistant":
                return [call for call in _calls(message) if call.call_id not in answered]
        return []


def _reply(completion: Any) -> Reply:
    if not completion.choices:
        raise BrokenReply("the reply holds nothing; try again")
    choice = completion.choices[0]
    said = choice.message
    text = said.content or said.refusal or ""
    message: Item = {"role": "assistant", "content": text or None}
    # A model may name any tool; calls that are no function calls cannot be made of what is declared.
    calls = [call for call in said.tool_calls or () if call.type == "function"]
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id or "",
                "type": "function",
                "function": {"name": call.function.name or "", "arguments": call.function.arguments or ""},
            }
            for call in calls
        ]
    usage = completion.usage
    return Reply(
        items=(message,),
        text=text,
        calls=tuple(_calls(message)),
        input_tokens=usage.prompt_tokens if usage else 0,
        output_tokens=usage.completion_tokens if usage else 0,
        cut_off=choice.finish_reason if choice.finish_reason in ("length", "content_filter") else "",
    )


def _calls(message: Item) -> list[Call]:
    return [Call(call_id=call["id"], item=call) for call in message.get("tool_calls", ())]
