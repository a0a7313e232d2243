"""`Agent`: a model at the keyboard of one shell. Call `run` with a task and read the events.

It asks the model, has what the model wants pass the tools' gate, tells it what came of it, and goes on until the model
asks for nothing more or a limit is reached. It never runs a command itself, and leaves no call without an output.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, get_args

from ..adapters.openai_responses import Tools
from ..errors import ShellkitError
from ..sessions.base import StreamName
from ..tool import Tool
from .base import Call, Item, Model, Reply
from .briefing import Api, Form, declarations, default_instructions, shell_of
from .calls import same
from .chat import ChatModel
from .client import Client
from .events import Event, Message, Stopped, Usage
from .failures import Failure, explain
from .feed import EventFeed
from .gate import WatchedGate, ended
from .hosted import HostedShell
from .responses import ResponsesModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    from .transcript import Transcript

__all__ = ["Agent"]

_LOST_CONTAINER = "[note: the container is a new one; the files of earlier commands are gone with the one before]"
_BROKEN_OFF = "Not known whether it ran: the conversation was broken off here. Look before you run it again."


class Agent:
    """A conversation between a model and a shell. One agent serves one conversation, one run at a time.

    Args:
        client: `openai.OpenAI`, `openai.AsyncOpenAI` or the Azure ones. An async one can be cancelled at once; see
            `agent.client` for the other.
        model: the model's name (on Azure, the deployment's).
        tools: what the model's calls go through: `executor.as_tool()`, or with form="function" all of
            `executor.as_tools()`; None for form="hosted".
        api: "responses" or "chat" (Chat Completions).
        form: what the model is given: a "function" of its own schema, the API's "shell" or "local_shell" tool, or the
            "hosted" shell, whose commands run in OpenAI's container. Chat has functions alone.
        instructions: for the model; by default made from the environment, see `default_instructions`.
        stateless: have the server keep nothing and send the whole conversation each time (chat always does).
        stream: have replies streamed; without it there are no `TextDelta` events.
        max_turns: the most replies in one run.
        max_tokens: the most tokens in the whole conversation, read and made; a run stops when they are used up.
        transcript: a file that keeps the conversation; what it holds already is gone on with. The agent does not
            close it.
        hosted: the container for form="hosted"; one of the server's default size is made without it.

    Attributes:
        text: the last thing that the model said in the latest run.
        usage: tokens of the last reply and of all so far.

    Raises:
        ValueError: the combination is impossible; the message names the remedy.
        TranscriptError: the transcript holds a conversation by the other API.
    """

    def __init__(
        self,
        client: OpenAI | AsyncOpenAI,
        model: str,
        tools: Tools | None,
        *,
        api: Api = "responses",
        form: Form = "function",
        instructions: str | None = None,
        stateless: bool = False,
        stream: bool = True,
        max_turns: int = 50,
        max_tokens: int | None = None,
        transcript: Transcript | None = None,
        hosted: HostedShell | None = None,
    ) -> None:
        self._tools = () if tools is None else (tools,) if isinstance(tools, Tool) else tuple(tools)
        _check(api, form, self._tools, hosted)
        self.text = ""
        self.usage = Usage()
        self._form: Form = form
        self._api: Api = api
        self._instructions = instructions
        self._max_turns = max_turns
        self._max_tokens = max_tokens
        self._hosted = HostedShell(client) if form == "hosted" and hosted is None else hosted
        calling = Client(client)
        self._model: Model = (
            ChatModel(calling, model, stream=stream)
            if api == "chat"
            else ResponsesModel(calling, model, stream=stream, stateless=stateless, hosted=form == "hosted")
        )
        if transcript is not None:
            transcript.begin(api)
            self._model.history.extend(transcript.items)
            self._model.record_to(transcript.append)
        self._gate = WatchedGate(self._tools, self._emit, self._emit_output) if self._tools else None
        self._answered: dict[str, tuple[Item, Item]] = {}  # call and output by the call's id
        self._feed: EventFeed | None = None
        self._work: asyncio.Task[None] | None = None
        self._stopping = False

    # -- for the user ----------------------------------------------------------------------------------

    async def run(self, task: str) -> AsyncGenerator[Event, None]:
        """Give the model a task, or say the next thing in the conversation, and yield what happens.

        The last event is `Stopped`; whatever the reason, the next run goes on with the conversation. The work waits
        for whoever reads the events. Closing the iterator (`contextlib.aclosing`) or cancelling the task that reads
        ends the running command first, then the turn.

        Args:
            task: what the user says.

        Raises:
            RuntimeError: the events of an earlier run are not read to their end, and it was not closed.
        """
        if self._feed is not None:
            raise RuntimeError("this agent is running: read its events to the end, or close them (contextlib.aclosing)")
        feed = self._feed = EventFeed()
        self._stopping = False
        self.text = ""
        work = self._work = asyncio.create_task(self._converse(task, feed))
        work.add_done_callback(lambda _: feed.end())
        try:
            while (event := await feed.get()) is not None:
                yield event
                feed.seen()
            if self._stopping and work.cancelled():
                yield Stopped(reason="cancelled", text=self.text)
            else:
                await work
        finally:
            try:
                await ended(work)
            finally:
                self._feed = self._work = None

    def cancel(self) -> bool:
        """End the command that is running or waits for approval; the model is told, and the turn goes on.

        Call it on the loop that `run` runs on.

        Returns:
            Whether there was one that was not being ended already. If not, `stop` ends the turn.
        """
        return self._gate is not None and self._gate.interrupt()

    def stop(self) -> None:
        """End the turn: the command first, then the events, with `Stopped("cancelled")`. Call it on `run`'s loop."""
        if self._work is not None:
            self._stopping = True
            self._work.cancel()

    def charge(self, input_tokens: int, output_tokens: int) -> None:
        """Count tokens that were used on this conversation's behalf, e.g. by a sub-agent, against `max_tokens`."""
        self.usage = self.usage.charged(input_tokens, output_tokens)

    # -- the loop --------------------------------------------------------------------------------------

    async def _converse(self, task: str, feed: EventFeed) -> None:
        try:
            await self._prepare()
            self._model.say(task)
            try:
                stopped = await self._turns()
            except BaseException as error:
                cancelled = isinstance(error, asyncio.CancelledError)
                self._close_calls(f"Not run: {'the turn was cancelled' if cancelled else 'an error ended the turn'}.")
                raise
        except _NoReply as error:
            stopped = Stopped(
                reason="error", text=self.text, error=error.failure.text, misconfigured=error.failure.misconfigured
            )
        except (ShellkitError, ValueError) as error:  # the transcript cannot be written; a call cannot be answered
            stopped = Stopped(reason="error", text=self.text, error=str(error))
        feed.end(stopped)

    async def _turns(self) -> Stopped:
        for _ in range(self._max_turns):
            if self._max_tokens is not None and self.usage.total >= self._max_tokens:
                return Stopped(reason="tokens", text=self.text)
            reply = await self._reply()
            if any(not isinstance(call.call_id, str) or not call.call_id for call in reply.calls):
                raise _NoReply(Failure("the model's call has no id, so that nothing can answer it; try again"))
            self._model.accept(reply)
            self.usage = self.usage.plus(reply.input_tokens, reply.output_tokens)
            if reply.text:
                self.text = reply.text
                await self._emit(Message(text=reply.text))
            await self._emit(self.usage)
            for event in reply.hosted:
                await self._emit(event)
            if not reply.calls:
                return _stopped(reply)
            if self._api == "chat":
                self._answered.clear()  # some servers count their ids anew in each reply
            for call in reply.calls:
                await self._answer(call)
        return Stopped(reason="turns", text=self.text)

    async def _reply(self) -> Reply:
        try:
            try:
                return await self._ask()
            except Exception:
                if not await self._renew_container():
                    raise
                return await self._ask()
        except Exception as error:
            raise self._no_reply(error) from error

    async def _ask(self) -> Reply:
        async with contextlib.aclosing(self._model.turn()) as parts:
            async for part in parts:
                if isinstance(part, Reply):
                    return part
                await self._emit(part)
        raise AssertionError("a turn ends with a reply or an exception")

    async def _answer(self, call: Call) -> None:
        assert self._gate is not None  # a model without a tool has no calls to answer
        self._record(call, self._known(call) or await self._gate.answer(call))

    def _close_calls(self, reason: str) -> None:
        for call in self._model.open_calls():
            assert self._gate is not None
            self._record(call, self._known(call) or self._gate.close(call, reason))

    def _known(self, call: Call) -> Item | None:
        """Return the output of a call that came before, so that it runs once."""
        item, output = self._answered.get(call.call_id, ({}, None))
        return output if same(item, call.item) else None

    def _record(self, call: Call, output: Item) -> None:
        self._model.answer(output)
        self._answered[call.call_id] = (call.item, output)

    # -- before a run ----------------------------------------------------------------------------------

    async def _prepare(self) -> None:
        if self._instructions is None:
            self._instructions = await default_instructions(self._tools or None, self._form)
        self._model.instructions = self._instructions
        try:
            await self._renew_container()
        except Exception as error:
            raise self._no_reply(error) from error
        if not self._model.tools:
            self._declare()
        self._close_calls(_BROKEN_OFF)

    def _declare(self) -> None:
        container_id = None if self._hosted is None else self._hosted.container_id
        self._model.tools = declarations(self._tools, self._form, self._api, container_id)

    async def _renew_container(self) -> bool:
        """See to it that a hosted shell has its container; return whether it is a new one, as the model is told."""
        if self._hosted is None or not await self._hosted.ensure():
            return False
        self._declare()
        if self._model.history:
            self._model.say(_LOST_CONTAINER)
        return True

    # -- what is shown ---------------------------------------------------------------------------------

    async def _emit(self, event: Event) -> None:
        assert self._feed is not None
        await self._feed.put(event)

    def _emit_output(self, call_id: str, stream: StreamName, text: str) -> None:
        assert self._feed is not None
        self._feed.put_output(call_id, stream, text)

    def _no_reply(self, error: Exception) -> _NoReply:
        return _NoReply(explain(error, base_url=self._model.base_url, model=self._model.name))


class _NoReply(Exception):
    """The model does not answer, or not usably."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def _stopped(reply: Reply) -> Stopped:
    if not reply.cut_off:
        return Stopped(reason="done", text=reply.text)
    error = f"the reply was cut off ({reply.cut_off}); ask for less at a time, or raise the server's limit"
    return Stopped(reason="error", text=reply.text, error=error)


def _check(api: Api, form: Form, tools: tuple[Tool[Any, Any], ...], hosted: HostedShell | None) -> None:
    if api not in get_args(Api):
        raise ValueError(f"api must be 'responses' or 'chat', not {api!r}")
    if form not in get_args(Form):
        raise ValueError(f"form must be 'function', 'shell', 'local_shell' or 'hosted', not {form!r}")
    if api == "chat" and form != "function":
        raise ValueError(f"Chat Completions has functions alone; use form='function' or api='responses', not {form!r}")
    if (not tools) != (form == "hosted"):
        raise ValueError("form='hosted' takes no tool, as nothing runs here; every other form needs one")
    if tools:
        shell_of(tools)
    if len(tools) > 1 and form != "function":
        raise ValueError(f"form={form!r} is one tool of the API's; give executor.as_tool(), or use form='function'")
    if hosted is not None and form != "hosted":
        raise ValueError("hosted=... is the container of form='hosted'")
