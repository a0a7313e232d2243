"""A shell that follows a script: what a session does when reports come in pieces, late, or not at all.

The processes, pipes and timing are the session's own; only what the shell says, and when, is made up. Used by
tests; it must never touch a real process.
"""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import attrs

from ..environment.base import ShellEnvironment
from ..executors.base import Executor
from ..policy.confinement import Confinement
from ..process.base import Process
from ..process.pipes import PipeSource
from ..process.procfs import bytes_waiting
from ..process.tree import Containment
from ..protocol.bash import BashDialect
from ..sessions.base import Session, SessionSettings
from ..sessions.persistent import PersistentSession
from ..sessions.turnstile import Turnstile

__all__ = ["Await", "Exit", "Expect", "Hang", "Report", "ScriptedExecutor", "ScriptedProcess", "Send", "Step"]

Signal = Literal["interrupt", "terminate", "kill", "close"]

#: Above every process id there can be (PID_MAX_LIMIT, proc(5)): nothing real is ever looked at or signalled.
_NO_PROCESS = (1 << 22) + 1
_TOKEN = re.compile(rb"[0-9a-f]{24}")


@attrs.frozen
class Expect:
    """Wait until the session has written something that `pattern` is found in; that much is then consumed."""

    pattern: bytes


@attrs.frozen
class Send:
    """Write to the control channel, `%TOKEN%` replaced by the session's token.

    Attributes:
        data: what to write.
        chunk: bytes a write; 0 writes it at once. The next write waits until the session has read the last.
    """

    data: bytes
    chunk: int = 0


def Report(exit_code: int = 0, workdir: bytes = b"/", *, chunk: int = 0) -> Send:  # noqa: N802  (reads as a step)
    """Return the step that reports the end of a command (see `protocol/machine.py`)."""
    return Send(b"%%TOKEN%% E %d %b\0" % (exit_code, workdir), chunk)


@attrs.frozen
class Await:
    """Wait until the session interrupts, terminates or kills the shell, or closes its stdin."""

    signal: Signal


@attrs.frozen
class Exit:
    """End the process; what has been sent before can still be read."""

    code: int = 0


@attrs.frozen
class Hang:
    """Never answer again; only a kill ends it."""


Step = Expect | Send | Await | Exit | Hang


class ScriptedProcess(Process):
    """A `Process` whose shell is a thread that follows a script, on real pipes.

    At the end of the script it stays silent until it is killed or its stdin closes, as an idle shell would.
    `failure` says which step did not come to pass.

    Args:
        script: what the shell does.
        pipes: where the control channel comes from.
        patience: seconds that `Expect` and `Await` wait.
    """

    def __init__(self, script: Sequence[Step], pipes: PipeSource, patience: float = 10.0) -> None:
        self.pid = _NO_PROCESS
        self.failure = ""
        self.signals: list[Signal] = []
        self._script = tuple(script)
        self._patience = patience
        self._status: int | None = None
        self._received = b""
        self._token = b""
        self._mutex = threading.Lock()
        self._shell_stdin, self.stdin = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.stdin, False)
        os.set_blocking(self._shell_stdin, False)
        self.control = pipes.make()
        self._writer = os.open(self.control.path, os.O_WRONLY | os.O_CLOEXEC)
        self.exited = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._signalled = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._follow, name="shellkit-scripted", daemon=True)
        self._thread.start()

    # -- what the session sees -------------------------------------------------------------------------

    def interrupt(self) -> None:
        self._signal("interrupt")

    def terminate(self) -> None:
        self._signal("terminate")

    def kill(self) -> None:
        self._signal("kill")

    def kill_shell(self) -> None:
        self._signal("kill")

    def command_survives(self) -> bool:
        return False

    def exit_code(self) -> int | None:
        return self._status

    def close_stdin(self) -> None:
        fd, self.stdin = self.stdin, -1
        if fd >= 0:
            os.close(fd)
            self._signal("close")

    def close(self) -> None:
        self.close_stdin()
        if self.exited < 0:
            return
        self._signal("kill")
        self._thread.join()
        self.control.close()
        os.close(self.exited)
        os.close(self._signalled)
        self.exited = -1

    def _signal(self, name: Signal) -> None:
        with self._mutex:
            self.signals.append(name)
        os.eventfd_write(self._signalled, 1)

    # -- the shell: everything below runs in the thread ------------------------------------------------

    def _follow(self) -> None:
        code = 137
        try:
            code = self._play()
        except _Killed:
            pass
        finally:
            # As the kernel does: first the descriptors go, then the end is told.
            os.close(self._writer)
            os.close(self._shell_stdin)
            self._status = code
            os.eventfd_write(self.exited, 1)

    def _play(self) -> int:
        for step in self._script:
            match step:
                case Expect(pattern):
                    self._wait(partial(self._consume, pattern), step)
                case Send(data, chunk):
                    self._send(data.replace(b"%TOKEN%", self._token), chunk)
                case Await(signal):
                    self._wait(partial(self._has_come, signal), step)
                case Exit(code):
                    return code
                case Hang():
                    self._wait(lambda: False, None)
        self._wait(partial(self._has_come, "close"), None)
        return 0

    def _wait(self, come: Callable[[], bool], step: Step | None) -> None:
        give_up = time.monotonic() + self._patience
        poller = select.poll()
        poller.register(self._shell_stdin, select.POLLIN)
        poller.register(self._signalled, select.POLLIN)
        while not come():
            if "kill" in self.signals:
                if step is not None:
                    self.failure = f"killed while it waited for {step}; had received {self._received!r}"
                raise _Killed
            left = None if step is None else give_up - time.monotonic()
            if left is not None and left <= 0:
                self.failure = f"waited {self._patience:g} s for {step}; had received {self._received!r}"
                raise _Killed
            for fd, _ in poller.poll(None if left is None else left * 1000):
                if fd == self._signalled:
                    os.eventfd_read(fd)
                elif not self._read():
                    poller.unregister(fd)

    def _read(self) -> bool:
        data = os.read(self._shell_stdin, 1 << 16)
        self._received += data
        if not self._token and (token := _TOKEN.search(self._received)):
            self._token = token.group()
        return bool(data)

    def _has_come(self, signal: Signal) -> bool:
        return signal in self.signals

    def _consume(self, pattern: bytes) -> bool:
        found = re.search(pattern, self._received, re.DOTALL)
        if found:
            self._received = self._received[found.end() :]
        return found is not None

    def _send(self, data: bytes, chunk: int) -> None:
        size = chunk or len(data)
        for start in range(0, len(data), size):
            os.write(self._writer, data[start : start + size])
            # The next piece shall not join this one in the pipe. Whoever reads is another thread, or a poll away.
            while start + size < len(data) and bytes_waiting(self._writer) and "kill" not in self.signals:
                os.sched_yield()


class _Killed(Exception):
    """The script is over before its end."""


class ScriptedExecutor(Executor):
    """An executor whose shells follow scripts: the first shell the first one, and so on.

    Args:
        scripts: one for every shell that may be started; more are a failure.
        timeout: as `LocalExecutor`; likewise `grace`, `start_timeout` and `max_output_bytes`.

    Attributes:
        started: the shells that have been started.
    """

    def __init__(
        self,
        *scripts: Sequence[Step],
        timeout: float | None = 30.0,
        grace: float = 2.0,
        start_timeout: float = 10.0,
        max_output_bytes: int = 65536,
    ) -> None:
        super().__init__(timeout=timeout, grace=grace)
        self._scripts = list(scripts)
        self._start_timeout = start_timeout
        self.max_output_bytes = max_output_bytes
        self.started: list[ScriptedProcess] = []

    @property
    def confinement(self) -> Confinement:
        return Confinement("off", b"/", os.path.realpath)

    @property
    def base_workdir(self) -> bytes:
        return b"/"

    @property
    def family(self) -> str:
        return BashDialect.family

    def facts(self) -> ShellEnvironment:
        return ShellEnvironment(family="bash")

    def make_session(self, turnstile: Turnstile) -> Session:
        settings = SessionSettings(
            dialect=BashDialect(),
            spawn=self._spawn,
            shell_name="scripted shell",
            environment=dict,
            workdir=b"/",
            confinement=self.confinement,
            startup_commands=(),
            grace=self.grace,
            start_timeout=self._start_timeout,
            max_output_bytes=self.max_output_bytes,
        )
        return PersistentSession(settings, turnstile)

    def check(self) -> None:
        """Fail if a script did not come to pass, or was never begun."""
        failures = [process.failure for process in self.started if process.failure]
        if len(self.started) != len(self._scripts):
            failures.append(f"{len(self.started)} shells were started, there are {len(self._scripts)} scripts")
        if failures:
            raise AssertionError("; ".join(failures))

    def _spawn(self, _env: Mapping[bytes, bytes], pipes: PipeSource, _containment: Containment) -> Process:
        # One more than there are scripts ends at once, and `check` tells.
        script = dict(enumerate(self._scripts)).get(len(self.started), (Exit(1),))
        process = ScriptedProcess(script, pipes)
        self.started.append(process)
        return process
