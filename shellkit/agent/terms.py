"""What a sub-agent works under: the terms of the agent that started it, or stricter ones.

The broker keeps the terms of every agent of the tree and lends them on; `parent` reads them in the sub-agent's
process; the command line turns them into an executor and a tool.
"""

from __future__ import annotations

import os
import reprlib
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import attrs
from attrs.validators import optional

from ..errors import ShellkitError
from ..policy.confinement import Confinement, ConfinementMode
from ..tool import TypingMode
from .briefing import Api

__all__ = ["AgentRefused", "Approve", "Invitation", "Terms"]

Approve = Literal["ask", "policy", "never"]

#: From lax to strict.
_STRICTNESS: tuple[Approve, ...] = ("never", "policy", "ask")
_TYPING_STRICTNESS: tuple[TypingMode, ...] = ("never", "first", "always")


class AgentRefused(ShellkitError):
    """A sub-agent may not start; the message says why and what to do instead."""


def _text(_: Terms, field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{field.name!r} must be text, and not {reprlib.repr(value)}")


def _path(terms: Terms, field: attrs.Attribute[Any], value: object) -> None:
    _text(terms, field, value)
    path = str(value)
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        path = ""
    if not os.path.isabs(path) or "\0" in path:
        raise ValueError(f"{field.name!r} must be an absolute path, and not {reprlib.repr(value)}")


def _count(_: Terms, field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TypeError(f"{field.name!r} must be a whole number from 1, and not {reprlib.repr(value)}")


def _one_of(kind: object) -> Callable[[Any, attrs.Attribute[Any], object], None]:
    def check(_: Terms, field: attrs.Attribute[Any], value: object) -> None:
        if value not in get_args(kind):
            words = ", ".join(map(repr, get_args(kind)))
            raise ValueError(f"{field.name!r} must be one of {words}, and not {reprlib.repr(value)}")

    return check


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

    model: str = attrs.field(validator=_text)
    api: Api = attrs.field(default="responses", validator=_one_of(Api))
    approve: Approve = attrs.field(default="ask", validator=_one_of(Approve))
    typing: TypingMode = attrs.field(default="always", validator=_one_of(TypingMode))
    policy: str | None = attrs.field(default=None, validator=optional(_text))
    audit: str | None = attrs.field(default=None, validator=optional(_path))
    log: str | None = attrs.field(default=None, validator=optional(_path))
    workdir: str = attrs.field(validator=_path)
    confinement: ConfinementMode = attrs.field(default="off", validator=_one_of(ConfinementMode))
    environment: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    max_turns: int = attrs.field(default=50, validator=_count)
    max_tokens: int | None = attrs.field(default=None, validator=optional(_count))

    def lend(self, **asked: Any) -> Terms:
        """Return the terms of a sub-agent that asks for something else than its parent has.

        Args:
            asked: fields of this class, but the environment; None asks for nothing.

        Raises:
            AgentRefused: it would be laxer than its parent.
            TypeError, ValueError: there is no such field, or it cannot have this value; the text names it.
        """
        given = {name: value for name, value in asked.items() if value is not None}
        if unknown := given.keys() - {field.name for field in attrs.fields(Terms)} | given.keys() & {"environment"}:
            raise TypeError(f"there is no field {reprlib.repr(min(unknown))} to ask for; leave it out")
        wanted = attrs.evolve(self, **given)
        if _STRICTNESS.index(wanted.approve) < _STRICTNESS.index(self.approve):
            raise _laxer("approve", wanted.approve, self.approve)
        if _TYPING_STRICTNESS.index(wanted.typing) < _TYPING_STRICTNESS.index(self.typing):
            raise _laxer("typing", wanted.typing, self.typing)
        if wanted.policy != self.policy and (self.policy is not None or self.approve == "policy"):
            raise AgentRefused("a sub-agent works under the policy of its parent; leave --policy out")
        if self.audit is not None and wanted.audit != self.audit:
            raise AgentRefused("a sub-agent's commands are recorded where its parent's are; leave --audit out")
        if wanted.confinement == "off" and self.confinement != "off":
            raise AgentRefused("a sub-agent is confined as its parent is; leave --confinement off out")
        own = Confinement(self.confinement, os.fsencode(self.workdir), os.path.realpath)
        if not own.admits(os.fsencode(wanted.workdir)):
            raise AgentRefused(f"a sub-agent works below {self.workdir}, as its parent does; go there first")
        return attrs.evolve(wanted, max_tokens=min(filter(None, (wanted.max_tokens, self.max_tokens)), default=None))

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
