"""What a session is given, what it is asked for, and the interface that both kinds of session share.

Executors build the settings and make the calls; sessions know nothing of who calls them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import attrs

from ..policy.confinement import Confinement
from ..process.base import Process
from ..process.pipes import PipeSource
from ..process.tree import Containment
from ..protocol.base import Dialect
from ..result import ShellResult
from .drive import Procedure
from .spill import SpillStore

if TYPE_CHECKING:
    from .recording import Recorder

__all__ = ["Listener", "Mode", "OnTimeout", "RunCall", "Session", "SessionSettings", "Spawner", "StreamName"]

StreamName = Literal["stdout", "stderr"]
#: One shell for all commands, or a fresh one for each.
Mode = Literal["persistent", "stateless"]
#: What happens to a command whose time is over: it is ended, or it runs on as a background job.
OnTimeout = Literal["kill", "background"]
#: Called in the thread that drains, with raw bytes that are only valid during the call.
Listener = Callable[[StreamName, memoryview], object]
Spawner = Callable[[Mapping[bytes, bytes], PipeSource, Containment], Process]


@attrs.frozen(kw_only=True)
class SessionSettings:
    """How a session starts and runs its shells.

    Attributes:
        dialect: how to talk to the shell.
        spawn: starts one shell.
        shell_name: what a person calls the shell, for messages.
        environment: returns the environment of a new shell.
        workdir: where a new shell starts (absolute).
        confinement: what happens when a command leaves `workdir`.
        startup_commands: run in every new shell before anything else.
        grace: seconds that ending something may take.
        start_timeout: seconds that a new shell may take to answer.
        max_output_bytes: bytes to keep of each stream.
        spills: where larger output is kept whole; None for nowhere.
        recorder: what records the session; None for nothing.
    """

    dialect: Dialect
    spawn: Spawner
    shell_name: str
    environment: Callable[[], dict[bytes, bytes]]
    workdir: bytes
    confinement: Confinement
    startup_commands: tuple[str, ...]
    grace: float
    start_timeout: float
    max_output_bytes: int
    spills: SpillStore | None = None
    recorder: Recorder | None = None


@attrs.frozen(kw_only=True)
class RunCall:
    """One command to run, validated.

    Attributes:
        command: the text as the caller gave it, for the result.
        text: what the shell gets.
        timeout: seconds, or None.
        on_timeout: what then.
        workdir: directory for this command only, or None.
        env: variables for this command only; None unsets.
        input: what the command reads from its stdin.
        merge_stderr: whether stderr goes into stdout.
        listener: gets output as it is read.
    """

    command: str
    text: bytes
    timeout: float | None = None
    on_timeout: OnTimeout = "kill"
    workdir: bytes | None = None
    env: Mapping[str, str | None] = attrs.field(factory=dict)
    input: bytes = b""
    merge_stderr: bool = False
    listener: Listener | None = None


class Session(ABC):
    """Where commands run one after another. Its procedures are driven by `drive_async` or `drive_blocking`.

    Callers let one procedure run at a time; `request_stop` may come from any thread.
    """

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether everything has been ended."""

    @property
    @abstractmethod
    def workdir(self) -> bytes | None:
        """Where the shell stands, as far as the last command told."""

    @abstractmethod
    def start(self) -> Procedure[None]:
        """Start a shell if there is none."""

    @abstractmethod
    def run(self, call: RunCall) -> Procedure[ShellResult]:
        """Run one command."""

    @abstractmethod
    def restart(self) -> Procedure[None]:
        """End the shell and what it runs, background jobs excepted, and start a fresh one without the state."""

    @abstractmethod
    def finish(self) -> Procedure[None]:
        """End everything that the session started, within the grace period, and give everything back."""

    @abstractmethod
    def abandon(self) -> None:
        """Kill everything at once and give everything back; for the end of the interpreter. Idempotent."""

    @abstractmethod
    def request_stop(self, *, for_good: bool) -> None:
        """Make the running procedure end as soon as possible, from any thread.

        Args:
            for_good: later procedures shall end at once, too: the executor is being closed.
        """
