"""What the tool tells a model about itself, made from the environment that runs. Pure text."""

from __future__ import annotations

import attrs

from ..environment.base import ShellEnvironment

__all__ = ["ToolFacts", "description"]


@attrs.frozen(kw_only=True)
class ToolFacts:
    """What the description says beside the environment.

    Attributes:
        timeout: default time-out in seconds.
        max_timeout: the most that a model may ask for, in seconds.
        max_output_bytes: what is kept of each stream.
        approval: "always", "policy" or "never".
        isolated: whether the executor isolates.
        on_timeout: "kill" or "background".
    """

    timeout: float
    max_timeout: float
    max_output_bytes: int
    approval: str
    isolated: bool
    on_timeout: str


_APPROVAL = {
    "always": "A person approves every command before it runs; a refusal comes back as text with the reason.",
    "policy": "A policy decides which commands run, which a person must approve, and which are refused.",
    "never": "Commands run without a question.",
}


_TIMEOUT = {
    "kill": "- A command is stopped after {:g} s, or `timeout` seconds (at most {:g}).",
    "background": "- A command that has not ended after {:g} s, or `timeout` seconds (at most {:g}), runs on: the "
    "answer then holds a session_id, and write_stdin without chars waits for it.",
}


def description(environment: ShellEnvironment, facts: ToolFacts) -> str:
    """Return the tool's description for a model."""
    lines = [
        "Run a command in a shell and get its output and exit code.",
        environment.instructions(),
        _TIMEOUT[facts.on_timeout].format(facts.timeout, facts.max_timeout),
        f"- Output over {facts.max_output_bytes} bytes a stream keeps its beginning and its end.",
        "- Calls run one at a time, in order, and share the session.",
        f"- {_APPROVAL[facts.approval]}",
    ]
    if not facts.isolated:
        lines.append("- Nothing is isolated: commands act on the real machine as this user.")
    return "\n".join(lines)
