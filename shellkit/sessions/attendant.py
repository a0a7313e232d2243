"""A session's thread for what must happen while nobody calls: draining jobs, and taking the idle checkpoint,
and what may block.

A thread and not the event loop, because a session lives on between two `asyncio.run`, under `sync()`, and
while the host's loop is busy (contract D4, E1, I2). It sleeps unless a job writes or the session has just
become idle; a busy session costs it one wake-up every 20 ms, and the session nothing.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable

from .jobs import Job
from .live import Capture

__all__ = ["IDLE_SECONDS", "Attendant"]

#: How long a session must have been idle before its state is printed (contract D4).
IDLE_SECONDS = 0.02

_log = logging.getLogger("shellkit")

#: Bytes of one job's stream to read before looking at the others.
_BUDGET = 1 << 20


class Attendant:
    """The thread; started with the first thing to do.

    Args:
        when_idle: called in the thread once the session has been idle for `IDLE_SECONDS`.
    """

    def __init__(self, when_idle: Callable[[], None]) -> None:
        self._when_idle = when_idle
        self._thread: threading.Thread | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            self._poller = select.epoll()
        except BaseException:
            os.close(self._wake)
            raise
        self._poller.register(self._wake, select.EPOLLIN)
        self._mutex = threading.Lock()
        self._jobs: list[Job] = []
        self._streams: dict[int, tuple[Job, Capture]] = {}
        self._processes: dict[int, Job] = {}
        self._shells: dict[int, Job] = {}
        self._errands: list[tuple[float, Callable[[], None]]] = []
        self._idle_at: float | None = None
        self._parked = False
        self._stopping = False

    # -- called by the session -------------------------------------------------------------------------

    def session_idle(self) -> None:
        """Account for the end of a command; called after every one, so it must cost next to nothing."""
        self._idle_at = time.monotonic() + IDLE_SECONDS
        if self._parked:
            self._parked = False
            os.eventfd_write(self._wake, 1)
        elif self._thread is None:
            self._start()

    def run(self, errand: Callable[[], None], *, after: float = 0.0) -> None:
        """Call `errand` in the thread, `after` seconds from now; for what may block longer than a loop should."""
        with self._mutex:
            self._errands.append((time.monotonic() + after, errand))
        os.eventfd_write(self._wake, 1)
        if self._thread is None:
            self._start()

    def jobs(self) -> list[Job]:
        """The jobs that have not ended."""
        with self._mutex:
            return list(self._jobs)

    def attend(self, job: Job) -> None:
        """Drain a job until it ends."""
        with self._mutex:
            self._jobs.append(job)
            for capture in job.captures or ():
                if not capture.ended:
                    self._streams[capture.pipe.fd] = (job, capture)
                    self._poller.register(capture.pipe.fd, select.EPOLLIN)
            for fd in job.pidfds.values():
                self._watch_process(job, fd)
            if job.shell is not None:
                for fd in (job.shell.process.control.fd, job.shell.process.exited):
                    self._shells[fd] = job
                    # Edge-triggered: the channel of a shell that has ended hangs up, and stays so.
                    self._poller.register(fd, select.EPOLLIN | select.EPOLLET)
        if self._thread is None:
            self._start()

    def stop(self) -> None:
        """End the thread and finish all jobs, whose processes must be gone; idempotent."""
        if self._stopping:
            return
        self._stopping = True
        if self._thread is not None:
            os.eventfd_write(self._wake, 1)
            if self._thread is not threading.current_thread():
                self._thread.join()
        for job in self.jobs():
            self._forget(job)
        self._poller.close()
        os.close(self._wake)

    # -- the thread ------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="shellkit-attendant", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # A signal that the kernel gave to this thread would not wake the one that Python handles it in (Ctrl-C).
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            for fd, _ in self._poller.poll(self._patience()):
                if fd == self._wake:
                    os.eventfd_read(fd)
                elif fd in self._streams:
                    self._drain(fd)
                elif fd in self._processes:
                    self._process_ended(fd)
                elif fd in self._shells:
                    self._hear(fd)
            if self._stopping:
                return
            self._run_errands()
            idle_at = self._idle_at
            if idle_at is not None and time.monotonic() >= idle_at:
                self._idle_at = None
                self._do(self._when_idle)

    def _run_errands(self) -> None:
        now = time.monotonic()
        with self._mutex:
            due = [errand for at, errand in self._errands if at <= now]
            self._errands = [(at, errand) for at, errand in self._errands if at > now]
        for errand in due:
            self._do(errand)

    def _do(self, errand: Callable[[], None]) -> None:
        try:
            errand()
        except Exception:  # noqa: BLE001  (the thread must live on for the jobs it drains; the next command retries)
            _log.exception("an errand of a shell session failed")

    def _patience(self) -> float | None:
        # Parked first, then a look: `session_idle` sets the time first, then looks whether we are parked.
        self._parked = True
        idle_at = self._idle_at
        if idle_at is not None:
            self._parked = False
        with self._mutex:
            times = [at for at, _ in self._errands]
        if idle_at is not None:
            times.append(idle_at)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _drain(self, fd: int) -> None:
        job, capture = self._streams[fd]
        with job.lock:
            capture.drain(_BUDGET)
        if capture.ended:
            with self._mutex:
                self._poller.unregister(fd)
                del self._streams[fd]
            self._look(job)

    def _process_ended(self, fd: int) -> None:
        job = self._processes[fd]
        with self._mutex:
            self._poller.unregister(fd)
            del self._processes[fd]
            job.close_pidfd(fd)
            if not job.pidfds:
                for new in job.open_pidfds():
                    self._watch_process(job, new)
        self._look(job)

    def _hear(self, fd: int) -> None:
        job = self._shells[fd]
        ended = job.shell is not None and fd == job.shell.process.exited
        if ended:
            self._forget_shell(job)
        with job.lock:
            job.hear()
            if ended:
                job.shell_ended()
        self._look(job)

    def _forget_shell(self, job: Job) -> None:
        with self._mutex:
            for fd in [fd for fd, owner in self._shells.items() if owner is job]:
                del self._shells[fd]
                self._poller.unregister(fd)

    def _watch_process(self, job: Job, fd: int) -> None:
        self._processes[fd] = job
        self._poller.register(fd, select.EPOLLIN)

    def _look(self, job: Job) -> None:
        """Finish the job when its last process is gone and nobody writes to its pipes any more."""
        if job.pidfds or job.shell is not None or any(not capture.ended for capture in job.captures or ()):
            return
        self._forget(job)

    def _forget(self, job: Job) -> None:
        self._forget_shell(job)
        with self._mutex:
            for fd in [fd for fd, (owner, _) in self._streams.items() if owner is job]:
                del self._streams[fd]
                self._poller.unregister(fd)
            for fd in [fd for fd, owner in self._processes.items() if owner is job]:
                del self._processes[fd]
                self._poller.unregister(fd)
            with contextlib.suppress(ValueError):
                self._jobs.remove(job)
        job.finish()
