"""`ShellTool`: what a model gets of an executor, and the gate that every call goes through (contract H).

The gate is `_pass`: validate -> policy -> approval -> confinement -> audit -> run -> audit -> render. Nothing else
is in it. Whatever goes wrong on the way comes back as text that the model can act on; only cancellation is raised.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Mapping
from typing import Any, Literal, get_args

import attrs

from ..audit import AuditEntry, AuditLog
from ..environment.base import ShellEnvironment
from ..environment.probe import EnvironmentProbe
from ..errors import ShellkitError
from ..policy.approvals import ApprovalMemory, ApprovalRequest, Decision, PendingApprovals
from ..policy.base import Judgement, Policy, Verdict
from ..policy.rules import RulePolicy
from ..result import ShellResult
from ..telemetry import tool_span
from .approvers import Approver
from .base import Runner, ToolOutput
from .describe import ToolFacts, description
from .schema import Arguments, InvalidArguments, parameters, parse

__all__ = ["ApprovalMode", "ShellTool"]

_log = logging.getLogger("shellkit")

ApprovalMode = Literal["always", "policy", "never"]


class _Refused(Exception):
    """The gate stays shut; the message tells the model why. `why` is what the audit log says decided."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


@attrs.frozen
class _Cleared:
    """What may run, and by whose leave."""

    arguments: Arguments
    decided_by: str


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
        if approval == "never" and runner.isolation == "none" and not acknowledge_unsafe:
            raise ValueError(
                "approval='never' lets a model do whatever this user may do, and this executor isolates nothing; pass "
                "acknowledge_unsafe=True if that is what you want, or give a policy and approval='policy'"
            )
        if approval == "policy" and policy is None:
            raise ValueError("approval='policy' needs policy=..., for example shellkit.policy.READ_ONLY")
        if isinstance(max_timeout, bool) or not isinstance(max_timeout, (int, float)) or not max_timeout > 0:
            raise ValueError(f"max_timeout must be a positive number of seconds, not {max_timeout!r}")
        self.name = name
        self.approval: ApprovalMode = approval
        self.max_timeout = float(max_timeout)
        self._runner = runner
        self._description = description
        self._approver = approver
        self._has_policy = policy is not None
        self._policy: Policy = policy if policy is not None else RulePolicy(rules=())
        self._audit = audit if audit is None or isinstance(audit, AuditLog) else AuditLog(audit)
        self._memory = ApprovalMemory()
        self._pending = PendingApprovals()
        self._session = secrets.token_hex(8)
        facts = runner.facts()
        self._probe = EnvironmentProbe(runner, facts.family, mode=facts.mode, confinement=facts.confinement)

    # -- what a framework shows to the model -----------------------------------------------------------

    @property
    def description(self) -> str:
        """What the tool tells the model about itself; more exact once `probe` has asked the shell."""
        if self._description is not None:
            return self._description
        facts = ToolFacts(
            timeout=self._runner.timeout,
            max_timeout=self.max_timeout,
            max_output_bytes=self._runner.max_output_bytes,
            approval=self.approval,
            isolated=self._runner.isolation != "none",
        )
        return description(self._probe.known or self._runner.facts(), facts)

    @property
    def parameters(self) -> dict[str, Any]:
        """The strict JSON schema of the arguments."""
        return parameters()

    async def probe(self) -> ShellEnvironment:
        """Ask the shell what it is, once; the description is made from the answer."""
        return await self._probe.get()

    # -- calling ---------------------------------------------------------------------------------------

    async def call(self, arguments: object, *, call_id: str | None = None) -> ToolOutput:
        """Run what a model asked for, if it may run.

        Args:
            arguments: the model's arguments: a JSON object as text, or a mapping.
            call_id: the framework's id of the call, for the audit log and traces.

        Returns:
            What to tell the model. Refusals, wrong arguments and a shell that cannot start come back as text.

        Raises:
            asyncio.CancelledError: the calling task was cancelled; nothing else.
        """
        return await self._guard(arguments, call_id, None)

    async def approval_request(self, arguments: object) -> ApprovalRequest | None:
        """Return what a person must approve before `call` would run this; None if nobody is asked.

        For frameworks that stop and go on later: show `request.to_dict()`, then `resume` with the answer. It has no
        side effect but to make the request good for one `resume`, so it may be called as often as a framework likes.
        A call that would be refused anyway needs no approval either: `call` says why.
        """
        try:
            wanted = parse(arguments)
            judgement = self._judge(wanted)
        except (InvalidArguments, _Refused):
            return None
        request = self._request(wanted, judgement)
        if not self._must_ask(judgement) or self._memory.recall(request, judgement) is not None:
            return None
        self._pending.add(request)
        return request

    async def resume(
        self,
        request: ApprovalRequest | Mapping[str, Any],
        decision: Decision | bool,
        arguments: object,
        *,
        call_id: str | None = None,
    ) -> ToolOutput:
        """Run what was approved: exactly that, here, and once.

        Args:
            request: what `approval_request` returned, or its `to_dict()`.
            decision: the answer.
            arguments: the call's arguments, as they were given to `approval_request`.
            call_id: as in `call`.
        """
        try:
            if not isinstance(request, ApprovalRequest):
                request = ApprovalRequest.from_dict(dict(request))
            request = self._pending.settle(request.id, request.digest)
        except (ShellkitError, ValueError) as error:
            return await self._guard(arguments, call_id, _Refused(f"Not run: {error}.", "approval"))
        answer = decision if isinstance(decision, Decision) else Decision(approved=decision)
        return await self._guard(arguments, call_id, (request, answer))

    # -- the gate --------------------------------------------------------------------------------------

    async def _guard(
        self, arguments: object, call_id: str | None, answered: tuple[ApprovalRequest, Decision] | _Refused | None
    ) -> ToolOutput:
        """Turn whatever the gate raises into text (contract H4)."""
        with tool_span(self.name, call_id) as span:
            try:
                try:
                    output = await self._pass(arguments, call_id, answered)
                except _Refused as refused:
                    output = self._refusal(refused, arguments, call_id)
            except InvalidArguments as error:
                output = ToolOutput(text=str(error), is_error=True)
            except ShellkitError as error:
                output = ToolOutput(text=f"Not run, or not to its end: {error}", is_error=True)
            except Exception as error:
                _log.exception("the shell tool failed")
                output = ToolOutput(text=f"The shell tool failed: {type(error).__name__}: {error}", is_error=True)
            span.record(output.result, is_error=output.is_error)
            return output

    async def _pass(
        self, arguments: object, call_id: str | None, answered: tuple[ApprovalRequest, Decision] | _Refused | None
    ) -> ToolOutput:
        if isinstance(answered, _Refused):
            raise answered
        wanted = parse(arguments)
        judgement = self._judge(wanted)
        cleared = await self._approve(wanted, judgement, answered)
        workdir = self._confine(cleared.arguments)
        command, who = cleared.arguments.command, cleared.decided_by
        entry = self._record(command, workdir, call_id, decision="allowed", decided_by=who)
        timeout, note = self._limit(cleared.arguments)
        try:
            result = await self._runner.run(command, timeout=timeout, workdir=workdir)
        except BaseException as error:
            self._record_outcome(entry, error)
            raise
        self._record_outcome(entry, result)
        return ToolOutput(text="\n".join([result.for_model(), *note]), result=result)

    # -- its steps -------------------------------------------------------------------------------------

    def _judge(self, wanted: Arguments) -> Judgement:
        judgement = self._policy.judge(wanted.command, dialect=self._runner.family)
        if judgement.verdict is Verdict.DENY:
            raise _Refused(f"Not run: the policy denies it. {_because(judgement)}", "policy")
        return judgement

    def _must_ask(self, judgement: Judgement) -> bool:
        if self.approval == "policy":
            return judgement.verdict is not Verdict.ALLOW
        return self.approval == "always"

    def _request(self, wanted: Arguments, judgement: Judgement) -> ApprovalRequest:
        reason = " ".join(judgement.reasons) if self._has_policy and self.approval == "policy" else ""
        return ApprovalRequest.of(
            secrets.token_hex(16),
            wanted.command,
            judgement,
            dialect=self._runner.family,
            workdir=wanted.workdir or self._runner.workdir,
            shell=self._runner.family,
            isolation=self._runner.isolation,
            reason=reason or "every command is approved by a person",
        )

    async def _approve(
        self, wanted: Arguments, judgement: Judgement, answered: tuple[ApprovalRequest, Decision] | None
    ) -> _Cleared:
        if not self._must_ask(judgement):
            return _Cleared(wanted, "policy" if self._has_policy else "approval=never")
        request = self._request(wanted, judgement)
        if answered is not None:
            asked, decision = answered
            if (asked.command, asked.workdir, asked.shell) != (request.command, request.workdir, request.shell):
                raise _Refused("Not run: this is not the command, or not the place, that was approved.", "approval")
        elif (recalled := self._memory.recall(request, judgement)) is not None:
            return self._decided(wanted, recalled, "memory")
        else:
            decision = await self._ask(request)
        self._remember(request, decision, judgement)
        return self._decided(wanted, decision, "approver")

    def _decided(self, wanted: Arguments, decision: Decision, who: str) -> _Cleared:
        if not decision.approved:
            reason = f" The reason: {decision.reason}." if decision.reason else ""
            raise _Refused(f"Not run: refused.{reason} Do not try the same command again; ask or do something else.", who)
        if decision.command is None:
            return _Cleared(wanted, who)
        edited = attrs.evolve(wanted, command=decision.command)
        self._judge(edited)  # a person may approve what the policy asks about, not what it denies
        return _Cleared(edited, f"{who} (edited)")

    async def _ask(self, request: ApprovalRequest) -> Decision:
        if self._approver is None:
            raise _Refused("Not run: the command needs approval, and nobody is there to give it.", "no approver")
        try:
            decision = await self._approver(request)
        except Exception as error:
            _log.exception("the approver failed; the command was refused")
            raise _Refused(f"Not run: asking for approval failed ({type(error).__name__}).", "approver failed") from error
        if not isinstance(decision, Decision):
            raise _Refused("Not run: the approver gave no decision.", "approver failed")
        return decision

    def _remember(self, request: ApprovalRequest, decision: Decision, judgement: Judgement) -> None:
        try:
            self._memory.remember(request, decision, judgement)
        except ValueError as error:  # a prefix that would not clear this command: good for once
            _log.warning("an approval was not remembered: %s", error)

    def _confine(self, wanted: Arguments) -> str | None:
        if wanted.workdir is None:
            return None
        confinement = self._runner.confinement
        path = os.path.join(os.fsdecode(confinement.root), wanted.workdir)
        if not confinement.admits(os.fsencode(path)):
            raise _Refused(
                f"Not run: workdir {wanted.workdir} is outside {os.fsdecode(confinement.root)}; name one inside.",
                "confinement",
            )
        return path

    def _limit(self, wanted: Arguments) -> tuple[float | None, list[str]]:
        timeout = self._runner.timeout if wanted.timeout is None else wanted.timeout
        if timeout is not None and timeout <= self.max_timeout:
            return timeout, []
        if wanted.timeout is None:
            return self.max_timeout, []
        return self.max_timeout, [f"[note: timeout was reduced from {timeout:g} s to {self.max_timeout:g} s, the most]"]

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

    def _record_outcome(self, entry: AuditEntry | None, outcome: ShellResult | BaseException) -> None:
        if self._audit is not None and entry is not None:
            self._audit.after(entry, outcome)

    def _refusal(self, refused: _Refused, arguments: object, call_id: str | None) -> ToolOutput:
        try:
            command = parse(arguments).command
        except InvalidArguments:
            command = ""
        self._record(command, None, call_id, decision="refused", decided_by=refused.why, reason=str(refused))
        return ToolOutput(text=str(refused), is_error=True)


def _because(judgement: Judgement) -> str:
    reasons = [
        f"{finding.segment.text[:200]}: {finding.reason or finding.rule}"
        for finding in judgement.findings
        if finding.verdict is Verdict.DENY
    ]
    return " ".join(reasons)
