"""What the tool needs of an executor, and what it gives back. Executors implement `Runner`; adapters read `ToolOutput`.

`Refused` never leaves the tool: the gate's steps raise it, and the model gets its text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

import attrs

from ..environment.base import ShellEnvironment
from ..output.page import OutputPage
from ..policy.approvals import ApprovalRequest
from ..policy.confinement import Confinement
from ..process.update import ProcessInfo, ProcessUpdate
from ..result import ShellResult
from ..sessions.base import OnTimeout, StreamName

__all__ = ["OnOutput", "ProgramRunner", "Refused", "Runner", "ToolOutput", "Wanted"]

#: Called with ("stdout" | "stderr", text) while a command runs.
OnOutput = Callable[[StreamName, str], object]


class Runner(Protocol):
    """An executor, as far as the tool knows it."""

    timeout: float | None
    max_output_bytes: int
    #: How far it isolates: "none", or a name such as "docker".
    isolation: str

    @property
    def family(self) -> str:
        """The shell's dialect family."""

    @property
    def confinement(self) -> Confinement:
        """What happens when a command leaves the working directory."""

    @property
    def workdir(self) -> str:
        """Where the shell stands, as far as the last result told."""

    def facts(self) -> ShellEnvironment:
        """What is known of the shell without asking it."""

    async def run(
        self,
        command: str,
        *,
        timeout: float | None = ...,
        workdir: str | os.PathLike[str] | None = ...,
        on_output: OnOutput | None = ...,
        on_timeout: OnTimeout = ...,
    ) -> ShellResult:
        """Run one command."""


class ProgramRunner(Runner, Protocol):
    """An executor that launches programs, as far as the tools for them know it."""

    async def launch(
        self,
        command: str,
        *,
        tty: bool = ...,
        workdir: str | os.PathLike[str] | None = ...,
        yield_time: float = ...,
        until: str | None = ...,
    ) -> ProcessUpdate:
        """Start a program, which may run on."""

    async def write(
        self, process_id: int, chars: str = ..., *, yield_time: float = ..., until: str | None = ...
    ) -> ProcessUpdate:
        """Type to a program, or wait for news of it."""

    async def stop(self, process_id: int) -> ProcessUpdate:
        """End a program."""

    def processes(self) -> tuple[ProcessInfo, ...]:
        """List the programs."""

    def process(self, process_id: int) -> ProcessInfo:
        """Return one of them."""

    async def read_output(
        self,
        ref: str,
        *,
        offset: int | None = ...,
        limit: int | None = ...,
        lines: tuple[int, int] | None = ...,
        pattern: str | None = ...,
        context: int = ...,
        tail: int | None = ...,
    ) -> OutputPage:
        """Return a part of an output that was kept."""


@attrs.frozen(kw_only=True)
class Wanted:
    """What a call asks for, as far as the gate must know; each tool adds what it needs itself.

    Attributes:
        command: the text that is approved and recorded.
        workdir: the directory that it shall run in (absolute), or None.
        reader: what reads the text, where that is a running program and not the shell.
        hidden: whether nobody may see the text, since the reader asks for a secret: `command` says how long it is.
        granted: why nobody needs to be asked, or "" to go by the approval mode and the policy.
    """

    command: str
    workdir: str | None = None
    reader: str = ""
    hidden: bool = False
    granted: str = ""

    @property
    def judged(self) -> str:
        """The text that a policy judges: all of it, also where nobody may see it."""
        return self.command

    def edited(self, command: str) -> Self:
        """Return the same with the text that a person approved instead."""
        return attrs.evolve(self, command=command)


class Refused(Exception):
    """The gate stays shut.

    Args:
        message: tells the model why, and what to do instead.
        by: who or which rule refused, for the audit log.
        request: what was refused.
    """

    def __init__(self, message: str, by: str, request: ApprovalRequest) -> None:
        super().__init__(message)
        self.by = by
        self.request = request


def _encodable(text: str) -> str:
    # A model's own arguments may come back in a message, lone surrogates included; JSON in UTF-8 cannot carry them.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


@attrs.frozen(kw_only=True)
class ToolOutput:
    """What a call comes back with.

    Attributes:
        text: for the model; can be encoded as UTF-8.
        result: what the command did; None if it did not run.
        update: what the program did, of the tools for programs; None if there is nothing to tell.
        is_error: whether the call itself failed: refused, wrong arguments, no shell. A command with a non-zero
            exit code is no error of the call.
    """

    text: str = attrs.field(converter=_encodable)
    result: ShellResult | None = None
    update: ProcessUpdate | None = None
    is_error: bool = False

    def to_dict(self) -> Mapping[str, Any]:
        """Return plain values for JSON."""
        result = None if self.result is None else self.result.to_dict()
        update = None if self.update is None else self.update.to_dict()
        return {"text": self.text, "is_error": self.is_error, "result": result, "update": update}
