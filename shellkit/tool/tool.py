"""`ShellTool`: what a model gets of an executor, and the gate that every call goes through (contract H).

The gate is `_pass`: validate -> policy -> approval -> confinement -> audit -> run -> audit -> render. Nothing else
is in it. Whatever goes wrong on the way comes back as text that the model can act on; only cancellation is raised.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
from collections.abc import Mapping
from typing import Any, get_args

import attrs

from ..audit import AuditEntry, AuditLog
from ..environment.base import ShellEnvironment
from ..environment.probe import EnvironmentProbe
from ..errors import ExecutorClosed, ShellkitError
from ..policy.approvals import ApprovalRequest, Decision, displayed
from ..policy.base import Judgement, Policy, Verdict
from ..policy.rules import RulePolicy
from ..result import ShellResult
from ..sessions.turnstile import Turnstile
from ..telemetry import tool_span
from .approval import Answer, Approval, ApprovalMode, Leave
from .approvers import Approver
from .base import OnOutput, Refused, Runner, ToolOutput
from .describe import ToolFacts, description
from .schema import Arguments, InvalidArguments, parameters, parse

__all__ = ["ApprovalMode", "ShellTool"]

_log = logging.getLogger("shellkit")

_SHOWN = 1000  # characters of a reason: a command of 1 MB has as long a list of reasons


class ShellTool:
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

    Raises:
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
    ) -> None:
        if approval not in get_args(ApprovalMode):
            raise ValueError(f"approval must be 'always', 'policy' or 'never', not {approval!r}")
        if approval == "never" and runner.isolation == "none" and acknowledge_unsafe is not True:
            raise ValueError(
                "approval='never' lets a model do whatever this user may do, and this executor isolates nothing; pass "
                "acknowledge_unsafe=True if that is what you want, or give a policy and approval='policy'"
            )
        if approval == "policy" and policy is None:
            raise ValueError("approval='policy' needs policy=..., for example shellkit.policy.READ_ONLY")
        if isinstance(max_timeout, bool) or not isinstance(max_timeout, (int, float)) or not 0 < max_timeout < math.inf:
            raise ValueError(f"max_timeout must be a positive, finite number of seconds, not {max_timeout!r}")
        self.name = name
        self.approval: ApprovalMode = approval
        self.max_timeout = float(max_timeout)
        self._runner = runner
        self._description = description
        self._approval = Approval(approval, approver)
        self._has_policy = policy is not None
        self._policy: Policy = policy if policy is not None else RulePolicy(rules=())
        self._audit = audit if audit is None or isinstance(audit, AuditLog) else AuditLog(audit)
        self._session = secrets.token_hex(8)
        # One call at the gate at a time: what is approved for a directory runs before another call leaves it.
        self._turnstile = Turnstile()
        facts = runner.facts()
        self._probe = EnvironmentProbe(runner, facts.family, mode=facts.mode, confinement=facts.confinement)

    # -- what a framework shows to the model -----------------------------------------------------------

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
        )
        return description(self._probe.known or self._runner.facts(), facts)

    @property
    def approver(self) -> Approver | None:
        """Who is asked; for a loop that shows what is asked and answers with `resume`."""
        return self._approval.approver

    @property
    def parameters(self) -> dict[str, Any]:
        """The strict JSON schema of the arguments."""
        return parameters()

    async def probe(self) -> ShellEnvironment:
        """Ask the shell what it is, once; the description is made from the answer."""
        return await self._probe.get()

    # -- calling ---------------------------------------------------------------------------------------

    async def call(
        self, arguments: object, *, call_id: str | None = None, on_output: OnOutput | None = None
    ) -> ToolOutput:
        """Run what a model asked for, if it may run.

        Args:
            arguments: the model's arguments: a JSON object as text, or a mapping.
            call_id: the framework's id of the call, for the audit log and traces.
            on_output: called with ("stdout" | "stderr", text) while the command runs, as in `Executor.run`.

        Returns:
            What to tell the model. Refusals, wrong arguments and a shell that cannot start come back as text.

        Raises:
            asyncio.CancelledError: the calling task was cancelled; nothing else.
        """
        return await self._guard(arguments, call_id, on_output, None)

    async def approval_request(self, arguments: object) -> ApprovalRequest | None:
        """Return what a person must approve before `call` would run this; None if nobody is asked.

        For frameworks that stop and go on later: show `request.to_dict()`, then `resume` with the answer. It has no
        side effect but to make the request good for one `resume`, so it may be called as often as a framework likes.
        A call that would be refused anyway needs no approval either: `call` says why.
        """
        try:
            wanted = self._placed(parse(arguments))
            judgement = self._judge(wanted)
            request = self._request(wanted, judgement)
            return request if self._approval.wait_for(request, judgement) else None
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
    ) -> ToolOutput:
        """Run what was approved: exactly that, here, and once.

        Args:
            request: what `approval_request` returned, or its `to_dict()`.
            decision: the answer; a `Decision`, its `to_dict()`, or a bool.
            arguments: the call's arguments, as they were given to `approval_request`.
            call_id: as in `call`.
            on_output: as in `call`.
        """
        return await self._guard(arguments, call_id, on_output, Answer(request, decision))

    # -- the gate --------------------------------------------------------------------------------------

    async def _pass(
        self, arguments: object, call_id: str | None, on_output: OnOutput | None, answer: Answer | None
    ) -> ToolOutput:
        asked = self._placed(parse(arguments))
        judgement = self._judge(asked)
        leave = await self._approve(asked, judgement, answer)
        wanted = self._edited(asked, leave)
        self._confine(wanted, judgement)
        command, workdir, timeout = wanted.command, wanted.workdir, self._timeout(wanted.timeout)
        entry = self._record(command, workdir, call_id, decision="allowed", decided_by=leave.by, reason=leave.reason)
        try:
            result = await self._runner.run(command, timeout=timeout, workdir=workdir, on_output=on_output)
        except BaseException as error:
            self._record_outcome(entry, error)
            raise
        unrecorded = self._record_outcome(entry, result)
        return self._rendered(result, wanted, leave, unrecorded)

    async def _guard(
        self, arguments: object, call_id: str | None, on_output: OnOutput | None, answer: Answer | None
    ) -> ToolOutput:
        """Let calls through the gate one at a time, and turn whatever it raises into text (contract H4)."""
        with tool_span(self.name, call_id) as span:
            await self._turnstile.enter()
            try:
                output = await self._pass(arguments, call_id, on_output, answer)
            except Refused as refused:
                output = self._refusal(refused, call_id)
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
                self._turnstile.leave()
            span.record(output.result, is_error=output.is_error)
            return output

    # -- its steps -------------------------------------------------------------------------------------

    def _placed(self, wanted: Arguments) -> Arguments:
        """Make the directory absolute, as the executor would: what is judged and shown is what is used."""
        if wanted.workdir is None:
            return wanted
        root = os.fsdecode(self._runner.confinement.root)
        path = os.path.normpath(os.path.join(root, os.path.expanduser(wanted.workdir)))
        return attrs.evolve(wanted, workdir=path)

    def _judge(self, wanted: Arguments) -> Judgement:
        judgement = self._policy.judge(wanted.command, dialect=self._runner.family)
        if judgement.verdict is Verdict.DENY:
            denied = [finding for finding in judgement.findings if finding.verdict is Verdict.DENY]
            because = "; ".join(f"`{each.segment.text[:200]}`: {each.reason or each.rule}" for each in denied[:5])
            raise Refused(
                f"Not run: the policy denies it. {displayed(because, _SHOWN)}",
                _rules("policy", judgement),
                self._request(wanted, judgement),
            )
        return judgement

    def _request(self, wanted: Arguments, judgement: Judgement) -> ApprovalRequest:
        reasons = "; ".join(judgement.reasons[:5]) if self._has_policy and self.approval == "policy" else ""
        return ApprovalRequest.of(
            secrets.token_hex(16),
            wanted.command,
            judgement,
            dialect=self._runner.family,
            workdir=wanted.workdir or self._runner.workdir,
            shell=self._runner.family,
            isolation=self._runner.isolation,
            reason=displayed(reasons, _SHOWN) if reasons else "every command is approved by a person",
        )

    async def _approve(self, wanted: Arguments, judgement: Judgement, answer: Answer | None) -> Leave:
        if answer is None and not self._approval.needed(judgement):
            return Leave(_rules("policy", judgement) if self._has_policy else "approval=never")
        return await self._approval.decide(self._request(wanted, judgement), judgement, answer)

    def _edited(self, asked: Arguments, leave: Leave) -> Arguments:
        """Return what may run. A person may approve what the policy asks about, not what it denies."""
        if leave.command is None:
            return asked
        edited = attrs.evolve(asked, command=leave.command)
        self._judge(edited)
        return edited

    def _confine(self, wanted: Arguments, judgement: Judgement) -> None:
        confinement = self._runner.confinement
        if wanted.workdir is not None and not confinement.admits(os.fsencode(wanted.workdir)):
            raise Refused(
                f"Not run: workdir {displayed(wanted.workdir, 200)} is outside {os.fsdecode(confinement.root)}; "
                "name a directory inside, or null.",
                "confinement",
                self._request(wanted, judgement),
            )

    def _timeout(self, wanted: float | None) -> float:
        seconds = self._runner.timeout if wanted is None else wanted
        return self.max_timeout if seconds is None else min(seconds, self.max_timeout)

    def _rendered(self, result: ShellResult, wanted: Arguments, leave: Leave, unrecorded: str) -> ToolOutput:
        notes = [unrecorded] if unrecorded else []
        if leave.command is not None:
            notes.append(f"Whoever approved it changed the command; this ran: {displayed(leave.command, _SHOWN)}")
        if wanted.timeout is not None and wanted.timeout > self.max_timeout:
            notes.append(f"The time-out was reduced from {wanted.timeout:g} s to the most, {self.max_timeout:g} s.")
        if notes:
            result = attrs.evolve(result, notes=(*result.notes, *notes))
        return ToolOutput(text=result.for_model(), result=result)

    # -- audit -----------------------------------------------------------------------------------------

    def _record(self, command: str, workdir: str | None, call_id: str | None, **decision: Any) -> AuditEntry | None:
        if self._audit is None:
            return None
        return self._audit.before(
            command,
            tool=self.name,
            executor=type(self._runner).__name__,
            session=self._session,
            call_id=call_id or "",
            workdir=workdir or self._runner.workdir,
            **decision,
        )

    def _record_outcome(self, entry: AuditEntry | None, outcome: ShellResult | BaseException) -> str:
        """Record what came of a command, and return what the model must be told if that failed.

        The command has run: raising would hide what it did, or turn a cancellation into something else.
        """
        try:
            if self._audit is not None and entry is not None:
                self._audit.after(entry, outcome)
        except Exception as error:  # noqa: BLE001  (see above)
            _log.exception("the outcome of a command is not in the audit log")
            return f"What came of the command could not be recorded, so no other will run; tell the user: {error}"
        return ""

    def _refusal(self, refused: Refused, call_id: str | None) -> ToolOutput:
        text, request = str(refused), refused.request
        try:
            self._record(
                request.command, request.workdir, call_id, decision="refused", decided_by=refused.by, reason=text
            )
        except Exception:  # noqa: BLE001  (nothing runs, and the model must learn why)
            _log.exception("a refusal is not in the audit log")
        return ToolOutput(text=text, is_error=True)


def _rules(by: str, judgement: Judgement) -> str:
    """Return who decided: the policy, by its rules that share the verdict."""
    rules = dict.fromkeys(f.rule for f in judgement.findings if f.verdict is judgement.verdict and f.rule)
    return f"{by}: {', '.join(list(rules)[:5])}" if rules else by
