"""An executor for code without an event loop: the same methods, blocking, driven in the caller's thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import attrs

from ..output.page import OutputPage
from ..process.update import ProcessInfo, ProcessUpdate
from ..result import ShellResult
from ..sessions.base import OnTimeout, Session, StreamName
from ..sessions.drive import drive_blocking
from ..sessions.jobs import BlockingJob
from ..sessions.spill.page import PageRequest, read_page
from ..sessions.streaming import stream_blocking
from . import options
from .base import ClosedMeanwhile, Executor, OnOutput
from .options import UNSET, Unset

if TYPE_CHECKING:
    from ..sessions.interactive import ScreenView

__all__ = ["BlockingExecutor"]

Result = TypeVar("Result")


class BlockingExecutor:
    """The methods of an `Executor`, blocking. Made by `Executor.sync()`; any thread may use it."""

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
    ) -> ShellResult[BlockingJob]:
        """As `Executor.run`. KeyboardInterrupt ends the command, not the session, and is raised afterwards."""
        call = self.executor._make_call(command, timeout, workdir, env, input, merge_stderr, on_timeout)
        options.check_callback(on_output)
        if on_output is None:
            return self._run(lambda session: drive_blocking(session.run(call)))
        return self._run(lambda session: stream_blocking(session, call, on_output))

    def _run(self, action: Callable[[Session], ShellResult]) -> ShellResult[BlockingJob]:
        executor = self.executor
        executor._turnstile.enter_blocking()
        try:
            session = executor._open_session()
            with ClosedMeanwhile(session):
                result = executor._adopt(action(session))
        finally:
            executor._turnstile.leave()
        if result.background:
            result = attrs.evolve(result, background=tuple(job.blocking() for job in result.background))
        return cast("ShellResult[BlockingJob]", result)

    def run_into(
        self, command: str, listener: Callable[[StreamName, bytes], object], *, timeout: float | Unset | None = UNSET
    ) -> ShellResult[BlockingJob]:
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

    def read_output(
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
        """As `Executor.read_output`."""
        request = PageRequest.of(offset=offset, limit=limit, lines=lines, pattern=pattern, context=context, tail=tail)
        return read_page(self.executor._kept_output(), ref, request)

    def launch(
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
        """As `Executor.launch`."""
        return _in_own_loop(
            self.executor.launch(
                command,
                tty=tty,
                workdir=workdir,
                env=env,
                rows=rows,
                columns=columns,
                yield_time=yield_time,
                until=until,
                max_output_bytes=max_output_bytes,
            )
        )

    def write(
        self, process_id: int, chars: str = "", *, yield_time: float = 0.25, until: str | None = None
    ) -> ProcessUpdate:
        """As `Executor.write`."""
        return _in_own_loop(self.executor.write(process_id, chars, yield_time=yield_time, until=until))

    def stop(self, process_id: int) -> ProcessUpdate:
        """As `Executor.stop`."""
        return _in_own_loop(self.executor.stop(process_id))

    def processes(self) -> tuple[ProcessInfo, ...]:
        """As `Executor.processes`."""
        return self.executor.processes()

    def process(self, process_id: int) -> ProcessInfo:
        """As `Executor.process`."""
        return self.executor.process(process_id)

    def screen(self, process_id: int) -> ScreenView:
        """As `Executor.screen`."""
        return _in_own_loop(self.executor.screen(process_id))

    def resize(self, process_id: int, rows: int, columns: int) -> None:
        """As `Executor.resize`."""
        self.executor.resize(process_id, rows, columns)

    def restart(self) -> None:
        """As `Executor.restart`."""
        self._pass(lambda: drive_blocking(self.executor._open_session().restart()))

    def close(self) -> None:
        """As `Executor.close`."""
        session = self.executor._begin_close()
        with ThreadPoolExecutor(1) as pool:  # beside the session: both have the same grace
            launched = self.executor._programs is not None
            programs = pool.submit(asyncio.run, self.executor._close_programs()) if launched else None
            if session is not None:
                self._pass(lambda: drive_blocking(session.finish()))
                self.executor._forget_session()
            if programs is not None:
                programs.result()
        self.executor._close_files()

    def __enter__(self) -> Self:
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


def _in_own_loop(call: Coroutine[Any, Any, Result]) -> Result:
    """Run what waits for a program in a loop of its own; in another thread where this one has a loop (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, call).result()
