"""An executor for code without an event loop: the same methods, blocking, driven in the caller's thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import TracebackType

import attrs

from ..result import ShellResult
from ..sessions.base import OnTimeout, Session, StreamName
from ..sessions.drive import drive_blocking
from ..sessions.streaming import stream_blocking
from . import options
from .base import Executor, OnOutput, closed_meanwhile
from .options import UNSET, Unset

__all__ = ["BlockingExecutor"]


class BlockingExecutor:
    """The methods of an `Executor`, blocking. Made by `Executor.sync()`; any thread may use it.

    Jobs in `ShellResult.background` are `BlockingJob`s.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def start(self) -> None:
        """As `Executor.start`."""
        self._pass(lambda: drive_blocking(self.executor._open_session().start()))

    def run(
        self,
        command: str,
        *,
        timeout: float | Unset | None = UNSET,
        on_timeout: OnTimeout = "kill",
        workdir: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        input: str | bytes | None = None,  # noqa: A002  (as in `Executor.run`)
        merge_stderr: bool = False,
        on_output: OnOutput | None = None,
    ) -> ShellResult:
        """As `Executor.run`. KeyboardInterrupt ends the command, not the session, and is raised afterwards."""
        call = self.executor._make_call(command, timeout, workdir, env, input, merge_stderr, on_timeout)
        options.check_callback(on_output)
        if on_output is None:
            return self._run(lambda session: drive_blocking(session.run(call)))
        return self._run(lambda session: stream_blocking(session, call, on_output))

    def _run(self, action: Callable[[Session], ShellResult]) -> ShellResult:
        executor = self.executor
        executor._turnstile.enter_blocking()
        try:
            session = executor._open_session()
            with closed_meanwhile(session):
                result = action(session)
        finally:
            executor._turnstile.leave()
        if result.background:
            return attrs.evolve(result, background=tuple(job.blocking() for job in result.background))
        return result

    def run_into(
        self, command: str, listener: Callable[[StreamName, bytes], object], *, timeout: float | Unset | None = UNSET
    ) -> ShellResult:
        """Run one command and give its raw output to `listener` as it comes; the command waits for a slow one.

        Args:
            command: as in `run`.
            listener: called with ("stdout" | "stderr", bytes) in this thread; nothing is lost.
            timeout: as in `run`.

        Returns:
            The result, with its bounded `stdout` and `stderr` as ever. Raises as `run` does.
        """
        call = self.executor._make_call(command, timeout, None, None, None, False)
        call = attrs.evolve(call, listener=lambda stream, view: listener(stream, bytes(view)))
        return self._run(lambda session: drive_blocking(session.run(call)))

    def restart(self) -> None:
        """As `Executor.restart`."""
        self._pass(lambda: drive_blocking(self.executor._open_session().restart()))

    def close(self) -> None:
        """As `Executor.close`."""
        session = self.executor._begin_close()
        if session is not None:
            self._pass(lambda: drive_blocking(session.finish()))
            self.executor._forget_session()

    def __enter__(self) -> BlockingExecutor:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pass(self, action: Callable[[], None]) -> None:
        self.executor._turnstile.enter_blocking()
        try:
            action()
        finally:
            self.executor._turnstile.leave()
