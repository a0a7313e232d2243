"""Whether a program waits for input, as far as Linux tells: it is blocked in a call that reads, or looks for input.

Read by interactive sessions. Best effort: only a process's first thread is looked at, and the kernel answers only
who may trace the process (ptrace(2), "Ptrace access mode checking"). Formats: proc(5), /proc/PID/syscall.
"""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Collection, Iterator

__all__ = ["awaits_input", "descendants"]

_READ, _SELECT, _POLL, _EPOLL = "read", "select", "poll", "epoll"

#: read, readv, select, pselect6, poll, ppoll, epoll_wait, epoll_pwait (arm64 and riscv64 share asm-generic).
_GENERIC = {63: _READ, 65: _READ, 72: _SELECT, 73: _POLL, 22: _EPOLL}
_CALLS = {
    "x86_64": {0: _READ, 19: _READ, 23: _SELECT, 270: _SELECT, 7: _POLL, 271: _POLL, 232: _EPOLL, 281: _EPOLL},
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}.get(os.uname().machine)

#: Of a poll set, as much is looked at.
_MOST_POLLED = 64


def descendants(pid: int) -> Iterator[int]:
    """Yield the process and everything below it; what has lost its parent is not found."""
    yield pid
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb", buffering=0) as file:
                children = file.read(1 << 16).split()
        except OSError:  # it has ended meanwhile
            continue
        for child in children:
            yield from descendants(int(child))


def awaits_input(pid: int, names: Collection[str]) -> bool | None:
    """Return whether the process is blocked until one of the files has input.

    Args:
        pid: the process.
        names: what /proc/PID/fd calls the files: "/dev/pts/3", "pipe:[4711]".

    Returns:
        None if the kernel does not say.
    """
    if _CALLS is None:
        return None
    try:
        with open(f"/proc/{pid}/syscall", "rb", buffering=0) as file:
            words = file.read(256).split()
        if len(words) < 4 or (call := _CALLS.get(int(words[0]))) is None:
            return False
        arguments = [int(word, 16) for word in words[1:4]]
        return any(_name(pid, fd) in names for fd in _waits_on(pid, call, arguments))
    except PermissionError:
        return None
    except (OSError, struct.error):  # it has ended, or gone on, meanwhile
        return False


def _waits_on(pid: int, call: str, arguments: list[int]) -> Iterator[int]:
    """Yield the descriptors that the call waits on for input."""
    first, second, _ = arguments
    if call == _READ:
        yield first
    elif call == _SELECT and second:
        size = min(first, 1024)
        # An fd_set is an array of longs; both kernels named above are little-endian, so bit n is in byte n // 8.
        members = _memory(pid, second, (size + 7) // 8)
        yield from (fd for fd in range(size) if members[fd // 8] >> fd % 8 & 1)
    elif call == _POLL:
        count = min(second, _MOST_POLLED)
        for fd, events, _ in struct.iter_unpack("ihh", _memory(pid, first, 8 * count)):
            if events & select.POLLIN:
                yield fd
    elif call == _EPOLL:
        with open(f"/proc/{pid}/fdinfo/{first}", "rb", buffering=0) as file:
            for line in file.read(1 << 16).splitlines():
                if line.startswith(b"tfd:"):
                    words = line.split()
                    if int(words[3], 16) & select.EPOLLIN:
                        yield int(words[1])


def _memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        found = os.pread(file.fileno(), size, address)
    if len(found) < size:
        raise OSError("the process has gone on")
    return found


def _name(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except FileNotFoundError:
        return ""
