"""What a sub-agent works under: the terms of the agent that started it, or stricter ones.

The broker keeps the terms of every agent of the tree and lends them on; `parent` reads them in the sub-agent's
process; the command line turns them into an executor and a tool.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from ..errors import ShellkitError
from ..policy.confinement import Confinement, ConfinementMode
from ..tool import TypingMode

__all__ = ["AgentRefused", "Approve", "Invitation", "Terms"]

Approve = Literal["ask", "policy", "never"]

#: From lax to strict.
_STRICTNESS: tuple[Approve, ...] = ("never", "policy", "ask")
_TYPING_STRICTNESS: tuple[TypingMode, ...] = ("never", "first", "always")


class AgentRefused(ShellkitError):
    """A sub-agent may not start; the message says why and what to do instead."""


@attrs.frozen(kw_only=True)
class Terms:
    """What an agent works under. Its sub-agents work under the same, or under stricter ones.

    Attributes:
        model: which model.
        api: "responses" or "chat".
        approve: "ask" a person about every command, let the "policy" decide, or "never" ask.
        typing: which of the texts that are typed into programs need approval, too.
        policy: the text of the policy file, as it was when the first agent started; None for none of its own.
        audit: absolute path of the audit log, or None.
        log: absolute path of the file that the agents log to, or None.
        workdir: absolute path of where its shell starts.
        confinement: whether commands may leave that.
        environment: what the shell of the first agent got, for a sub-agent that starts afresh.
        max_turns: how often the model is asked in one task.
        max_tokens: how many tokens one agent may use; None for any number.
    """

    model: str
    api: Literal["responses", "chat"] = "responses"
    approve: Approve = attrs.field(default="ask", validator=attrs.validators.in_(_STRICTNESS))
    typing: TypingMode = attrs.field(default="always", validator=attrs.validators.in_(_TYPING_STRICTNESS))
    policy: str | None = None
    audit: str | None = None
    log: str | None = None
    workdir: str
    confinement: ConfinementMode = "off"
    environment: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    max_turns: int = 50
    max_tokens: int | None = None

    def lend(
        self,
        *,
        model: str | None = None,
        api: Literal["responses", "chat"] | None = None,
        approve: Approve | None = None,
        typing: TypingMode | None = None,
        policy: str | None = None,
        audit: str | None = None,
        log: str | None = None,
        workdir: str | None = None,
        confinement: ConfinementMode | None = None,
        max_turns: int | None = None,
        max_tokens: int | None = None,
    ) -> Terms:
        """Return the terms of a sub-agent that asks for something else than its parent has; None asks for nothing.

        Raises:
            AgentRefused: it would be laxer than its parent.
        """
        if approve is not None and _STRICTNESS.index(approve) < _STRICTNESS.index(self.approve):
            raise _laxer("approve", approve, self.approve)
        if typing is not None and _TYPING_STRICTNESS.index(typing) < _TYPING_STRICTNESS.index(self.typing):
            raise _laxer("typing", typing, self.typing)
        if policy is not None and policy != self.policy and (self.policy is not None or self.approve == "policy"):
            raise AgentRefused("a sub-agent works under the policy of its parent; leave --policy out")
        if audit is not None and self.audit is not None and audit != self.audit:
            raise AgentRefused("a sub-agent's commands are recorded where its parent's are; leave --audit out")
        if confinement == "off" and self.confinement != "off":
            raise AgentRefused("a sub-agent is confined as its parent is; leave --confinement off out")
        own = Confinement(self.confinement, os.fsencode(self.workdir), os.path.realpath)
        if workdir is not None and not own.admits(os.fsencode(workdir)):
            raise AgentRefused(f"a sub-agent works below {self.workdir}, as its parent does; go there first")
        return attrs.evolve(
            self,
            model=model or self.model,
            api=api or self.api,
            approve=approve or self.approve,
            typing=typing or self.typing,
            policy=policy or self.policy,
            audit=audit or self.audit,
            log=log or self.log,
            workdir=workdir or self.workdir,
            confinement=confinement or self.confinement,
            max_turns=max_turns or self.max_turns,
            max_tokens=min(filter(None, (max_tokens, self.max_tokens)), default=None),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return attrs.asdict(self)


def _laxer(option: str, asked: str, own: str) -> AgentRefused:
    return AgentRefused(
        f"a sub-agent may not be laxer than its parent, which has --{option} {own}; leave --{option} {asked} out"
    )


@attrs.frozen
class Invitation:
    """What the shell of an agent holds, so that sub-agents find the broker.

    Attributes:
        socket: path of the broker's socket.
        id: of the agent whose shell it is.
    """

    socket: str
    id: str

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Invitation | None:
        """Return the invitation in an environment; None where no agent has started this process."""
        socket, agent = environ.get("SHELLKIT_AGENT_SOCKET"), environ.get("SHELLKIT_AGENT")
        return cls(socket, agent) if socket and agent else None

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return what the shell's environment needs, `shellkit` within reach of its PATH included."""
        found = {"SHELLKIT_AGENT_SOCKET": self.socket, "SHELLKIT_AGENT": self.id}
        path = environ.get("PATH", os.defpath)
        if shutil.which("shellkit", path=path) is None:  # a virtual environment that is not active
            found["PATH"] = os.pathsep.join((path, sysconfig.get_path("scripts")))
        return found
