"""The words of the policy: a command is read into segments, each segment gets a finding, the strictest decides.

The gate of the tool calls `Policy.judge`; `shellkit policy check` prints what it returns. Nothing here or
below `shellkit.policy` touches the system: text goes in, values come out (contract H6). A policy guides a
model and spares a person needless questions. It is no boundary against a program that hides what it does;
that is what the sandbox is for.
"""

from __future__ import annotations

import enum
from typing import Protocol, runtime_checkable

import attrs

from ..errors import ShellkitError

__all__ = ["Clarity", "Finding", "Judgement", "Policy", "PolicyError", "Segment", "Verdict", "Word", "strictest"]


class PolicyError(ShellkitError, ValueError):
    """A policy cannot be used: the message names the file, the line and the remedy; nothing may run under it.

    Attributes:
        filename: where the policy came from, or None if it was built in Python.
        line: the line of the mistake, counted from 1, or None if it is not known.
    """

    def __init__(self, message: str, filename: str | None = None, line: int | None = None) -> None:
        self.filename = filename
        self.line = line
        where = ":".join(str(part) for part in (filename, line) if part is not None)
        super().__init__(f"{where}: {message}" if where else message)


@enum.unique
class Verdict(enum.IntEnum):
    """What may happen to a command. Ordered: the greater one is the stricter one, and wins."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    def __str__(self) -> str:
        return self._name_.lower()  # `name` is a property written in Python


@enum.unique
class Clarity(enum.IntEnum):
    """How far the text of a segment tells what will run.

    CLEAR: the words are what runs. INDIRECT: an interpreter runs a program that the text does not show
    (`python build.py`); only a rule that names more than the interpreter can allow it. OPAQUE: the text hides
    the command or changes what later words mean; nothing allows it.
    """

    CLEAR = 0
    INDIRECT = 1
    OPAQUE = 2


@attrs.frozen
class Word:
    """One word of a command, after quotes and escapes are resolved.

    Attributes:
        text: the word that the program gets; the source text where `known` is false.
        known: whether `text` is exactly what the program gets.
        operand: for a word that is not known: it cannot turn into an option or into several words that do.
        name: the part after the last slash where that is known (`$HOME/bin/rm` is called `rm`), else "".
    """

    text: str
    known: bool = True
    operand: bool = False
    name: str = ""

    @classmethod
    def of(cls, text: str) -> Word:
        """Return the known word `text`."""
        return cls(text, name=text.rsplit("/", 1)[-1])


@attrs.frozen(kw_only=True)
class Segment:
    """One thing that a command does: a simple command, an assignment, a redirection, or something hidden.

    Attributes:
        text: its source text (of a nested command: the text that contains it).
        words: the command's words; empty for an assignment or a redirection that stands alone.
        line: where it starts, counted from 1; a nested text counts from where the outer one starts.
        column: the same in characters of that line, counted from 1.
        clarity: how far `words` tells what will run.
        why: the reason if `clarity` is not CLEAR.
        writes: the targets of the redirections that write to a file or open a connection.
        launches: it starts one of its own words as a command, and which one is not known.
        via: what starts this command (`sudo`, `bash -c`), or "" if the shell does.
    """

    text: str
    words: tuple[Word, ...] = ()
    line: int = 1
    column: int = 1
    clarity: Clarity = Clarity.CLEAR
    why: str = ""
    writes: tuple[str, ...] = ()
    launches: bool = False
    via: str = ""

    @property
    def argv(self) -> tuple[str, ...] | None:
        """The argument vector, or None if it is not known before the command runs."""
        if not self.words or not all(word.known for word in self.words):
            return None
        return tuple(word.text for word in self.words)


@attrs.frozen(kw_only=True)
class Finding:
    """What was decided about one segment, and by what.

    Attributes:
        segment: the segment.
        verdict: the decision about it.
        rule: the rule that decided, as its file or preset words it; "" if no rule matched.
        reason: why, in words for the person who approves and for the model.
    """

    segment: Segment
    verdict: Verdict
    rule: str = ""
    reason: str = ""


@attrs.frozen(kw_only=True)
class Judgement:
    """The decision about a command.

    Attributes:
        verdict: the strictest of all findings.
        findings: one for each segment, in the order of the text.
        canonical: the command in the one spelling that approvals are remembered by, or "" if the policy made none.
    """

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    canonical: str = ""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that were judged, in the order of the text."""
        return tuple(finding.segment for finding in self.findings)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not laxer: the distinct reasons of the findings that share it."""
        return tuple(dict.fromkeys(f.reason for f in self.findings if f.verdict is self.verdict and f.reason))


@runtime_checkable
class Policy(Protocol):
    """Judges commands. Implementations are values: the same text gets the same judgement, from any thread."""

    def judge(self, command: str, *, dialect: str = "bash") -> Judgement:
        """Return the judgement about `command`, whatever its text; a policy never raises over a command.

        Args:
            command: the text as the model wrote it.
            dialect: the shell it is for ("bash", "sh", "dash", "zsh", "powershell" ...). A dialect that the
                parser does not speak is never allowed.
        """


@attrs.frozen
class _Strictest:
    policies: tuple[Policy, ...]

    def judge(self, command: str, *, dialect: str = "bash") -> Judgement:
        judgements = [policy.judge(command, dialect=dialect) for policy in self.policies]
        verdict = max(judgement.verdict for judgement in judgements)
        deciding = [judgement for judgement in judgements if judgement.verdict is verdict]
        return deciding[0]


def strictest(*policies: Policy) -> Policy:
    """Return the policy that decides as the strictest of `policies` does (at least one)."""
    if not policies:
        raise PolicyError("strictest() needs at least one policy")
    return _Strictest(policies)
