"""Pipes that a shell opens by path: the host holds the reading end, a writer appears only while it writes.

A pipe's reading end can be opened for writing through /proc/<host>/fd/<n> by a process of the same user
(proc(5); pipe(7): opening works as for a FIFO). When all writers are gone, the reader sees end-of-file and
the pipe can be used again; while a background job holds it, it belongs to that job. Where /proc/<host> is
closed to the shell (a host that is not dumpable), the same is done with FIFOs in a private directory.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from abc import ABC, abstractmethod

__all__ = ["FifoPipes", "Pipe", "PipeSource", "ProcPipes", "pipe_source"]


class Pipe:
    """One pipe: `fd` is the host's reading end (owned by this object), `path` is what a writer opens."""

    def __init__(self, fd: int, path: bytes, *, fifo: bool) -> None:
        self.fd = fd
        self.path = path
        self._fifo = fifo

    def close(self) -> None:
        """Give the descriptor, and the FIFO if there is one, back to the system; idempotent."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        os.close(fd)
        if self._fifo:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)


class PipeSource(ABC):
    """Makes the pipes of one session."""

    @abstractmethod
    def make(self) -> Pipe:
        """Return a new pipe whose reading end does not block."""

    @abstractmethod
    def file(self, content: bytes) -> tuple[bytes, int]:
        """Return (path, descriptor) of an anonymous file with `content`; the caller closes the descriptor."""

    def close(self) -> None:  # noqa: B027  (only the FIFO form has something to remove)
        """Remove what `make` needed besides the pipes themselves."""


class ProcPipes(PipeSource):
    """Pipes named by the host's own descriptors."""

    def make(self) -> Pipe:
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.close(writer)
        return Pipe(reader, b"/proc/%d/fd/%d" % (os.getpid(), reader), fifo=False)

    def file(self, content: bytes) -> tuple[bytes, int]:
        fd = os.memfd_create("shellkit", os.MFD_CLOEXEC)
        _fill(fd, content)
        return b"/proc/%d/fd/%d" % (os.getpid(), fd), fd


class FifoPipes(PipeSource):
    """Pipes named by FIFOs in a directory that only this user may enter."""

    def __init__(self) -> None:
        self._directory = tempfile.mkdtemp(prefix="shellkit-").encode()
        self._count = 0

    def _next_path(self) -> bytes:
        self._count += 1
        return self._directory + b"/%d" % self._count

    def make(self) -> Pipe:
        path = self._next_path()
        os.mkfifo(path, 0o600)
        return Pipe(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path, fifo=True)

    def file(self, content: bytes) -> tuple[bytes, int]:
        path = self._next_path()
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        _fill(fd, content)
        return path, fd

    def close(self) -> None:
        for entry in os.scandir(self._directory):
            os.unlink(entry.path)
        os.rmdir(self._directory)


def pipe_source() -> PipeSource:
    """Return the kind of pipes that a child of this process can open."""
    try:
        # A process that is not dumpable has its /proc entry owned by root (prctl(2), PR_SET_DUMPABLE).
        mine = os.stat("/proc/self/fd").st_uid == os.geteuid()
    except OSError:
        mine = False
    return ProcPipes() if mine else FifoPipes()


def _fill(fd: int, content: bytes) -> None:
    """Write all of `content`; if there is no room for it, close the file."""
    view = memoryview(content)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except BaseException:
        os.close(fd)
        raise
