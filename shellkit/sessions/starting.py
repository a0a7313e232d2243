"""Start shells for one session, and keep one ready ahead of time where shells are used up (contract G5).

Starting has three parts: the process, its prelude, and its place in the containment. The last is the attendant's
errand: nobody waits for it. A spare shell is used only while nothing but speed can tell it from a new one.
"""

from __future__ import annotations

import os
import re
import resource
import secrets
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable

import attrs

from ..errors import InvalidWorkdir, SpawnError
from ..process import reaper
from ..process.pipes import PipeSource
from ..process.room import room_for
from ..process.tree import Containment
from ..protocol.base import Link
from ..protocol.machine import Machine
from .attendant import Attendant
from .base import SessionSettings
from .drive import Procedure, drive_blocking
from .exchange import Exchange
from .live import LiveShell
from .stop import StopRequest

__all__ = ["Starter"]

#: Seconds after which a shell is put into the containment: one that is used up sooner is not worth the stall.
ENTER_SECONDS = 0.05

_NO_SHELL = "no shell can be started"
#: What may start a process without the session's cookie in its environment, which only a cgroup can hold then.
_ESCAPING = re.compile(rb"\benv\s+-|\bexec\s+-c|\bunset\b|\bsudo\b|\bdoas\b|\bsu\b|SHELLKIT_SESSION")

_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))


@attrs.frozen
class _Circumstances:
    """What a child inherits: a spare shell that was started under others is no good."""

    environment: dict[bytes, bytes]
    umask: bytes
    limits: tuple[tuple[int, int], ...]
    workdir: tuple[int, int]


class Starter:
    """Starts the shells of one session.

    Args:
        settings: how.
        containment: where they belong.
        pipes: where their pipes come from.
        attendant: does what may block.
        stop: by which a session's procedure is called for attention; not owned.
        cookie: the session's name in the environment.
        keeps_state: whether the shells print their state when they end.
    """

    def __init__(
        self,
        settings: SessionSettings,
        containment: Containment,
        pipes: PipeSource,
        attendant: Attendant,
        stop: StopRequest,
        cookie: str,
        *,
        keeps_state: bool,
    ) -> None:
        self._settings = settings
        self._containment = containment
        self._pipes = pipes
        self._attendant = attendant
        self._stop = stop
        self._cookie = cookie
        self._keeps_state = keeps_state
        self._mutex = threading.Condition()  # tells when a spare is no longer being made
        self._spare: tuple[_Circumstances, LiveShell] | None = None
        self._preparing = False
        self._closed = False

    # -- for sessions ----------------------------------------------------------------------------------

    def open(self, workdir: bytes) -> Procedure[LiveShell]:
        """Return a shell that stands in `workdir` and is ready for its first line.

        Raises:
            SpawnError: there is no process to be had, or it does not behave like a shell.
            InvalidWorkdir: the directory cannot be entered.
        """
        if self._preparing:
            with room_for(_NO_SHELL):
                prepared = _Awaited(self._stop, lambda: not self._preparing)
            yield prepared
        with room_for(_NO_SHELL):
            circumstances = self._circumstances(workdir)
        spare = self._take_spare()
        if spare is not None:
            if spare[0] == circumstances and spare[1].process.exit_code() is None:
                return spare[1]
            self.discard(spare[1])
        live = yield from self._start(circumstances.environment, workdir)
        self._take_in(live)
        return live

    def take_in_first(self, live: LiveShell, text: bytes) -> Procedure[None]:
        """Put a shell that is not in the containment yet into it, if only that can hold what a command may start."""
        pid = live.process.pid
        if self._containment.is_outside(pid) and _ESCAPING.search(text):
            done = threading.Event()
            self._attendant.run(lambda: self._enter(pid, done))
            yield _Awaited(self._stop, done.is_set)

    def prepare(self, workdir: bytes) -> None:
        """Have a spare shell ready for the next `open`, made in the attendant's thread."""
        with self._mutex:
            if self._preparing or self._spare is not None or self._closed:
                return
            self._attendant.run(lambda: self._make_spare(workdir))
            self._preparing = True  # last, for who waits for it would wait for ever if KeyboardInterrupt came between

    def keep(self, live: LiveShell, workdir: bytes) -> None:
        """Keep an unused shell as the spare one."""
        with self._mutex:
            if self._spare is None and not self._closed:
                self._spare = (self._circumstances(workdir), live)
                return
        self.discard(live)

    def discard(self, live: LiveShell) -> None:
        """Kill a shell and give everything back."""
        live.process.kill_shell()
        live.wait_for_end()
        self.release(live)

    def release(self, live: LiveShell) -> None:
        """Give everything of a shell that has ended back."""
        self._containment.leave(live.process.pid)
        live.close()

    def close(self, patience: float = 0.0) -> None:
        """End the spare shell; idempotent.

        Args:
            patience: seconds to wait for one that is being made: it may hold the last descriptors of the host.
        """
        with self._mutex:
            self._closed = True
            self._mutex.wait_for(lambda: not self._preparing, patience)
        spare = self._take_spare()
        if spare is not None:
            self.discard(spare[1])

    # -- starting --------------------------------------------------------------------------------------

    def _start(self, environment: dict[bytes, bytes], workdir: bytes) -> Procedure[LiveShell]:
        live = self._spawn(environment)
        try:
            hello = _Hello(live, live.machine.start(workdir), self._settings.start_timeout)
            yield hello
            if hello.ended or hello.finished is None:
                raise SpawnError(self._why_no_start(hello))
            if hello.finished.exit_code:
                raise InvalidWorkdir(f"cannot enter the working directory {os.fsdecode(workdir)}; name another workdir")
            with room_for(_NO_SHELL):
                reaper.watch(self._cookie, live.process.pid, self._containment.path)
        except BaseException:
            self.discard(live)
            raise
        return live

    def _spawn(self, environment: dict[bytes, bytes]) -> LiveShell:
        settings = self._settings
        with room_for(_NO_SHELL):
            poller = select.epoll()  # first: what fails later would have to end the process
            process = settings.spawn(environment, self._pipes, self._containment)
        self._containment.announce(process.pid)
        number = int(getattr(signal, settings.dialect.interrupt_signal))
        token = secrets.token_hex(12).encode()
        link = Link(token, process.control.path, number, keeps_state=self._keeps_state)
        machine = Machine(settings.dialect, link)
        return LiveShell(process, machine, self._pipes, settings.max_output_bytes, self._stop, poller)

    def _why_no_start(self, hello: Exchange) -> str:
        name = self._settings.shell_name
        remedy = "name another one with shell=... (bash, sh, zsh, ksh, mksh or busybox)"
        if hello.stopped and not hello.lost:
            return f"starting the shell {name} was given up"
        if hello.lost or hello.expired:
            limit = f" within {self._settings.start_timeout:g} s" if hello.expired else ""
            return f"shell did not answer{limit}: {name} does not behave like a shell that reads commands; {remedy}"
        return f"shell exited during start: {name} ended with exit code {hello.exit_code}; {remedy}"

    # -- the spare -------------------------------------------------------------------------------------

    def _make_spare(self, workdir: bytes) -> None:
        """Called in the attendant's thread."""
        live = None
        try:
            if self._closed:
                return
            with room_for(_NO_SHELL):
                circumstances = self._circumstances(workdir)
            live = drive_blocking(self._start(circumstances.environment, workdir))
        except SpawnError:
            return  # the next `open` tries again, and tells whoever called it
        finally:
            with self._mutex:
                kept = live is not None and self._spare is None and not self._closed
                if live is not None and kept:
                    self._spare = (circumstances, live)
                self._preparing = False
                self._mutex.notify_all()
            self._stop.notify()
        if kept:
            self._take_in(live)
        else:
            self.discard(live)

    def _take_in(self, live: LiveShell) -> None:
        pid = live.process.pid
        self._attendant.run(lambda: self._containment.enter(pid), after=ENTER_SECONDS)

    def _enter(self, pid: int, done: threading.Event) -> None:
        """Called in the attendant's thread."""
        try:
            self._containment.enter(pid)
        finally:  # where the system refuses, a command runs all the same, and is held as well as may be
            done.set()
            self._stop.notify()

    def _take_spare(self) -> tuple[_Circumstances, LiveShell] | None:
        with self._mutex:
            spare, self._spare = self._spare, None
            return spare

    def _circumstances(self, workdir: bytes) -> _Circumstances:
        environment = {**self._settings.environment(), b"SHELLKIT_SESSION": self._cookie.encode()}
        try:
            status = os.stat(workdir)
        except OSError:
            raise InvalidWorkdir(
                f"working directory does not exist: {os.fsdecode(workdir)}; create it or name another"
            ) from None
        limits = tuple(resource.getrlimit(limit) for limit in _LIMITS)
        return _Circumstances(environment, _umask(), limits, (status.st_dev, status.st_ino))


class _Hello(Exchange):
    """Wait for a new shell's first trailer; it has no state yet that could be lost."""

    interruptible = True


class _Awaited(Exchange):
    """Wait until an errand of the attendant's is done, which tells by `stop.notify`."""

    def __init__(self, stop: StopRequest, done: Callable[[], bool]) -> None:
        self._done = done
        self._look_at = time.monotonic() + 1.0
        self.poller, self.home = select.epoll(), None
        self.poller.register(stop.wake, select.EPOLLIN | select.EPOLLET)
        self.more = False

    @property
    def deadline(self) -> float:
        return self._look_at

    def begin(self) -> None:
        return

    def close(self) -> None:
        self.poller.close()

    def step(self, ready: Iterable[tuple[int, int]]) -> bool:
        self._look_at = time.monotonic() + 1.0
        return self._done()

    def stop(self) -> None:
        """Neither making a spare nor entering can be given up: one is bounded by the start time-out, one is short."""


def _umask() -> bytes:
    # Reading it with umask(2) would change it for a moment, in every thread (proc(5), /proc/PID/status).
    with open("/proc/self/status", "rb", buffering=0) as file:
        status = file.read(4096)
    at = status.find(b"Umask:")
    return status[at : status.find(b"\n", at)]
