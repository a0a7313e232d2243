"""`ProgramHost`: the part of an executor that launches programs, and talks to them while they run.

Written once, for every executor; a subclass only says how a program is made (`make_program`). None of it waits for the
turn that `run` waits for: a program can be launched, typed to and stopped while a command runs.
"""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from ..errors import CommandDenied, ExecutorClosed, ExecutorUnavailable, InvalidCommand
from ..output.search import LinePattern
from ..policy.confinement import Confinement
from ..process.room import room_for
from ..process.update import ProcessInfo, ProcessUpdate
from ..protocol.command import encode_command
from ..result import ShellResult
from ..sessions.forgotten import end_forgotten
from ..sessions.spill import SpillStore
from . import options
from .process_limits import ProcessLimits

if TYPE_CHECKING:
    from ..sessions.interactive import InteractiveSession, Pump, ScreenView, Sink
    from .entry import Until
    from .programs import Programs

__all__ = ["LaunchCall", "ProgramHost"]

#: Bytes of one argument, its NUL included (execve(2), "Limits on size of arguments and environment").
_LONGEST = 128 * 1024


@attrs.frozen(kw_only=True)
class LaunchCall:
    """A program to launch, validated.

    Attributes:
        command: the text for the shell.
        tty: whether it gets a terminal.
        workdir: where it starts (absolute).
        env: variables for this program only; None unsets.
        rows: lines of the terminal.
        columns: characters in a line of the terminal.
        max_output_bytes: bytes of output to keep until they are read.
    """

    command: str
    tty: bool
    workdir: bytes
    env: Mapping[str, str | None]
    rows: int
    columns: int
    max_output_bytes: int


class ProgramHost(ABC):
    """Launches programs.

    Args:
        process_limits: how many programs are kept, and for how long; None for the defaults.
    """

    max_output_bytes: int

    def __init__(self, process_limits: ProcessLimits | None) -> None:
        if process_limits is not None and not isinstance(process_limits, ProcessLimits):
            raise TypeError(f"process_limits must be ProcessLimits(...), not {type(process_limits).__name__}")
        self.process_limits = process_limits if process_limits is not None else ProcessLimits()
        self._closed = False
        self._pid = os.getpid()
        self._spills: SpillStore | None = None
        self._programs: Programs | None = None
        self._abandons: weakref.finalize[[Callable[[], object], int], ProgramHost] | None = None

    # -- for subclasses --------------------------------------------------------------------------------

    @property
    @abstractmethod
    def confinement(self) -> Confinement:
        """What happens when a command leaves the working directory."""

    @property
    @abstractmethod
    def base_workdir(self) -> bytes:
        """What a relative `workdir` of one command is taken from."""

    @property
    @abstractmethod
    def workdir(self) -> str:
        """Where the shell stands, as far as the last result told."""

    def make_program(self, call: LaunchCall, pump: Pump, sinks: Sequence[Sink]) -> InteractiveSession:
        """Return a program that has not been started yet, drained by `pump`, with `sinks` to get what it prints.

        Raises:
            ExecutorUnavailable: this executor has no programs to talk to.
        """
        raise ExecutorUnavailable(f"{type(self).__name__} cannot launch programs; run('... &') leaves a job running")

    # -- programs --------------------------------------------------------------------------------------

    async def launch(
        self,
        command: str,
        *,
        tty: bool = False,
        workdir: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        rows: int = 24,
        columns: int = 120,
        yield_time: float = 10.0,
        until: str | None = None,
        max_output_bytes: int | None = None,
    ) -> ProcessUpdate:
        """Start a program in a new shell, and return when there is something to tell; it may run on.

        Args:
            command: text for the shell, up to 128 KiB (Linux MAX_ARG_STRLEN).
            tty: whether the program gets a terminal; without one, pipes for its stdin and for its output.
            workdir: where it starts; None is where the session's shell stands.
            env: variables over the executor's, for this program only; None as a value unsets. What was exported in
                the session's shell is not seen.
            rows: lines of the terminal.
            columns: characters in a line of the terminal.
            yield_time: seconds after which to return at the latest. No time-out: the program runs on.
            until: what to wait for: "exit", or a regular expression that a line of the new output matches (syntax of
                Rust's regex crate: linear in time; "exit" itself is `exi[t]`). Without it the call returns as soon as
                the program waits for input. The program's end always ends the wait.
            max_output_bytes: bytes to keep of what is printed between two updates; None for the executor's.

        Returns:
            The update: `process_id` while the program runs, `exit_code` once it has ended.

        Raises:
            InvalidCommand: the text cannot be given to a shell. Nothing ran.
            TypeError, ValueError: another argument is wrong. Nothing ran.
            InvalidWorkdir: `workdir` is missing or may not be entered. Nothing ran.
            CommandDenied: `workdir` is outside the confinement. Nothing ran.
            SpawnError: the shell could not be started.
            ExecutorClosed: the executor is closed.
            ExecutorUnavailable: it launches no programs, or was called in a forked child.
            asyncio.CancelledError: the caller gave up waiting; the program runs on, and `processes` lists it.
        """
        text = encode_command(command)
        if len(text) >= _LONGEST:
            raise InvalidCommand(
                f"a command to launch must be shorter than {_LONGEST} bytes (Linux MAX_ARG_STRLEN); write it to a "
                "file, and launch that"
            )
        seconds, awaited = options.check_yield(yield_time), check_until(until)
        limit = self.max_output_bytes if max_output_bytes is None else max_output_bytes
        call = LaunchCall(
            command=text.decode(),
            tty=bool(tty),
            workdir=self._admitted(self.workdir if workdir is None else workdir),
            env=options.check_env(env),
            rows=rows,
            columns=columns,
            max_output_bytes=options.check_size("max_output_bytes", limit),
        )
        programs = self._open_programs()
        spill = self._spills.file() if self._spills is not None else None
        make = partial(self.make_program, call, programs.pump)
        return await programs.launch(command, make, spill, seconds, awaited)

    async def write(
        self, process_id: int, chars: str = "", *, yield_time: float = 0.25, until: str | None = None
    ) -> ProcessUpdate:
        """Type to a program, or (without `chars`) only wait for news of it, and return what it has printed since.

        Args:
            process_id: from an update.
            chars: what to type, exactly: a line ends with "\\n", Ctrl-C is "\\x03", Ctrl-D "\\x04". On pipes, where no
                terminal gives these keys a meaning, Ctrl-C alone interrupts, and a last Ctrl-D ends the input.
            yield_time: seconds after which to return at the latest.
            until: as in `launch`. What was printed since the last update counts.

        Returns:
            The update. A program that has ended is no error: its exit code is told again, and nothing is typed.

        Raises:
            UnknownProcess: there is no such program; the message says which there are.
            StdinClosed: the program's input was closed.
            TypeError, ValueError: an argument is wrong.
            ExecutorClosed, ExecutorUnavailable: as in `launch`.
        """
        if not isinstance(chars, str):
            raise TypeError(f"chars must be a str, not {type(chars).__name__}")
        seconds, awaited = options.check_yield(yield_time), check_until(until)
        return await self._open_programs().write(process_id, chars, seconds, awaited)

    async def stop(self, process_id: int) -> ProcessUpdate:
        """End a program and everything that it started, within the grace period, and return its last update.

        One that has ended already is left alone. Raises `UnknownProcess`, `ExecutorClosed` and `ExecutorUnavailable`
        as `write` does.
        """
        return await self._open_programs().stop(process_id)

    def processes(self) -> tuple[ProcessInfo, ...]:
        """Return the programs that were launched and are still known, ended ones included."""
        return self._open_programs().infos()

    def process(self, process_id: int) -> ProcessInfo:
        """Return one of `processes`. Raises `UnknownProcess`."""
        return self._open_programs().info(process_id)

    async def screen(self, process_id: int) -> ScreenView:
        """Return what a person would see on the terminal of a program.

        Raises:
            UnknownProcess: there is no such program.
            ValueError: it has no terminal.
        """
        return await self._open_programs().get(process_id).screen()

    def resize(self, process_id: int, rows: int, columns: int) -> None:
        """Give the terminal of a program another size. Raises as `screen` does, and ValueError for a wrong size."""
        self._open_programs().get(process_id).resize(rows, columns)

    # -- inside ----------------------------------------------------------------------------------------

    def _admitted(self, workdir: object) -> bytes:
        directory = options.check_workdir(workdir, self.base_workdir)
        if not self.confinement.admits(directory):
            raise CommandDenied(
                f"workdir {os.fsdecode(directory)} is outside {os.fsdecode(self.confinement.root)}, which this "
                "executor is confined to; name a directory inside it"
            )
        return directory

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise ExecutorUnavailable(
                f"this executor belongs to process {self._pid}, this is its forked child {os.getpid()}; "
                "make a new executor here"
            )
        if self._closed:
            raise ExecutorClosed("the executor is closed; make a new one")

    def _open_programs(self) -> Programs:
        self._check_open()
        if self._programs is None:
            from .programs import Programs  # terminals and all: who only runs commands needs none of it

            with room_for("no program can be launched"):
                self._programs = Programs(self.process_limits)
            self._abandons = weakref.finalize(self, end_forgotten, self._programs.abandon, self._pid)
        return self._programs

    def _adopt(self, result: ShellResult) -> ShellResult:
        """Give a command that outlived its time-out a number, by which it can be waited for, read and stopped."""
        if not result.timed_out or result.exit_code is not None or not result.background or self._closed:
            return result
        return attrs.evolve(result, process_id=self._open_programs().adopt(result))

    async def _close_programs(self) -> None:
        programs = self._programs
        if programs is not None and os.getpid() == self._pid:
            await programs.close()
            if self._abandons is not None:
                self._abandons.detach()


def check_until(value: str | None) -> Until:
    """Return what to wait for.

    Raises:
        TypeError, ValueError: it cannot be waited for.
    """
    if value is None:
        return None
    return "exit" if value == "exit" else LinePattern(value)
