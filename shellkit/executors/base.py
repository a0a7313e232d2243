"""`Executor`: one conversation's door to a shell. `run` and its siblings are written once, here.

A subclass says where processes start (`make_session`) and checks what only it knows; everything else is the
same for all. An executor serves one conversation: its calls run one at a time, in order of arrival, from any
event loop or thread (contract G).
"""

from __future__ import annotations

import asyncio
import os
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..errors import ExecutorClosed, ShellkitError, UnknownOutput
from ..output.page import OutputPage
from ..process.room import room_for
from ..protocol.command import encode_command
from ..result import ShellResult
from ..sessions.base import OnTimeout, RunCall, Session, StreamName
from ..sessions.drive import drive_async
from ..sessions.forgotten import end_forgotten
from ..sessions.spill import SpillStore
from ..sessions.spill.page import PageRequest, read_page
from ..sessions.streaming import stream_async
from ..sessions.turnstile import Turnstile
from . import options
from .host import ProgramHost
from .options import UNSET, Unset
from .process_limits import ProcessLimits

if TYPE_CHECKING:
    from ..audit import AuditLog
    from ..environment.base import ShellEnvironment
    from ..policy.base import Policy
    from ..tool import Approver, ShellTool, Tool, TypingMode
    from ..tool.tool import ApprovalMode
    from .blocking import BlockingExecutor

__all__ = ["Executor", "OnOutput"]

OnOutput = Callable[[StreamName, str], object]


class Executor(ProgramHost):
    """Runs commands one after another in a shell.

    Args:
        timeout: default time-out of a command in seconds; None for none.
        grace: seconds that ending a command, a job or the executor may take.
        process_limits: how many launched programs are kept, and for how long; None for the defaults.
    """

    def __init__(self, *, timeout: float | None, grace: float, process_limits: ProcessLimits | None = None) -> None:
        super().__init__(process_limits)
        self.timeout = options.check_timeout(timeout, None)
        self.grace = options.check_seconds("grace", grace)
        self._turnstile = Turnstile()
        self._session: Session | None = None
        self._finalizer: weakref.finalize[[Callable[[], object], int], Executor] | None = None

    # -- for subclasses --------------------------------------------------------------------------------

    @abstractmethod
    def make_session(self, turnstile: Turnstile) -> Session:
        """Return a new session that has not started anything yet."""

    #: How far the executor isolates what it runs: "none", or a name such as "docker".
    isolation: str = "none"

    @property
    @abstractmethod
    def family(self) -> str:
        """The shell's dialect family."""

    @abstractmethod
    def facts(self) -> ShellEnvironment:
        """What is known of the shell without asking it."""

    @property
    def workdir(self) -> str:
        """Where the shell stands, as far as the last result told."""
        here = self._session.workdir if self._session is not None else None
        return os.fsdecode(here if here is not None else self.base_workdir)

    def as_tool(
        self,
        name: str = "run_shell",
        description: str | None = None,
        approval: ApprovalMode = "always",
        approver: Approver | None = None,
        policy: Policy | None = None,
        acknowledge_unsafe: bool = False,
        audit: AuditLog | str | os.PathLike[str] | None = None,
        max_timeout: float = 600.0,
        on_timeout: OnTimeout = "kill",
    ) -> ShellTool:
        """Return this shell as a tool for a model; `ShellTool` says what the arguments mean and what it raises.

        Policy and approval belong to the tool: `run` is the programmer's own door.
        """
        from ..tool import ShellTool

        return ShellTool(
            self,
            name=name,
            description=description,
            approval=approval,
            approver=approver,
            policy=policy,
            acknowledge_unsafe=acknowledge_unsafe,
            audit=audit,
            max_timeout=max_timeout,
            on_timeout=on_timeout,
        )

    def as_tools(
        self,
        *,
        approval: ApprovalMode = "always",
        approver: Approver | None = None,
        policy: Policy | None = None,
        acknowledge_unsafe: bool = False,
        audit: AuditLog | str | os.PathLike[str] | None = None,
        max_timeout: float = 600.0,
        on_timeout: OnTimeout = "kill",
        typing: TypingMode = "always",
    ) -> tuple[Tool, ...]:
        """Return the tools for a model that also talks to programs while they run; all stand behind one gate.

        They are `run_shell` (as `as_tool` makes it), `exec_command`, `write_stdin`, `list_processes`, `stop_process`
        and `read_output`.

        Args:
            approval: as in `ShellTool`, and so on; launching a program is judged and approved like a command.
            approver: who is asked.
            policy: rules over the parsed command.
            acknowledge_unsafe: needed for approval="never" where nothing isolates.
            audit: a log that gets a line before and after every call, or the path of one.
            max_timeout: the most seconds that a model may ask `run_shell` for.
            on_timeout: "background" lets a command of `run_shell` run on at its time-out; `write_stdin` waits for it.
            typing: what is typed into a program is approved "always", the "first" time for each program, or "never".
                Under approval="never" nobody is asked. Ctrl-C never needs approval. While a program asks for a
                password, what is typed shows neither in the question nor in the log.

        Raises:
            ValueError: as `ShellTool` does.
        """
        from ..tool.programs import program_tools

        shell = self.as_tool(
            approval=approval,
            approver=approver,
            policy=policy,
            acknowledge_unsafe=acknowledge_unsafe,
            audit=audit,
            max_timeout=max_timeout,
            on_timeout=on_timeout,
        )
        return (shell, *program_tools(shell, self, typing))

    # -- running ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the shell now; without it the first command does.

        Raises:
            SpawnError: no shell could be started.
        """
        await self._turnstile.enter()
        try:
            await drive_async(self._open_session().start())
        finally:
            self._turnstile.leave()

    async def run(
        self,
        command: str,
        *,
        timeout: float | Unset | None = UNSET,
        on_timeout: OnTimeout = "kill",
        workdir: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        input: str | bytes | None = None,  # noqa: A002  (the contract's name, as in `subprocess.run`)
        merge_stderr: bool = False,
        on_output: OnOutput | None = None,
    ) -> ShellResult:
        """Run one command from start to end.

        Args:
            command: text for the shell, of any kind and up to 10 MB; CRLF line ends become LF.
            timeout: seconds after which the command is ended; None for no limit, left out for the default.
                Time spent waiting for earlier commands does not count.
            on_timeout: "kill" ends the command and what it started. "background" lets it run on, in the shell that it
                has, as the result's background job; the next command gets a new shell with the state from before.
                The result's `process_id` is for `write`, `stop` and the rest; nothing can be typed to it.
            workdir: directory for this command only.
            env: variables for this command only; None as a value unsets.
            input: what the command reads from its stdin (str as UTF-8); end-of-file at once without it.
            merge_stderr: send stderr into stdout, in the order written.
            on_output: called with ("stdout" | "stderr", text) while the command runs, on the caller's loop
                (in the caller's thread under `sync()`). An exception in it is logged; a slow one loses
                chunks, which a note counts, and never blocks the command.

        Returns:
            What the command did. A non-zero exit code and a time-out are results, not exceptions.

        Raises:
            InvalidCommand: the text cannot be given to a shell. Nothing ran.
            TypeError, ValueError: another argument is wrong. Nothing ran.
            InvalidWorkdir: `workdir` is missing or may not be entered. Nothing ran.
            CommandDenied: `workdir` is outside the confinement. Nothing ran.
            SpawnError: no shell could be started.
            ExecutorClosed: the executor is, or was meanwhile, closed; `.result` holds partial output.
            ExecutorUnavailable: called in a forked child of the process that made the executor.
        """
        call = self._make_call(command, timeout, workdir, env, input, merge_stderr, on_timeout)
        options.check_callback(on_output)
        if not self._turnstile.try_enter():
            await self._turnstile.enter()
        try:
            session = self._open_session()
            with ClosedMeanwhile(session):
                if on_output is None:
                    return self._adopt(await drive_async(session.run(call)))
                return self._adopt(await stream_async(session, call, on_output))
        finally:
            self._turnstile.leave()

    async def read_output(
        self,
        ref: str,
        *,
        offset: int | None = None,
        limit: int | None = None,
        lines: tuple[int, int] | None = None,
        pattern: str | None = None,
        context: int = 0,
        tail: int | None = None,
    ) -> OutputPage:
        """Return a part of an output that was too large for its result; a command may run meanwhile.

        One of `offset`, `lines`, `pattern` and `tail` says which part; without any it is the beginning.

        Args:
            ref: `stdout_ref` or `stderr_ref` of a result.
            offset: bytes to pass over; with `pattern`, where to begin to search.
            limit: bytes to return, from 64 to 1 MiB; 16 KiB if left out.
            lines: first and last line, counted from 1.
            pattern: regular expression to find lines by, in the syntax of Rust's regex crate: linear in time, without
                look-around and backreferences. It sees lines as `for_model` shows them, and of a longer one 4 KiB at
                a time. After five seconds the page says where to go on.
            context: lines to show before and after each match.
            tail: lines from the end.

        Raises:
            UnknownOutput: nothing is kept under `ref`, or not any more.
            TypeError, ValueError: an argument is wrong, or they do not go together.
            ExecutorClosed: the executor is closed.
        """
        request = PageRequest.of(offset=offset, limit=limit, lines=lines, pattern=pattern, context=context, tail=tail)
        return await asyncio.to_thread(read_page, self._kept_output(), ref, request)

    async def restart(self) -> None:
        """End the shell and what it runs in the foreground, and start a fresh one without the old state.

        Background jobs live on. Raises as `start` does.
        """
        await self._turnstile.enter()
        try:
            await drive_async(self._open_session().restart())
        finally:
            self._turnstile.leave()

    async def close(self) -> None:
        """End everything that the executor started, jobs and programs included; takes no longer than `grace`.

        A command that is running ends with `ExecutorClosed`, in whatever loop or thread it was called.
        Idempotent.
        """
        session = self._begin_close()
        programs = asyncio.ensure_future(self._close_programs())  # beside the session: both have the same grace
        try:
            if session is not None:
                await self._turnstile.enter()
                try:
                    await drive_async(session.finish())
                    self._forget_session()
                finally:
                    self._turnstile.leave()
        finally:
            await programs
            self._close_files()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def sync(self) -> BlockingExecutor:
        """Return the same executor with methods that block, for code without an event loop; from any thread."""
        from .blocking import BlockingExecutor

        return BlockingExecutor(self)

    # -- shared with `BlockingExecutor` ----------------------------------------------------------------

    def _make_call(
        self,
        command: object,
        timeout: object,
        workdir: object,
        env: object,
        input: object,  # noqa: A002  (as in `run`)
        merge_stderr: bool,
        on_timeout: object = "kill",
    ) -> RunCall:
        text = encode_command(command)
        directory = None if workdir is None else self._admitted(workdir)
        return RunCall(
            command=str(command),
            text=text,
            timeout=options.check_timeout(timeout, self.timeout),
            on_timeout=options.check_on_timeout(on_timeout),
            workdir=directory,
            env=options.check_env(env),
            input=options.check_input(input),
            merge_stderr=bool(merge_stderr),
        )

    def _open_session(self) -> Session:
        self._check_open()
        if self._session is None:
            with room_for("no session can be opened"):
                self._session = self.make_session(self._turnstile)
            self._finalizer = weakref.finalize(self, end_forgotten, self._session.abandon, self._pid)
        return self._session

    def _kept_output(self) -> SpillStore:
        if self._closed:
            raise ExecutorClosed("the executor is closed; read its output before that")
        if self._spills is None:
            raise UnknownOutput(
                "no output is kept; run the command again and filter what it prints, or make the executor with "
                "spill_dir=..."
            )
        return self._spills

    def _close_files(self) -> None:
        """Close what commands and programs have written to until their end."""
        if self._spills is not None:
            self._spills.close()

    def _forget_session(self) -> None:
        if self._finalizer is not None:
            self._finalizer.detach()

    def _begin_close(self) -> Session | None:
        if os.getpid() != self._pid:
            return None
        self._closed = True
        session = self._session
        if session is not None:
            session.request_stop(for_good=True)
        return session


class ClosedMeanwhile:
    """Says so when a command fails because another thread has ended its session (the interpreter exits).

    A class, because around every command `contextlib.contextmanager` would cost five calls more.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        theirs = isinstance(error, (OSError, ValueError, AssertionError)) and not isinstance(error, ShellkitError)
        if theirs and self._session.finished:
            raise ExecutorClosed("the executor was closed while the command ran") from error
