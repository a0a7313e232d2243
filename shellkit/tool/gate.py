"""`Gate`: the steps that a call passes on its way, and what all tools of one conversation share.

`Tool._pass` calls the steps in their order (contract H2). Each lets the call through, or raises `Refused` with text
that the model can act on. Nothing here runs a command.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from functools import lru_cache, partial
from typing import TypeVar, get_args

import attrs

from ..audit import AuditEntry, AuditLog
from ..policy.approvals import ApprovalRequest, displayed
from ..policy.base import Judgement, Policy, Verdict
from ..policy.rules import RulePolicy
from ..process.update import ProcessUpdate
from ..result import ShellResult
from .approval import Answer, Approval, ApprovalMode, Leave
from .approvers import Approver
from .base import Refused, Runner, Wanted

__all__ = ["SHOWN", "Gate"]

_log = logging.getLogger("shellkit")

Asked = TypeVar("Asked", bound=Wanted)

_SHORT = 4096  # characters of a command whose judgement is kept
_UNEXPLAINED = "It gives no reason; do it another way, or ask the user."
SHOWN = 1000  # characters of a reason: a command of 1 MB has as long a list of reasons


class Gate:
    """The gate of one conversation; `ShellTool` says what the arguments mean.

    Raises:
        TypeError: the policy or the approver is none.
        ValueError: the combination is unsafe or impossible; the message names the remedy.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        approval: ApprovalMode,
        approver: Approver | None,
        policy: Policy | None,
        acknowledge_unsafe: bool,
        audit: AuditLog | str | os.PathLike[str] | None,
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
        if policy is not None and not isinstance(policy, Policy):
            raise TypeError(
                f"policy must be one such as shellkit.policy.READ_ONLY, not {type(policy).__name__}; "
                "shellkit.policy.loads(text, filename) makes one of a file"
            )
        if approver is not None and not callable(approver):
            raise TypeError(
                f"approver must be called with a request, as shellkit.tool.Callback(function) is, "
                f"not {type(approver).__name__}"
            )
        self.approval = Approval(approval, approver)
        self._runner = runner
        self._has_policy = policy is not None
        judge = (policy if policy is not None else RulePolicy(rules=())).judge
        self._judge = partial(judge, dialect=runner.family)
        # A policy is a value, and a framework that stops for approval has the same command judged two or three times.
        self._judge_short = lru_cache(maxsize=32)(self._judge)
        self._audit = audit if audit is None or isinstance(audit, AuditLog) else AuditLog(audit)
        self._session = secrets.token_hex(8)
        self._seal = secrets.token_bytes(32)

    # -- the steps, in their order ---------------------------------------------------------------------

    def placed(self, wanted: Asked) -> Asked:
        """Make the directory absolute, as the executor would: what is judged and shown is what is used."""
        if wanted.workdir is None:
            return wanted
        root = os.fsdecode(self._runner.confinement.root)
        path = os.path.normpath(os.path.join(root, os.path.expanduser(wanted.workdir)))
        return attrs.evolve(wanted, workdir=path)

    def judge(self, wanted: Wanted) -> Judgement:
        """Return what the policy says.

        Raises:
            Refused: it denies the command.
        """
        # What is secret is not kept.
        judge = self._judge_short if len(wanted.judged) <= _SHORT and not wanted.hidden else self._judge
        judgement = judge(wanted.judged)
        if wanted.reader:
            return self._judge_typing(wanted, judgement)
        if judgement.verdict is Verdict.DENY:
            raise self._denial(wanted, judgement)
        return judgement

    def request(self, wanted: Wanted, judgement: Judgement) -> ApprovalRequest:
        """Return what a person would be asked."""
        if wanted.reader:
            # Its reader may be no shell: two spellings that a shell reads alike are not the same here.
            return ApprovalRequest(
                id=secrets.token_hex(16),
                command=wanted.command,
                canonical=self._sealed(wanted.judged) if wanted.hidden else wanted.command,
                shell=wanted.reader,
                isolation=self._runner.isolation,
                reason="what is typed into a program is approved by a person",
                typed=True,
                secret=wanted.hidden,
            )
        reason = "every command is approved by a person"
        if self._has_policy and self.approval.mode == "policy":
            reason = displayed("; ".join(judgement.reasons[:5]) or "the policy asks about it", SHOWN)
        family = self._runner.family
        return ApprovalRequest.of(
            secrets.token_hex(16),
            wanted.command,
            judgement,
            dialect=family,
            workdir=wanted.workdir or self._runner.workdir,
            shell=family,
            isolation=self._runner.isolation,
            reason=reason,
        )

    def asks(self, wanted: Wanted, judgement: Judgement) -> bool:
        """Return whether somebody must approve it."""
        return not wanted.granted and self.approval.needed(judgement)

    async def approve(self, wanted: Wanted, judgement: Judgement, answer: Answer | None) -> Leave:
        """Return the leave to go on.

        Raises:
            Refused: there is none.
        """
        if answer is None and not self.asks(wanted, judgement):
            decided = _rules("policy", judgement) if self._has_policy and not wanted.reader else "approval=never"
            return Leave(wanted.granted or decided)
        return await self.approval.decide(self.request(wanted, judgement), judgement, answer)

    def confine(self, wanted: Wanted, judgement: Judgement) -> None:
        """Let only a directory pass that the executor is confined to.

        Raises:
            Refused: it lies outside.
        """
        confinement = self._runner.confinement
        if wanted.workdir is not None and not confinement.admits(os.fsencode(wanted.workdir)):
            raise Refused(
                f"Not run: workdir {displayed(wanted.workdir, 200)} is outside {os.fsdecode(confinement.root)}; "
                "name a directory inside, or null.",
                "confinement",
                self.request(wanted, judgement),
            )

    def record(self, tool: str, wanted: Wanted, call_id: str | None, leave: Leave) -> AuditEntry | None:
        """Write to the audit log what is about to run.

        Raises:
            AuditError: that failed, so it must not run.
        """
        if self._audit is None:
            return None
        return self._audit.before(
            wanted.command,
            decision="allowed",
            decided_by=leave.by,
            reason=leave.reason,
            workdir=wanted.workdir or (None if wanted.reader else self._runner.workdir),
            reader=wanted.reader,
            tool=tool,
            call_id=call_id or "",
            **self._who(),
        )

    def record_outcome(self, entry: AuditEntry | None, outcome: object) -> str:
        """Write what came of it, and return what the model must be told if that failed.

        The command has run: raising would hide what it did, or turn a cancellation into something else.
        """
        try:
            if self._audit is not None and entry is not None:
                told = outcome if isinstance(outcome, (ShellResult, ProcessUpdate, BaseException)) else None
                self._audit.after(entry, told)
        except Exception as error:  # noqa: BLE001  (see above)
            _log.exception("the outcome of a command is not in the audit log")
            return f"What came of the command could not be recorded, so no other will run; tell the user: {error}"
        return ""

    def record_refusal(self, tool: str, refused: Refused, call_id: str | None) -> None:
        """Write what did not run, and why."""
        request = refused.request
        try:
            if self._audit is not None:
                self._audit.before(
                    request.command,
                    decision="refused",
                    decided_by=refused.by,
                    reason=str(refused),
                    workdir=request.workdir,
                    reader="" if request.shell == self._runner.family else request.shell,
                    tool=tool,
                    call_id=call_id or "",
                    **self._who(),
                )
        except Exception:  # noqa: BLE001  (nothing runs, and the model must learn why)
            _log.exception("a refusal is not in the audit log")

    # -- their parts -----------------------------------------------------------------------------------

    def _sealed(self, secret: str) -> str:
        """Return what is the same for the same secret, here only, and tells nothing about it."""
        # Another secret of the same length is another text: its approval is not remembered for it, nor good for it.
        return hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=self._seal).hexdigest()

    def _judge_typing(self, wanted: Wanted, judgement: Judgement) -> Judgement:
        # What reads the text may be no shell, so the policy's silence means nothing. A rule that denies still holds:
        # a shell is what models start most.
        if any(finding.rule and finding.verdict is Verdict.DENY for finding in judgement.findings):
            raise self._denial(wanted, judgement)
        return Judgement(verdict=Verdict.ASK)

    def _denial(self, wanted: Wanted, judgement: Judgement) -> Refused:
        denied = [finding for finding in judgement.findings if finding.verdict is Verdict.DENY]
        because = "; ".join(
            f"`{'(not shown)' if wanted.hidden else each.segment.text[:200]}`: {each.reason or each.rule}"
            for each in denied[:5]
        )
        return Refused(
            f"Not run: the policy denies it. {displayed(because or _UNEXPLAINED, SHOWN)}",
            _rules("policy", judgement),
            self.request(wanted, judgement),
        )

    def _who(self) -> dict[str, str]:
        return {"executor": type(self._runner).__name__, "session": self._session}


def _rules(by: str, judgement: Judgement) -> str:
    """Return who decided: the policy, by its rules that share the verdict."""
    rules = dict.fromkeys(f.rule for f in judgement.findings if f.verdict is judgement.verdict and f.rule)
    return f"{by}: {', '.join(list(rules)[:5])}" if rules else by
