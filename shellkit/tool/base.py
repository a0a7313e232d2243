"""What the tool needs of an executor, and what it gives back. Executors implement `Runner`; adapters read `ToolOutput`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from ..environment.base import ShellEnvironment
from ..policy.confinement import Confinement
from ..result import ShellResult

__all__ = ["Runner", "ToolOutput"]


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
        self, command: str, *, timeout: float | None = ..., workdir: str | os.PathLike[str] | None = ...
    ) -> ShellResult:
        """Run one command."""


@attrs.frozen(kw_only=True)
class ToolOutput:
    """What a call comes back with.

    Attributes:
        text: for the model.
        result: what the command did; None if it did not run.
        is_error: whether the call itself failed: refused, wrong arguments, no shell. A command with a non-zero
            exit code is no error of the call.
    """

    text: str
    result: ShellResult | None = None
    is_error: bool = False

    def to_dict(self) -> Mapping[str, Any]:
        """Return plain values for JSON."""
        result = None if self.result is None else self.result.to_dict()
        return {"text": self.text, "is_error": self.is_error, "result": result}
