"""Whether a command needs approval, and who gave or refused it. The gate calls `needed` and `decide`.

What was decided for a conversation is remembered here, and what was asked and not answered yet waits here. It knows
commands, never how to run one.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from ..errors import CommandDenied
from ..policy.approvals import ApprovalMemory, ApprovalRequest, Decision, PendingApprovals
from ..policy.base import Judgement, Verdict
from ..sessions.turnstile import Turnstile
from .approvers import Approver, approver_name
from .base import Refused

__all__ = ["Answer", "Approval", "ApprovalMode", "Leave"]

_log = logging.getLogger("shellkit")

ApprovalMode = Literal["always", "policy", "never"]


@attrs.frozen
class Answer:
    """What a framework brings back to `ShellTool.resume`, unchecked.

    Attributes:
        request: what was shown to the person, or its `to_dict()`.
        decision: what they answered: a `Decision`, its `to_dict()`, or a bool.
        approver: who answered, for the audit log; "" if nobody says.
    """

    request: object
    decision: object
    approver: str = ""

    @property
    def by(self) -> str:
        """Who answered, in the words of the audit log."""
        return f"approver {self.approver} (resumed)" if self.approver else "approver (resumed)"


@attrs.frozen
class Leave:
    """That a command may run.

    Attributes:
        by: who says so, for the audit log.
        reason: why, in the person's words.
        command: what may run instead of what was asked for, or None.
    """

    by: str
    reason: str = ""
    command: str | None = None


class Approval:
    """The approvals of one tool, which is one conversation.

    Args:
        mode: "always", "policy" or "never".
        approver: who is asked; None refuses what needs approval.
    """

    def __init__(self, mode: ApprovalMode, approver: Approver | None) -> None:
        self.mode: ApprovalMode = mode
        self.approver = approver
        self._memory = ApprovalMemory()
        self._pending = PendingApprovals()
        self._turnstile = Turnstile()

    def needed(self, judgement: Judgement) -> bool:
        """Return whether a command with this judgement must be approved; what is denied is not asked about."""
        return self.mode == "always" or (self.mode == "policy" and judgement.verdict is not Verdict.ALLOW)

    def wait_for(self, request: ApprovalRequest, judgement: Judgement) -> ApprovalRequest | None:
        """Return the request, good for one answer; None if it needs none."""
        if not self.needed(judgement) or self._memory.recall(request, judgement) is not None:
            return None
        return self._pending.add(request)

    async def decide(self, request: ApprovalRequest, judgement: Judgement, answer: Answer | None) -> Leave:
        """Return the leave to run what `request` asks for.

        Args:
            request: made from the call that is at the gate.
            judgement: the policy's.
            answer: what was answered before, for a call that was interrupted; then nobody is asked.

        Raises:
            Refused: there is none.
        """
        if answer is not None:
            return self._settle(request, judgement, self._answered(request, answer), answer.by)
        if (leave := self._recall(request, judgement)) is not None:
            return leave
        # A person is asked one question at a time, and what they answer may settle the next one.
        if waited := not self._turnstile.try_enter():
            await self._turnstile.enter()
        try:
            if waited and (leave := self._recall(request, judgement)) is not None:
                return leave
            return self._settle(request, judgement, *await self._ask(request))
        finally:
            self._turnstile.leave()

    def _recall(self, request: ApprovalRequest, judgement: Judgement) -> Leave | None:
        recalled = self._memory.recall(request, judgement)
        return None if recalled is None else self._leave(request, recalled, f"memory ({recalled.scope})")

    def _settle(self, request: ApprovalRequest, judgement: Judgement, decision: Decision, by: str) -> Leave:
        try:
            self._memory.remember(request, decision, judgement)
        except ValueError as error:  # a prefix that would not clear this command: good for once
            _log.warning("an approval was not remembered: %s", error)
        return self._leave(request, decision, by)

    def _leave(self, request: ApprovalRequest, decision: Decision, by: str) -> Leave:
        if not decision.approved:
            reason = f" The reason: {decision.reason.rstrip('.')}." if decision.reason else ""
            raise Refused(
                f"Not run: it was refused.{reason} Do not send it again; do it another way, or ask.", by, request
            )
        if decision.command is None:
            return Leave(by, decision.reason)
        return Leave(f"{by}, who edited it", decision.reason, decision.command)

    async def _ask(self, request: ApprovalRequest) -> tuple[Decision, str]:
        if self.approver is None:
            raise Refused(
                f"Not run: it needs approval ({request.reason}), and nobody is there to give it. "
                "Do it another way, or tell the user what you would run.",
                "no approver",
                request,
            )
        by = f"approver {approver_name(self.approver)}"
        try:
            answer: object = self.approver(request)
            if not inspect.isawaitable(answer):
                raise TypeError("an approver is awaited; wrap a plain function in shellkit.tool.Callback")
            return _checked(await answer), by
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled the call: the approver gave up its own waiting (a closed window, a cancelled future).
            raise Refused("Not run: asking for approval was broken off. Ask again later.", by, request) from error
        except Exception as error:
            _log.exception("%s failed; the command was refused", by)
            raise Refused(
                f"Not run: asking for approval failed ({type(error).__name__}). Tell the user; do not retry at once.",
                f"{by} failed",
                request,
            ) from error

    def _answered(self, request: ApprovalRequest, answer: Answer) -> Decision:
        try:
            asked = _request(answer.request)
            self._pending.settle(asked)
            if (asked.command, *asked.key) != (request.command, *request.key):
                raise CommandDenied("what was approved is another command, or for another directory; ask again")
            return _checked(answer.decision, bools=True)
        except (CommandDenied, TypeError, ValueError) as error:
            raise Refused(f"Not run: {error}.", "approval", request) from error


def _request(value: object) -> ApprovalRequest:
    if isinstance(value, ApprovalRequest):
        return value
    if isinstance(value, Mapping):
        return ApprovalRequest.from_dict(dict(value))
    raise TypeError(f"an approval request is what approval_request() returned, not {type(value).__name__}")


def _checked(value: Any, *, bools: bool = False) -> Decision:
    """Return a decision that may be trusted to be one: "no" and 1 are true, too, and approve nothing here."""
    if bools and isinstance(value, bool):
        return Decision(approved=value)
    if bools and isinstance(value, Mapping):
        value = Decision.from_dict(dict(value))
    if (
        not isinstance(value, Decision)
        or not isinstance(value.approved, bool)
        or not isinstance(value.reason, str)
        or not isinstance(value.command, str | None)
    ):
        raise TypeError(f"an approver answers with a Decision, not {type(value).__name__} {str(value)[:80]!r}")
    return value
