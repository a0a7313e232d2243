"""What a command leaves running: one job per command, its later output and its end (contract I).

A command that was handed over at its time-out is a job, too, together with the shell that runs it. A job is drained
by the session's attendant, so that it neither blocks on a full pipe nor is killed by a closed one. Its output never
appears in another command's result.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable

import attrs

from ..process.tree import JobGroup, send
from ..protocol.events import Finished
from .live import Capture, LiveShell

__all__ = ["BackgroundJob", "BlockingJob", "Job", "JobOutput"]


@attrs.frozen
class JobOutput:
    """What a job has written since it was last read.

    Attributes:
        stdout: decoded as in `ShellResult`, bounded by the executor's `max_output_bytes`.
        stderr: the same for standard error.
        stdout_omitted: bytes left out of `stdout`.
        stderr_omitted: bytes left out of `stderr`.
        stdout_ref: reference to the whole output, for `executor.read_output`; None until something was left out.
        stderr_ref: the same for standard error.
    """

    stdout: str = ""
    stderr: str = ""
    stdout_omitted: int = 0
    stderr_omitted: int = 0
    stdout_ref: str | None = None
    stderr_ref: str | None = None


class Job:
    """The inside of a job, shared by the attendant's thread and the callers.

    Args:
        captures: the (stdout, stderr) that the job holds; owned by this object.
        group: its processes; None when only the shell itself holds a descriptor.
        shell: the shell that runs it, if it was handed over whole; owned by this object.
    """

    def __init__(
        self, captures: tuple[Capture, Capture] | None, group: JobGroup | None, shell: LiveShell | None = None
    ) -> None:
        self.lock = threading.Lock()
        self.captures = captures
        self.group = group
        self.shell = shell
        self.exit_code: int | None = None
        self.pidfds: dict[int, int] = {}
        self.ended = threading.Event()
        self._when_ended: list[Callable[[], None]] = []
        self.pids = tuple(group.pids()) if group is not None else ()
        self.open_pidfds()

    def open_pidfds(self) -> list[int]:
        """Open a descriptor for every process not watched yet, and return the new ones."""
        opened = []
        for pid in self.group.pids() if self.group is not None else ():
            if pid not in self.pidfds:
                with contextlib.suppress(ProcessLookupError):
                    self.pidfds[pid] = os.pidfd_open(pid)
                    opened.append(self.pidfds[pid])
        return opened

    def close_pidfd(self, fd: int) -> None:
        """Stop watching one process."""
        for pid, known in self.pidfds.items():
            if known == fd:
                del self.pidfds[pid]
                os.close(fd)
                return

    def hear(self) -> None:
        """Take what its shell reports, so that it never waits for a reader."""
        for event in self.shell.receive() if self.shell is not None else ():
            if isinstance(event, Finished):
                self.exit_code = event.exit_code

    def shell_ended(self) -> None:
        """Account for the end of its shell and give that back; idempotent."""
        shell, self.shell = self.shell, None
        if shell is not None:
            status = shell.process.exit_code()
            if self.exit_code is None:
                self.exit_code = status
                if self.captures is not None:
                    # As in a turn: what a user's EXIT trap prints arrives as noise.
                    self.captures[0].buffer.append(shell.machine.take_noise())
            shell.close()

    def alive(self) -> bool:
        """Whether any of its processes is."""
        return self.group is not None and bool(self.group.pids())

    def read(self) -> JobOutput:
        """Take what it has written since the last time."""
        with self.lock:
            if self.captures is None:
                return JobOutput()
            stdout, stderr = self.captures
            out, err = stdout.buffer, stderr.buffer
            output = JobOutput(out.text(), err.text(), out.omitted, err.omitted, stdout.ref, stderr.ref)
            out.clear()
            err.clear()
            return output

    def signal(self, number: int) -> None:
        """Send a signal to all its processes."""
        if self.group is not None:
            # Its shell first, which would else go on with what comes next.
            pids = sorted(self.group.pids(), key=lambda pid: self.shell is None or pid != self.shell.process.pid)
            send(pids, number)
            send(pids, signal.SIGCONT)

    def kill(self) -> None:
        """Kill all its processes."""
        if self.group is not None:
            self.group.kill()

    def end_now(self) -> None:
        """Kill all its processes and wait until the kernel has done so: a millisecond, rarely more."""
        for _ in range(50):
            self.kill()
            if not self.alive():
                return
            time.sleep(0.001)

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call back, in any thread, when it has ended; at once if it has."""
        with self.lock:
            if not self.ended.is_set():
                self._when_ended.append(callback)
                return
        callback()

    def finish(self) -> None:
        """Account for its end and give everything back; what it wrote can still be read. Idempotent."""
        with self.lock:
            if self.shell is not None:
                self.shell.process.kill_shell()
                self.shell.wait_for_end()
                self.hear()
                self.shell_ended()
            for fd in self.pidfds.values():
                os.close(fd)
            self.pidfds.clear()
            for capture in self.captures or ():
                capture.close()
            if self.group is not None:
                self.group.remove()
            self.ended.set()
            callbacks, self._when_ended = self._when_ended, []
        for callback in callbacks:
            callback()


class BackgroundJob:
    """What one command left running. Made by sessions; found in `ShellResult.background`."""

    def __init__(self, job: Job, grace: float) -> None:
        self._job = job
        self._grace = grace

    def __repr__(self) -> str:
        return f"<BackgroundJob pids={list(self.pids)} running={self.running}>"

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that were running when the command ended; empty if only a descriptor stayed open."""
        return self._job.pids

    @property
    def exit_code(self) -> int | None:
        """How a command ended that was handed over at its time-out; None while it runs.

        Of what a command left behind it is None for good: it may be several programs, and their shell is gone.
        """
        return self._job.exit_code

    @property
    def running(self) -> bool:
        """Whether any process of the job is alive."""
        return not self._job.ended.is_set() and self._job.alive()

    async def read(self) -> JobOutput:
        """Return what the job has written since it was last read; a second read returns only what is new.

        What `Executor.write(process_id)` has returned of a command that outlived its time-out counts as read.
        """
        return self._job.read()

    async def wait(self) -> JobOutput:
        """Wait until all processes of the job have ended, and return what it has written since it was last read."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def resolve() -> None:
            if not ended.done():
                ended.set_result(None)

        def from_any_thread() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed while it waited
                loop.call_soon_threadsafe(resolve)

        self._job.when_ended(from_any_thread)
        await ended
        return self._job.read()

    async def stop(self) -> None:
        """End the job: SIGTERM, then SIGKILL after half the grace period. A job that has ended is left alone."""
        self._job.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(self._end())), self._grace / 2)
        except TimeoutError:
            self._job.kill()
            await self._end()

    async def _end(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._job.ended.wait, self._grace)

    def blocking(self) -> BlockingJob:
        """Return the same job with methods that block, for code without an event loop."""
        return BlockingJob(self._job, self._grace)


class BlockingJob(BackgroundJob):
    """A `BackgroundJob` for code without an event loop (`executor.sync()`): its methods block."""

    def read(self) -> JobOutput:  # type: ignore[override]  # the blocking twin of the coroutine above
        """Return what the job has written since it was last read."""
        return self._job.read()

    def wait(self, timeout: float | None = None) -> JobOutput:  # type: ignore[override]  # see `read`
        """Wait until all processes of the job have ended, and return what it has written since.

        Raises:
            TimeoutError: it has not ended within `timeout` seconds.
        """
        if not self._job.ended.wait(timeout):
            raise TimeoutError(f"the job still runs after {timeout} s; stop() ends it")
        return self._job.read()

    def stop(self) -> None:  # type: ignore[override]  # see `read`
        """End the job: SIGTERM, then SIGKILL after half the grace period."""
        self._job.signal(signal.SIGTERM)
        if not self._job.ended.wait(self._grace / 2):
            self._job.kill()
            self._job.ended.wait(self._grace)
