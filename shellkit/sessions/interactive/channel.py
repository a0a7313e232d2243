"""`Channel`: how the host and an interactive program are connected: by a terminal, or by two pipes.

Made by `Program`, which reads and writes the descriptors; nothing here waits.
"""

from __future__ import annotations

import contextlib
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from ...errors import SpawnError
from ...process.pty import Terminal
from ...process.spawn import spawn, spawn_on_terminal

__all__ = ["Channel", "PipeChannel", "TerminalChannel"]


class Channel(ABC):
    """A connection to one program.

    Attributes:
        reader: what the program prints; it does not block. Owned by this object.
        writer: what is typed; it does not block; -1 once closed. Owned by this object.
        terminal: the terminal, if it is one.
    """

    reader: int
    writer: int
    terminal: Terminal | None = None

    @abstractmethod
    def spawn(self, argv: Sequence[str], env: Mapping[bytes, bytes]) -> int:
        """Start the program on the other end, and return its process id; called once."""

    @abstractmethod
    def interrupt(self, pid: int) -> None:
        """Send SIGINT to what a person would stop with Ctrl-C."""

    @abstractmethod
    def names(self) -> frozenset[str]:
        """Return what /proc/PID/fd calls the program's end of the input."""

    @abstractmethod
    def close_writer(self) -> None:
        """Close the program's input; idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Give all descriptors back; idempotent."""


class TerminalChannel(Channel):
    """A pseudo-terminal: the program's stdin, stdout, stderr and controlling terminal."""

    def __init__(self, rows: int, columns: int) -> None:
        try:
            self.terminal = self._terminal = Terminal(rows, columns)
        except OSError as error:
            raise SpawnError(
                f"there is no terminal to be had: {error.strerror}; close files, end other programs, mount /dev/pts, "
                "or use tty=False"
            ) from error
        self.reader = self.writer = self._terminal.master

    def spawn(self, argv: Sequence[str], env: Mapping[bytes, bytes]) -> int:
        return spawn_on_terminal(argv, env, self._terminal.path)

    def interrupt(self, pid: int) -> None:
        self._terminal.interrupt()

    def names(self) -> frozenset[str]:
        return frozenset({self._terminal.path, "/dev/tty"})

    def close_writer(self) -> None:
        """A terminal has no end-of-file of its own: `Program.close_stdin` types one."""

    def close(self) -> None:
        self.reader = self.writer = -1
        self._terminal.close()


class PipeChannel(Channel):
    """Two pipes: stdin; and stdout and stderr together, in the order written."""

    def __init__(self) -> None:
        self._child_stdin, self.writer = os.pipe2(os.O_CLOEXEC)
        try:
            self.reader, self._child_stdout = os.pipe2(os.O_CLOEXEC)
        except OSError:
            os.close(self._child_stdin)
            os.close(self.writer)
            raise
        os.set_blocking(self.writer, False)
        os.set_blocking(self.reader, False)

    def spawn(self, argv: Sequence[str], env: Mapping[bytes, bytes]) -> int:
        try:
            return spawn(argv, env, self._child_stdin, self._child_stdout, self._child_stdout)
        finally:
            self._close_child_ends()

    def interrupt(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGINT)  # it leads a group of its own

    def names(self) -> frozenset[str]:
        return frozenset({os.readlink(f"/proc/self/fd/{self.writer}")}) if self.writer >= 0 else frozenset()

    def close_writer(self) -> None:
        fd, self.writer = self.writer, -1
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        self.close_writer()
        self._close_child_ends()
        fd, self.reader = self.reader, -1
        if fd >= 0:
            os.close(fd)

    def _close_child_ends(self) -> None:
        for fd in (self._child_stdin, self._child_stdout):
            if fd >= 0:
                os.close(fd)
        self._child_stdin = self._child_stdout = -1
