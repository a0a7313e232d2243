"""What Linux tells about processes under /proc. Read by `tree`, `local` and the sessions' watchdog.

Every function answers for processes that may vanish at any moment: a process that is gone is simply absent.
Formats: proc(5).
"""

from __future__ import annotations

import os
import struct
from fcntl import ioctl
from termios import FIONREAD

import attrs

__all__ = [
    "Children",
    "Stat",
    "bytes_waiting",
    "has_environment",
    "is_reading",
    "processes",
    "program",
    "stat",
    "workdir",
]


@attrs.frozen
class Stat:
    """One line of /proc/PID/stat, as far as it matters here.

    Attributes:
        pid: process id.
        parent: its parent's id.
        state: one letter; Z is a zombie.
        started: start time in clock ticks since boot; with the pid it names a process for good.
    """

    pid: int
    parent: int
    state: str
    started: int


def stat(pid: int) -> Stat | None:
    """Return the process's line, or None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            line = file.read(4096)
    except OSError:
        return None
    # The name in parentheses may hold anything, parentheses and newlines included.
    fields = line[line.rfind(b")") + 2 :].split()
    return Stat(pid, int(fields[1]), fields[0].decode("ascii"), int(fields[19])) if len(fields) > 19 else None


def processes() -> dict[int, Stat]:
    """Return all processes that can be seen, by id."""
    found = (stat(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {entry.pid: entry for entry in found if entry is not None}


class Children:
    """The direct children of a single-threaded process, from a file that is kept open: asked for after every command.

    Args:
        pid: the process; it may end at any time, and then has none.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._fd = os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # it is gone, or the kernel was built without CONFIG_PROC_CHILDREN
            self._fd = -1

    def read(self) -> list[int]:
        """Return their ids (some 500 at the most)."""
        if self._fd < 0:
            return []
        try:
            return [int(word) for word in os.pread(self._fd, 4096, 0).split()]
        except OSError:
            return []

    def close(self) -> None:
        """Give the descriptor back; idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def has_environment(pid: int, entry: bytes) -> bool | None:
    """Return whether `entry` (`NAME=value`) stands in the environment that the process was started with.

    None if it has none at this moment: a kernel thread, or a process in the middle of execve(2).
    """
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            found = file.read(1 << 20)
    except OSError:
        return False
    return entry in found.split(b"\0") if found else None


def workdir(pid: int) -> bytes | None:
    """Return the real path of the process's directory (" (deleted)" appended by the kernel), or None."""
    try:
        return os.readlink(b"/proc/%d/cwd" % pid)
    except OSError:
        return None


def program(pid: int) -> bytes:
    """Return the path of the program that the process runs at this moment; something is returned even if it is gone."""
    try:
        return os.readlink(b"/proc/%d/exe" % pid)
    except OSError:
        return b"unknown"


def bytes_waiting(fd: int) -> int:
    """Return how many bytes a pipe holds; either end will do (pipe(7), FIONREAD)."""
    return int(struct.unpack("i", ioctl(fd, FIONREAD, b"\0\0\0\0"))[0])


#: read(2) on the architectures that Linux distributions ship (x86_64; arm64 and riscv64 share asm-generic).
_READ = {"x86_64": "0", "aarch64": "63", "riscv64": "63"}.get(os.uname().machine)


def is_reading(pid: int, pipe: int) -> bool | None:
    """Return whether the process is blocked in read(2) on the pipe that our descriptor `pipe` belongs to.

    None if the kernel does not say (another architecture, or ptrace access denied by Yama).
    """
    if _READ is None:
        return None
    try:
        with open(f"/proc/{pid}/syscall", "rb", buffering=0) as file:
            words = file.read(256).split()
        if len(words) < 2 or words[0] != _READ.encode():
            return False
        return os.readlink(f"/proc/{pid}/fd/{int(words[1], 16)}") == os.readlink(f"/proc/self/fd/{pipe}")
    except PermissionError:
        return None
    except OSError:
        return False
