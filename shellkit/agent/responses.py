"""A conversation by the Responses API: `shell`, `local_shell` and function calls. The loop uses it.

The server keeps the conversation (`previous_response_id`) and is sent what is new; or, stateless, is sent all of it
each time and keeps nothing. A history that was loaded, or that the server has lost, is sent whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from ..adapters.openai_responses import call_id_of, needs_answer
from ..result import ShellResult
from ..tool import ToolOutput
from .base import Call, Item, Model, Part, Reply, tokens
from .client import BrokenReply, Client
from .events import CallFinished, CallRequested, OutputChunk, TextDelta

__all__ = ["ResponsesModel"]

#: What the server tells about an item, and does not take back.
_NOT_INPUT = ("created_by",)
#: How the types of what answers a call end.
_ANSWERS = ("_call_output", "mcp_approval_response")
#: What has a `call_id`, and yet waits for nothing of ours: the server runs it.
_SERVED = ("shell_call", "program")


class ResponsesModel(Model):
    """See `Model`.

    Args:
        client: what sends the requests.
        name: the model.
        stream: whether to have replies streamed.
        stateless: have the server keep nothing, and send the history each time.
        hosted: whether the server runs the commands itself, so that no call is ours to answer.
    """

    def __init__(self, client: Client, name: str, *, stream: bool, stateless: bool, hosted: bool) -> None:
        super().__init__(client, name, stream=stream)
        self._stateless = stateless
        self._hosted = hosted
        self._previous: str | None = None
        self._kept = 0  # items of the history that the server has under `_previous`

    async def turn(self) -> AsyncGenerator[Part, None]:
        """Ask for the next reply."""
        while True:
            try:
                async with contextlib.aclosing(self._ask()) as parts:
                    async for part in parts:
                        yield part
                return
            except Exception as error:
                if not self._forgotten(error):
                    raise

    def _forgotten(self, error: Exception) -> bool:
        """Return whether the server has lost the conversation; from then on it is sent whole.

        It keeps none for an organisation without data retention, and others for a month. It says so before it answers.
        """
        if self._previous is None or getattr(error, "code", None) != "previous_response_not_found":
            return False
        self._stateless, self._previous, self._kept = True, None, 0
        return True

    async def _ask(self) -> AsyncGenerator[Part, None]:
        create = self._client.client.responses.create
        if not self._stream:
            yield self._reply(await self._client.call(create, **self._parameters()))
            return
        reply = None
        shell_calls: dict[str, str] = {}
        events = self._client.stream(create, **self._parameters())
        try:
            # To the end of the stream, though the reply comes before: only then can the connection be used again.
            async for event in events:
                if event.type in ("response.output_text.delta", "response.refusal.delta"):
                    if event.delta:
                        yield TextDelta(text=event.delta)
                elif event.type == "response.output_item.added" and event.item.type == "shell_call_output":
                    shell_calls[event.item.id] = event.item.call_id
                elif event.type == "response.shell_call_output_content.delta":
                    call_id = shell_calls.get(event.item_id, event.item_id)
                    for stream in ("stdout", "stderr"):
                        if text := getattr(event.delta, stream, None):
                            yield OutputChunk(call_id=call_id, stream=stream, text=text)
                elif event.type in ("response.completed", "response.incomplete", "response.failed"):
                    reply = self._reply(event.response)
                elif event.type == "error":
                    raise _failed(event.message)
        except Exception:
            if reply is None:  # what breaks behind the reply does not matter
                raise
        finally:
            await events.aclose()
        if reply is None:
            raise BrokenReply("the reply's stream ended before the reply was whole; try again")
        yield reply

    def accept(self, reply: Reply) -> None:
        """Add a reply."""
        super().accept(reply)
        if not self._stateless:
            self._previous, self._kept = reply.id, len(self.history)

    def open_calls(self) -> list[Call]:
        """Return the calls without an output."""
        answers = [item for item in self.history if item.get("type", "").endswith(_ANSWERS)]
        answered = [item.get("call_id") or item.get("approval_request_id") for item in answers]
        calls = [] if self._hosted else _calls(self.history)
        found = []
        for call in calls:
            if call.call_id in answered:
                answered.remove(call.call_id)
            else:
                found.append(call)
        return found

    def _parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": self.name,
            "instructions": self.instructions,
            "tools": list(self.tools),
            "input": _sendable(self.history[self._kept :]),
        }
        if self._stateless:
            parameters.update(store=False, include=["reasoning.encrypted_content"])
        elif self._previous is not None:
            parameters["previous_response_id"] = self._previous
        return parameters

    def _reply(self, response: Any) -> Reply:
        if response.status == "failed":
            raise _failed(response.error.message if response.error else "")
        items = tuple(_as_input(item) for item in response.output or ())
        if (waiting := next((item for item in items if self._unanswerable(item)), None)) is not None:
            raise BrokenReply(
                f"the model makes a {waiting['type']}, which nothing here can answer; try again, or use another model"
            )
        cut_off = ""
        if response.status in ("incomplete", "cancelled"):
            details = response.incomplete_details
            cut_off = (details and details.reason) or response.status
        usage = response.usage
        return Reply(
            items=items,
            text=_text(items),
            calls=() if self._hosted else tuple(_calls(items)),
            input_tokens=tokens(usage, "input_tokens"),
            output_tokens=tokens(usage, "output_tokens"),
            cut_off=cut_off,
            id=response.id,
            hosted=tuple(_run_by_the_server(items)) if self._hosted else (),
        )

    def _unanswerable(self, item: Item) -> bool:
        """Return whether the API waits for an output of this item that we have none for.

        A `call_id` is what an output names a call by; what the server runs itself is known by its `id` alone.
        """
        kind = item.get("type", "")
        if needs_answer(item):
            return self._hosted and kind not in _SERVED
        if kind in _SERVED or kind.endswith("_output") or item.get("execution") == "server":
            return False
        return item.get("call_id") is not None


def _failed(said: str) -> BrokenReply:
    return BrokenReply(f"the model failed: {said or 'it does not say why'}; try again")


def _as_input(item: Any) -> Item:
    """Return an output item as input: plain JSON, without what was not set or is not taken back."""
    values = item.to_dict(mode="json", warnings=False)  # a malformed call is told to the model, not to stderr
    return {name: value for name, value in values.items() if value is not None and name not in _NOT_INPUT}


def _sendable(items: list[Item]) -> list[Item]:
    """Return items as input.

    What a model thought is the server's own unless it came encrypted, so it may know nothing of it. Without it, what
    followed must not be known by its id either: the server would miss the thoughts that belong to it.
    """
    kept = [item for item in items if item.get("type") != "reasoning" or "encrypted_content" in item]
    if len(kept) == len(items):
        return kept
    nameless = ("message", "function_call", "custom_tool_call", "shell_call")  # a `local_shell_call` must have its id
    return [
        {name: value for name, value in item.items() if name != "id" or item.get("type") not in nameless}
        for item in kept
    ]


def _calls(items: tuple[Item, ...] | list[Item]) -> list[Call]:
    return [Call(call_id=call_id_of(item), item=item) for item in items if needs_answer(item)]


def _text(items: tuple[Item, ...]) -> str:
    messages = [item for item in items if item.get("type") == "message"]
    parts = [[part.get("text") or part.get("refusal") or "" for part in item.get("content") or ()] for item in messages]
    return "\n".join(filter(None, ("".join(texts) for texts in parts)))


def _run_by_the_server(items: tuple[Item, ...]) -> list[CallRequested | CallFinished]:
    commands: dict[str, list[str]] = {}
    events: list[CallRequested | CallFinished] = []
    for item in items:
        call_id = item.get("call_id") or ""
        if item.get("type") == "shell_call":
            commands[call_id] = list(item["action"]["commands"])
            events.append(CallRequested(call_id=call_id, name="shell", commands=tuple(commands[call_id])))
        elif item.get("type") == "shell_call_output":
            asked = iter(commands.get(call_id, ()))
            events += [
                CallFinished(call_id=call_id, output=_hosted_output(next(asked, ""), output))
                for output in item["output"]
            ]
    return events


def _hosted_output(command: str, output: Item) -> ToolOutput:
    outcome = output["outcome"]
    timed_out = outcome["type"] == "timeout"
    result = ShellResult(
        command=command,
        stdout=output["stdout"],
        stderr=output["stderr"],
        exit_code=124 if timed_out else outcome["exit_code"],
        timed_out=timed_out,
    )
    return ToolOutput(text=result.for_model(), result=result)
