"""A shell as a child of this process."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

from . import procfs
from .base import Process
from .ending import look, watch
from .pipes import PipeSource
from .spawn import spawn
from .tree import Containment, send

__all__ = ["LocalProcess"]


class LocalProcess(Process):
    """Start a shell that reads commands from a pipe and reports on another.

    Args:
        argv: the shell's program and arguments.
        env: its whole environment.
        pipes: where the control channel comes from.
        containment: the processes of the session that the shell belongs to.
        interrupt_signal: number of the signal that the shell's wrapper traps.

    Raises:
        SpawnError: the program cannot be executed, or the system has no room for a process.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[bytes, bytes],
        pipes: PipeSource,
        containment: Containment,
        interrupt_signal: int,
    ) -> None:
        self._containment = containment
        self._interrupt_signal = interrupt_signal
        self._status: int | None = None
        self._ended = False
        self._interrupting = False
        self._interrupted: dict[int, bytes] = {}
        self.exited = -1
        with contextlib.ExitStack() as lent, contextlib.ExitStack() as undo:
            child_stdin, self.stdin = os.pipe2(os.O_CLOEXEC)
            lent.callback(os.close, child_stdin)
            undo.callback(self.close_stdin)
            os.set_blocking(self.stdin, False)
            self.control = pipes.make()
            undo.callback(self.close)
            child_stdout = os.open(self.control.path, os.O_WRONLY | os.O_CLOEXEC)
            lent.callback(os.close, child_stdout)
            null = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
            lent.callback(os.close, null)
            self.pid = spawn(argv, env, child_stdin, child_stdout, null)
            self.exited = watch(self.pid)
            undo.pop_all()

    def interrupt(self) -> None:
        # The shell first: once its command has died it would else start the next one. SIGCONT, because a
        # stopped process takes no other signal.
        # A fork of the shell that has not become its program yet may swallow the signal: ask for the program.
        running = {pid: procfs.program(pid) for pid in self._containment.running()}
        members = [pid for pid, program in running.items() if self._interrupted.get(pid, b"") != program]
        if not self._interrupting:
            self._interrupting = True
            self._signal_shell(self._interrupt_signal)
            self._signal_shell(signal.SIGCONT)
        send(members, signal.SIGINT)
        send(members, signal.SIGCONT)
        self._interrupted.update(running)

    def terminate(self) -> None:
        members = self._containment.running()
        send(members, signal.SIGTERM)
        send(members, signal.SIGCONT)
        self._signal_shell(signal.SIGCONT)

    def kill(self) -> None:
        self.kill_shell()
        # What forks faster than it is killed needs several looks; the driver comes back until none is left.
        send(self._containment.running(), signal.SIGKILL)

    def kill_shell(self) -> None:
        self._signal_shell(signal.SIGKILL)

    def command_survives(self) -> bool:
        return bool(self._containment.running())

    def exit_code(self) -> int | None:
        if not self._ended and (ending := look(self.exited)) is not None:
            self._ended = True
            self._status, self.signalled = ending.exit_code, ending.by_signal
        return self._status

    def close_stdin(self) -> None:
        fd, self.stdin = self.stdin, -1
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        self.close_stdin()
        self.control.close()
        fd, self.exited = self.exited, -1
        if fd >= 0:
            os.close(fd)

    def _signal_shell(self, number: int) -> None:
        # By pidfd: the number may by now belong to somebody else (pidfd_send_signal(2)).
        if not self._ended:
            try:
                signal.pidfd_send_signal(self.exited, number)
            except ProcessLookupError:
                return
