"""Files for output that is too large to keep in memory (contract E5): who writes them, what they may take of the disk.

A stream's file is a directory of pieces, each named by the bytes and the newlines before it, so that it can be read
at any moment, after a crash too (`stream.py`). Whoever drains a stream writes it; nothing here waits for
anything but the disk, and no error of the disk ever reaches a command.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import threading
import time
import weakref
from collections.abc import Iterator

import attrs

from ...errors import ExecutorClosed, UnknownOutput
from ...output.buffer import HeadTailBuffer

__all__ = ["LEAST_LIMIT", "KeptOutput", "SpillFile", "SpillStore"]

#: The least `spill_limit`: below it the pieces would be smaller than what is read at a time.
LEAST_LIMIT = 1 << 20
#: Bytes that a file is reckoned to take before its first: a directory and a block that is not full.
_OVERHEAD = 8192
#: A stream may take half of the limit, so that the two of one command fit, in this many pieces.
_PIECES = 16
#: How many of them are never given up at the beginning, and at the end; those between are spread over the middle.
_HEAD = _NEWEST = 6

_PREFIX = "shellkit-"
_LOCK = ".lock"
_REF = re.compile(r"[0-9a-f]{16}\Z")
#: Seconds that a folder without a legible lock file is left alone: its owner may be about to write it.
_FRESH = 60.0


class SpillFile:
    """The whole output of one stream; if that is too large its head, its newest part, and samples of the middle.

    Made by `SpillStore.file`. Any thread may call; nothing here raises.

    Attributes:
        ref: the reference to read it by; None until something was written.
        failure: why not everything was written, as a note for a model; None if it was.
    """

    def __init__(self, store: SpillStore) -> None:
        self.ref: str | None = None
        self.failure: str | None = None
        self.size = 0  # bytes that the store reckons it takes of the disk
        self.removed = False
        self._store = store
        # Reentrant, as the store's: a garbage collection inside may close the file of an executor that nobody holds.
        self._mutex = threading.RLock()
        self._closed = False
        self._folder = ""
        self._fd = -1
        self._room = 0
        self._total = 0
        self._lines = 0
        self._begins: list[tuple[int, str]] = []

    def follow(self, buffer: HeadTailBuffer, chunk: memoryview) -> None:
        """Account for a chunk that is about to go into `buffer`; what is written begins with what `buffer` holds.

        Nothing is written while the buffer keeps everything.
        """
        if self.ref is None and self.failure is None:
            if buffer.has_room(len(chunk)):
                return
            self.write(buffer.content())
        self.write(chunk)

    def write(self, chunk: bytes | memoryview) -> None:
        """Take the next bytes of the stream."""
        with self._mutex:
            if self._closed or self.removed or not chunk:
                return
            try:
                self._write(memoryview(chunk))
            except OSError as error:
                self.close()
                if not self.removed:
                    self.failure = (
                        f"Output past the first {self._total} bytes could not be kept in a file ({error.strerror}); "
                        "see that spill_dir is there and has room, or filter the output."
                    )
                if not self._total:
                    self.ref = None  # there is nothing to read by it

    def close(self) -> None:
        """Take no more, and give the descriptor back; what was written can still be read. Idempotent."""
        with self._mutex:
            self._closed = True
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)
            if self.ref is not None:
                self._store.ended(self.ref)

    def _write(self, rest: memoryview) -> None:
        while rest:
            if not self._room:
                self._next_piece()
            count = os.write(self._fd, rest[: self._room])
            self._room -= count
            self._total += count
            self._lines += bytes(rest[:count]).count(b"\n")
            self._store.take(self, count)
            rest = rest[count:]

    def _next_piece(self) -> None:
        if self.ref is None:
            self.ref, self._folder = self._store.admit(self)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if len(self._begins) == _PIECES:
            # The one whose neighbours are nearest to each other: the gaps stay of about one size.
            begins = self._begins
            thinned = min(range(_HEAD, _PIECES - _NEWEST), key=lambda at: begins[at + 1][0] - begins[at - 1][0])
            os.unlink(begins.pop(thinned)[1])
            self._store.take(self, -self._store.piece_bytes)
        path = f"{self._folder}/{self._total:016}-{self._lines}"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._room = self._store.piece_bytes
        self._begins.append((self._total, path))


@attrs.frozen
class KeptOutput:
    """Where the output of one stream is kept.

    Attributes:
        ref: its reference.
        folder: its pieces.
        growing: whether something may be added.
        failure: why it is not whole, if so.
    """

    ref: str
    folder: str
    growing: bool = False
    failure: str | None = None


class SpillStore:
    """The files of one executor, in a folder of its own.

    Args:
        directory: `spill_dir`, absolute; made at the first need.
        limit: bytes that the files may take in all. The oldest are removed first.
        retention: seconds that the files stay after `close`; None removes them with it.
    """

    def __init__(self, directory: str, limit: int, retention: float | None) -> None:
        self._directory = directory
        self._limit = limit
        self._retention = retention
        self._folder: str | None = None
        self._finalizer: weakref.finalize[[str, int, float | None, int], SpillStore] | None = None
        self._mutex = threading.RLock()
        self._files: dict[str, SpillFile] = {}  # the oldest first
        self._growing: set[str] = set()
        self._used = 0
        self._closed = False
        self.piece_bytes = (limit // 2 - _OVERHEAD) // _PIECES

    # -- for whoever writes ----------------------------------------------------------------------------

    def file(self) -> SpillFile:
        """Return a file for one stream; it takes nothing of the disk until something is written."""
        return SpillFile(self)

    def admit(self, file: SpillFile) -> tuple[str, str]:
        """Return the reference and the folder of a file that begins.

        Raises:
            OSError: there can be none.
        """
        with self._mutex:
            if self._closed:
                file.removed = True
                raise OSError("the executor is closed")
            folder = self._folder = self._folder or self._open()
            ref = secrets.token_hex(8)
            os.mkdir(f"{folder}/{ref}", 0o700)
            self._files[ref] = file
            self._growing.add(ref)
        self.take(file, _OVERHEAD)
        return ref, f"{folder}/{ref}"

    def take(self, file: SpillFile, count: int) -> None:
        """Account for bytes written (or, if negative, given up), and make room by removing the oldest files."""
        victims = []
        with self._mutex:
            if file.removed:
                return
            file.size += count
            self._used += count
            while self._used > self._limit:
                oldest = next(ref for ref, other in self._files.items() if other is not file)
                victims.append(self._files.pop(oldest))
                victims[-1].removed = True
                self._used -= victims[-1].size
        for victim in victims:
            _remove(f"{self._folder}/{victim.ref}")

    def ended(self, ref: str) -> None:
        """Account for the end of a stream."""
        with self._mutex:
            self._growing.discard(ref)

    # -- for whoever reads -----------------------------------------------------------------------------

    def find(self, ref: object) -> KeptOutput:
        """Return where a file is.

        Raises:
            TypeError: `ref` is no string.
            UnknownOutput: there is no such file, or it had to make room.
            ExecutorClosed: the files are gone, or another executor's to read.
        """
        if not isinstance(ref, str):
            raise TypeError(f"ref must be a stdout_ref or stderr_ref (str), not {type(ref).__name__}")
        with self._mutex:
            if self._closed:
                raise ExecutorClosed("the executor is closed; read its output before that")
            if ref in self._files:
                return KeptOutput(ref, f"{self._folder}/{ref}", ref in self._growing, self._files[ref].failure)
            newest = list(self._files)[-5:]
        if _REF.match(ref):  # another executor's, which kept its files for later ones
            for folder in _folders(self._directory):
                if os.path.isdir(f"{folder}/{ref}"):
                    return KeptOutput(ref, f"{folder}/{ref}")
        raise UnknownOutput(
            f"no output is kept as {ref[:40]!r}: references stand in stdout_ref and stderr_ref, and the oldest "
            f"output is removed first; the newest now: {', '.join(newest) or 'none'}"
        )

    # -- the folder ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Remove the files, or leave them for as long as `retention` says; idempotent."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            for file in self._files.values():
                file.removed = True
        if self._finalizer is not None:
            self._finalizer()

    def _open(self) -> str:
        """Make the executor's folder, and remove those whose owners are gone and whose time is over."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        for abandoned in filter(_expired, _folders(self._directory)):
            shutil.rmtree(abandoned, ignore_errors=True)
        folder = f"{self._directory}/{_PREFIX}{secrets.token_hex(8)}"
        os.mkdir(folder, 0o700)
        fd = os.open(f"{folder}/{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.write(fd, b"%r" % (self._retention or 0.0))
        except OSError:  # no room for 3 bytes: the next output may find some
            os.close(fd)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._finalizer = weakref.finalize(self, _give_back, folder, fd, self._retention, os.getpid())
        return folder


def _give_back(folder: str, lock: int, retention: float | None, pid: int) -> None:
    """What happens to the folder when the store is closed, or garbage, or its interpreter exits."""
    if os.getpid() != pid:
        return
    if retention is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        os.utime(lock)  # the retention counts from now
    os.close(lock)


def _folders(directory: str) -> Iterator[str]:
    """Yield the executors' folders of this user; in a directory that all may write to, others could make some."""
    for name in _listed(directory):
        with contextlib.suppress(OSError):
            status = os.lstat(path := f"{directory}/{name}")
            if name.startswith(_PREFIX) and stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                yield path


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:  # not made yet, or not ours to read
        return []


def _expired(folder: str) -> bool:
    """Return whether a folder's owner is gone (its lock ended with it) and the files need not be kept any longer."""
    try:
        fd = os.open(f"{folder}/{_LOCK}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        with contextlib.suppress(OSError):
            return time.time() - os.stat(folder).st_mtime > _FRESH
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return time.time() - os.fstat(fd).st_mtime > float(os.read(fd, 64) or _FRESH)
    except (OSError, ValueError):  # it lives; or this is no lock file of ours
        return False
    finally:
        os.close(fd)


def _remove(folder: str) -> None:
    # Emptied first: whoever writes a piece at this moment keeps it open, and the disk must have its room now.
    for name in _listed(folder):
        with contextlib.suppress(OSError):
            os.truncate(f"{folder}/{name}", 0)
    shutil.rmtree(folder, ignore_errors=True)
