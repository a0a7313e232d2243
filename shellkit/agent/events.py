"""What happens in a conversation, as values: a user interface is built on these alone. Pure.

`Agent.run` yields them in the order in which things happen.
"""

from __future__ import annotations

from typing import Literal

import attrs

from ..policy.approvals import ApprovalRequest, Decision
from ..sessions.base import StreamName
from ..tool import ToolOutput

__all__ = [
    "ApprovalAsked",
    "ApprovalGiven",
    "CallFinished",
    "CallRequested",
    "Event",
    "Message",
    "OutputChunk",
    "StopReason",
    "Stopped",
    "TextDelta",
    "Usage",
]

StopReason = Literal["done", "turns", "tokens", "cancelled", "error"]


@attrs.frozen(kw_only=True)
class TextDelta:
    """A piece of what the model says, as it comes; only when streaming. The whole follows as a `Message`."""

    text: str


@attrs.frozen(kw_only=True)
class Message:
    """What the model said in one reply."""

    text: str


@attrs.frozen(kw_only=True)
class CallRequested:
    """The model wants something to be run.

    Attributes:
        call_id: the model's id of the call.
        name: the tool: the function's name, "shell" or "local_shell".
        commands: the commands in order, or what would be typed; empty if the call is malformed, or of neither kind.
            What is typed while a program asks for a password does not stand here.
        reader: what the call is about, where that is not the shell: "process 1: python3".
    """

    call_id: str
    name: str
    commands: tuple[str, ...]
    reader: str = ""


@attrs.frozen(kw_only=True)
class ApprovalAsked:
    """The tool's approver is about to be asked; `ApprovalGiven` follows."""

    call_id: str
    request: ApprovalRequest


@attrs.frozen(kw_only=True)
class ApprovalGiven:
    """The approver has answered, either way."""

    call_id: str
    decision: Decision


@attrs.frozen(kw_only=True)
class OutputChunk:
    """Output of the running command.

    Attributes:
        call_id: the call that the command is part of.
        stream: "stdout" or "stderr".
        text: decoded, raw.
        lost: characters left out before this, because whoever reads the events was too slow for them.
    """

    call_id: str
    stream: StreamName
    text: str
    lost: int = 0


@attrs.frozen(kw_only=True)
class CallFinished:
    """A command has ended or was refused. A call of several commands finishes once for each.

    Attributes:
        call_id: the call.
        output: what the model is told.
    """

    call_id: str
    output: ToolOutput


@attrs.frozen(kw_only=True)
class Usage:
    """The tokens of one reply, and of the conversation so far (what was charged for sub-agents included)."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0

    @property
    def total(self) -> int:
        """All tokens so far."""
        return self.total_input_tokens + self.total_output_tokens

    def plus(self, input_tokens: int, output_tokens: int) -> Usage:
        """Return the usage after one more reply."""
        return attrs.evolve(
            self.charged(input_tokens, output_tokens), input_tokens=input_tokens, output_tokens=output_tokens
        )

    def charged(self, input_tokens: int, output_tokens: int) -> Usage:
        """Return the usage with tokens added that were no reply's."""
        return attrs.evolve(
            self,
            total_input_tokens=self.total_input_tokens + input_tokens,
            total_output_tokens=self.total_output_tokens + output_tokens,
        )


@attrs.frozen(kw_only=True)
class Stopped:
    """The last event of a run.

    Attributes:
        reason: "done" (the model asks for nothing more), "turns" or "tokens" (a limit), "cancelled", "error".
        text: the last thing that the model said in this run.
        error: for "error", one line that names the remedy.
        misconfigured: whether the key, the base URL or the model's name is wrong, so that trying again is no use.
    """

    reason: StopReason
    text: str = ""
    error: str = ""
    misconfigured: bool = False


Event = (
    TextDelta | Message | CallRequested | ApprovalAsked | ApprovalGiven | OutputChunk | CallFinished | Usage | Stopped
)
