"""Pass the model's commands through the tools' gate, one at a time, and show what happens. The loop owns one.

It decides nothing: whether a command runs is the tools' matter, and what the model is told of it the adapter's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs

from ..adapters.openai_responses import MalformedCall, call_output, called_tool, commands, refusal
from ..policy.approvals import ApprovalRequest, Decision
from ..sessions.base import StreamName
from ..tool import Approver, ShellTool, Tool, ToolOutput
from ..tool.approvers import approver_name
from .base import Call, Item
from .calls import requested
from .events import ApprovalAsked, ApprovalGiven, CallFinished, Event

__all__ = ["WatchedGate", "ended"]

_log = logging.getLogger("shellkit")

#: Characters of each stream that the model is told of a command that was ended from outside; such a call has no result.
_TAIL = 4000


class WatchedGate:
    """The gate of a conversation's tools, with events.

    Args:
        tools: what the model has been given.
        emit: shows an event, and returns when it has been seen.
        emit_output: shows output of the running command; must not block.
    """

    def __init__(
        self,
        tools: Sequence[Tool[Any, Any]],
        emit: Callable[[Event], Awaitable[None]],
        emit_output: Callable[[str, StreamName, str], None],
    ) -> None:
        self._tools = tools
        self._emit = emit
        self._emit_output = emit_output
        self._call_id = ""
        self._step: asyncio.Task[ToolOutput] | None = None
        self._runs = False
        self._tails: dict[StreamName, str] = {}
        self._finished: list[ToolOutput] = []  # commands of the call that is being answered

    async def answer(self, call: Call) -> Item:
        """Have the commands of a call run, as far as they may, and return its output.

        Raises:
            asyncio.CancelledError: the calling task was cancelled. The running command has ended, and `close` tells
                what became of each.
        """
        self._call_id, self._finished = call.call_id, []
        try:
            wanted, tool = commands(call.item), called_tool(self._tools, call.item)
        except MalformedCall as malformed:
            await self._emit(requested(call, ()))
            await self._finish(ToolOutput(text=str(malformed), is_error=True))
            return refusal(call.item, str(malformed))
        await self._emit(requested(call, [asked for each in wanted if (asked := tool.asked(each)) is not None]))
        for arguments in wanted:
            await self._finish(await self._pass_watched(tool, arguments))
        outputs, self._finished = self._finished, []  # a later call may have the same id
        return call_output(call.item, outputs)

    def close(self, call: Call, text: str) -> Item:
        """Return the output of a call that is not gone on with: `text` for each command that has not run."""
        finished = self._finished if call.call_id == self._call_id else []
        self._finished = []
        try:
            left = len(commands(call.item)) - len(finished)
        except MalformedCall as malformed:
            return refusal(call.item, str(malformed))
        not_run = [ToolOutput(text=text, is_error=True)] * left
        return call_output(call.item, [*finished, *not_run], status="incomplete")

    def interrupt(self) -> bool:
        """End the command that is at the gate or running, as the user wants it; return whether there is one.

        One that is being ended already is none: who asks again wants more than that.
        """
        return self._step is not None and not self._step.cancelling() and self._step.cancel()

    async def _finish(self, output: ToolOutput) -> None:
        self._finished.append(output)
        await self._emit(CallFinished(call_id=self._call_id, output=output))

    async def _pass_watched(self, tool: Tool[Any, Any], arguments: Mapping[str, Any] | str) -> ToolOutput:
        self._runs = False
        self._tails = {}
        step = self._step = asyncio.create_task(self._pass(tool, arguments))
        try:
            await asyncio.wait([step])
        except asyncio.CancelledError:
            try:
                await ended(step)
            finally:
                self._finished.append(self._outcome(tool, step, "the turn was cancelled"))
            raise
        finally:
            self._step = None
        return self._outcome(tool, step, "the user interrupted it")

    async def _pass(self, tool: Tool[Any, Any], arguments: Mapping[str, Any] | str) -> ToolOutput:
        call_id, approver = self._call_id, tool.approver
        request = None if approver is None else await tool.approval_request(arguments)
        if approver is None or request is None:
            self._runs = True
            return await tool.call(arguments, call_id=call_id, on_output=self._see)
        await self._emit(ApprovalAsked(call_id=call_id, request=request))
        decision = await _ask(approver, request)
        hides = request.secret and decision.command is not None
        shown = attrs.evolve(decision, command="(not shown: the program asks for a secret)") if hides else decision
        await self._emit(ApprovalGiven(call_id=call_id, decision=shown))
        self._runs = decision.approved
        name = approver_name(approver)
        return await tool.resume(request, decision, arguments, call_id=call_id, on_output=self._see, approver=name)

    def _see(self, stream: StreamName, text: str) -> None:
        self._tails[stream] = (self._tails.get(stream, "") + text)[-_TAIL:]
        self._emit_output(self._call_id, stream, text)

    def _outcome(self, tool: Tool[Any, Any], step: asyncio.Task[ToolOutput], reason: str) -> ToolOutput:
        if not step.cancelled():
            return step.result()
        if not self._runs:
            return ToolOutput(text=f"Not run: {reason}.", is_error=True)
        if not isinstance(tool, ShellTool):
            return ToolOutput(
                text=f"[Broken off: {reason}. That ended the call, not the program: list_processes shows what runs.]",
                is_error=True,
            )
        shown = "".join(f"[{stream}, its end]\n{text}\n" for stream, text in self._tails.items() if text)
        return ToolOutput(
            text=f"{shown}[Ended before it was done: {reason}. What it had changed until then stays changed; "
            "the session goes on.]",
            is_error=True,
        )


async def _ask(approver: Approver, request: ApprovalRequest) -> Decision:
    """Ask, and take a failure for a refusal, as the gate itself does."""
    try:
        decision = await approver(request)
        if not isinstance(decision, Decision):
            raise TypeError(f"an approver answers with a Decision, not {type(decision).__name__}")
        return decision
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Decision(approved=False, reason="asking for approval was broken off")
    except Exception as error:  # noqa: BLE001  (the gate does the same: no answer is a refusal)
        _log.exception("the approver failed; the command was refused")
        return Decision(approved=False, reason=f"asking for approval failed ({type(error).__name__})")


async def ended(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended, however often the waiting is cancelled; then that is raised."""
    task.cancel()
    again: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            again = error
    if again is not None:
        raise again
