"""`Tool`: what a model gets of an executor, and the gate that every call goes through (contract H); and `ShellTool`.

The gate is `Tool._pass`: validate -> policy -> approval -> confinement -> audit -> run -> audit -> render. Nothing
else is in it. Whatever goes wrong on the way comes back as text that the model can act on; only cancellation is raised.
"""

from __future__ import annotations

import logging
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, get_args

import attrs

from ..audit import AuditLog
from ..environment.base import ShellEnvironment
from ..environment.probe import EnvironmentProbe
from ..errors import ExecutorClosed, ShellkitError
from ..policy.approvals import ApprovalRequest, Decision, displayed
from ..policy.base import Policy
from ..result import ShellResult
from ..sessions.base import OnTimeout
from ..sessions.turnstile import Turnstile
from ..telemetry import tool_span
from .approval import Answer, ApprovalMode
from .approvers import Approver
from .base import OnOutput, Refused, Runner, ToolOutput, Wanted
from .describe import ToolFacts, description
from .gate import SHOWN, Gate
from .schema import SHELL_COMMAND, Arguments, InvalidArguments, parse

__all__ = ["ApprovalMode", "ShellTool", "Tool"]

_log = logging.getLogger("shellkit")

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # With defaults, so that who holds tools may write `Tool`.
    Asked = TypeVar("Asked", bound=Wanted, default=Any)
    Result = TypeVar("Result", default=Any)
else:
    from typing import TypeVar

    Asked = TypeVar("Asked")
    Result = TypeVar("Result")  # no default before Python 3.13, and only a type checker needs it


class Tool(ABC, Generic[Asked, Result]):
    """One tool of a model. What frameworks show and call is the same for all; a subclass says what it does.

    Args:
        name: what the model calls it.
        gate: shared by all tools of a conversation.
        line: lets the calls through one at a time; without one they do not wait for each other.
    """

    def __init__(self, name: str, gate: Gate, line: Turnstile | None = None) -> None:
        self.name = name
        self.gate = gate
        self._line = line

    # -- what a framework shows to the model -----------------------------------------------------------

    @property
    @abstractmethod
    def description(self) -> str:
        """What the tool tells the model about itself."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The strict JSON schema of the arguments."""

    @property
    def approver(self) -> Approver | None:
        """Who is asked; for a loop that shows what is asked and answers with `resume`."""
        return self.gate.approval.approver

    # -- calling ---------------------------------------------------------------------------------------

    async def call(
        self, arguments: object, *, call_id: str | None = None, on_output: OnOutput | None = None
    ) -> ToolOutput:
        """Run what a model asked for, if it may run.

        Args:
            arguments: the model's arguments: a JSON object as text, or a mapping.
            call_id: the framework's id of the call, for the audit log and traces.
            on_output: called with ("stdout" | "stderr", text) while a command of `run_shell` runs, as in
                `Executor.run`; the tools for programs do not call it.

        Returns:
            What to tell the model. Refusals, wrong arguments and a shell that cannot start come back as text.

        Raises:
            asyncio.CancelledError: the calling task was cancelled; nothing else.
        """
        return await self._guard(arguments, call_id, on_output, None)

    async def approval_request(self, arguments: object) -> ApprovalRequest | None:
        """Return what a person must approve before `call` would run this; None if nobody is asked.

        For frameworks that stop and go on later: show `request.to_dict()`, then `resume` with the answer. It has no
        side effect but to make the request good for one `resume`, so it may be called as often as a framework likes:
        of those that are not answered the latest 1,000 are good, and an older one is refused with "ask again".
        A call that would be refused anyway needs no approval either: `call` says why.
        """
        try:
            wanted = self._validate(arguments)
            judgement = self.gate.judge(wanted)
            if not self.gate.asks(wanted, judgement):
                return None
            return self.gate.approval.wait_for(self.gate.request(wanted, judgement), judgement)
        except (InvalidArguments, Refused):
            return None
        except Exception:  # noqa: BLE001  (`call` meets the same error, refuses, and tells the model)
            _log.exception("a call could not be judged; it will be refused")
            return None

    async def resume(
        self,
        request: ApprovalRequest | Mapping[str, Any],
        decision: Decision | Mapping[str, Any] | bool,
        arguments: object,
        *,
        call_id: str | None = None,
        on_output: OnOutput | None = None,
        approver: str = "",
    ) -> ToolOutput:
        """Run what was approved: exactly that, here, and once.

        Args:
            request: what `approval_request` returned, or its `to_dict()`.
            decision: the answer; a `Decision`, its `to_dict()`, or a bool.
            arguments: the call's arguments, as they were given to `approval_request`.
            call_id: as in `call`.
            on_output: as in `call`.
            approver: who answered, for the audit log.
        """
        return await self._guard(arguments, call_id, on_output, Answer(request, decision, approver))

    def asked(self, arguments: object) -> Wanted | None:
        """Return what a call would run or type, and into what, as a person may see it; None for wrong arguments.

        For those who show or log calls: it has no side effect, and decides nothing.
        """
        try:
            wanted = self._validate(arguments)
        except (InvalidArguments, ShellkitError):  # `call` tells the model
            return None
        return Wanted(command=wanted.command, workdir=wanted.workdir, reader=wanted.reader)

    # -- the gate --------------------------------------------------------------------------------------

    async def _pass(
        self, arguments: object, call_id: str | None, on_output: OnOutput | None, answer: Answer | None
    ) -> ToolOutput:
        gate = self.gate
        asked = self._validate(arguments)
        judgement = gate.judge(asked)
        leave = await gate.approve(asked, judgement, answer)
        wanted = asked
        if leave.command is not None:  # a person may approve what the policy asks about, not what it denies
            wanted = asked.edited(leave.command)
            gate.judge(wanted)
        gate.confine(wanted, judgement)
        entry = gate.record(self.name, wanted, call_id, leave)
        try:
            result = await self._run(wanted, on_output)
        except BaseException as error:
            gate.record_outcome(entry, error)
            raise
        unrecorded = gate.record_outcome(entry, result)
        notes = [unrecorded] if unrecorded else []
        if leave.command is not None:
            notes.append(f"Whoever approved it changed the command; this ran: {displayed(wanted.command, SHOWN)}")
        return self._render(result, wanted, notes)

    async def _guard(
        self, arguments: object, call_id: str | None, on_output: OnOutput | None, answer: Answer | None
    ) -> ToolOutput:
        """Let calls through the gate in their order, and turn whatever it raises into text (contract H4)."""
        with tool_span(self.name, call_id) as span:
            if self._line is not None and not self._line.try_enter():
                await self._line.enter()
            try:
                output = await self._pass(arguments, call_id, on_output, answer)
            except Refused as refused:
                self.gate.record_refusal(self.name, refused, call_id)
                output = ToolOutput(text=str(refused), is_error=True)
            except InvalidArguments as error:
                output = ToolOutput(text=str(error), is_error=True)
            except ExecutorClosed as error:
                text = "The shell is closed for good, so no command will run any more; tell the user."
                if error.result is not None:
                    text = f"{error.result.for_model()}\n[The shell was closed while the command ran. {text}]"
                output = ToolOutput(text=text, result=error.result, is_error=True)
            except ShellkitError as error:
                output = ToolOutput(text=f"Not run: {error}", is_error=True)
            except Exception as error:  # noqa: BLE001  (an exception would end the agent's loop, not the mistake)
                _log.exception("the shell tool failed")
                output = ToolOutput(text=f"The shell tool failed: {type(error).__name__}: {error}", is_error=True)
            finally:
                if self._line is not None:
                    self._line.leave()
            span.record(output.result, is_error=output.is_error)
            return output

    # -- what a tool does, called by the gate only -----------------------------------------------------

    @abstractmethod
    def _validate(self, arguments: object) -> Asked:
        """Return what a model asks for, with everything in it that decides what would run.

        Raises:
            InvalidArguments: it cannot be meant.
        """

    @abstractmethod
    async def _run(self, wanted: Asked, on_output: OnOutput | None) -> Result:
        """Do it."""

    @abstractmethod
    def _render(self, result: Result, wanted: Asked, notes: list[str]) -> ToolOutput:
        """Return what to tell the model, the notes included."""


class ShellTool(Tool[Arguments, ShellResult]):
    """A shell as a tool for a model. Made by `Executor.as_tool`.

    Args:
        runner: the executor.
        name: what the model calls it.
        description: replaces the generated one.
        approval: "always" asks before every command; "policy" lets the policy decide; "never" asks nobody.
        approver: who is asked. Without one, what needs approval is refused.
        policy: rules over the parsed command. Its DENY holds in every mode.
        acknowledge_unsafe: needed for approval="never" where nothing isolates.
        audit: a log that gets a line before and after every command, or the path of one.
        max_timeout: the most seconds that a model may ask for.
        on_timeout: "background" lets a command run on at its time-out; `Executor.as_tools` has what then waits for it.

    Raises:
        TypeError: the policy or the approver is none.
        ValueError: the combination is unsafe or impossible; the message names the remedy.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        name: str = "run_shell",
        description: str | None = None,
        approval: ApprovalMode = "always",
        approver: Approver | None = None,
        policy: Policy | None = None,
        acknowledge_unsafe: bool = False,
        audit: AuditLog | str | os.PathLike[str] | None = None,
        max_timeout: float = 600.0,
        on_timeout: OnTimeout = "kill",
    ) -> None:
        gate = Gate(
            runner,
            approval=approval,
            approver=approver,
            policy=policy,
            acknowledge_unsafe=acknowledge_unsafe,
            audit=audit,
        )
        if isinstance(max_timeout, bool) or not isinstance(max_timeout, (int, float)) or not 0 < max_timeout < math.inf:
            raise ValueError(f"max_timeout must be a positive, finite number of seconds, not {max_timeout!r}")
        # One call at a time: what is approved for a directory runs before another call leaves it.
        super().__init__(name, gate, Turnstile())
        self.approval: ApprovalMode = approval
        if on_timeout not in get_args(OnTimeout):
            raise ValueError(f"on_timeout must be 'kill' or 'background', not {on_timeout!r}")
        self.max_timeout = float(max_timeout)
        self.on_timeout: OnTimeout = on_timeout
        self._runner = runner
        self._description = description
        facts = runner.facts()
        self._probe = EnvironmentProbe(runner, facts.family, mode=facts.mode, confinement=facts.confinement)

    @property
    def description(self) -> str:
        """What the tool tells the model about itself; more exact once `probe` has asked the shell."""
        if self._description is not None:
            return self._description
        facts = ToolFacts(
            timeout=self._timeout(None),
            max_timeout=self.max_timeout,
            max_output_bytes=self._runner.max_output_bytes,
            approval=self.approval,
            isolated=self._runner.isolation != "none",
            on_timeout=self.on_timeout,
        )
        return description(self._probe.known or self._runner.facts(), facts)

    @property
    def parameters(self) -> dict[str, Any]:
        return SHELL_COMMAND.parameters()

    async def probe(self) -> ShellEnvironment:
        """Ask the shell what it is, once; the description is made from the answer."""
        return await self._probe.get()

    def _validate(self, arguments: object) -> Arguments:
        return self.gate.placed(parse(arguments))

    async def _run(self, wanted: Arguments, on_output: OnOutput | None) -> ShellResult:
        return await self._runner.run(
            wanted.command,
            timeout=self._timeout(wanted.timeout),
            workdir=wanted.workdir,
            on_output=on_output,
            on_timeout=self.on_timeout,
        )

    def _render(self, result: ShellResult, wanted: Arguments, notes: list[str]) -> ToolOutput:
        if wanted.timeout is not None and wanted.timeout > self.max_timeout:
            notes.append(f"The time-out was reduced from {wanted.timeout:g} s to the most, {self.max_timeout:g} s.")
        if notes:
            result = attrs.evolve(result, notes=(*result.notes, *notes))
        return ToolOutput(text=result.for_model(), result=result)

    def _timeout(self, wanted: float | None) -> float:
        seconds = self._runner.timeout if wanted is None else wanted
        return self.max_timeout if seconds is None else min(seconds, self.max_timeout)
