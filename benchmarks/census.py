"""What exists when nothing runs: descriptors, processes, threads, cgroups, temporary directories, memory.

Called by `soak` and `program_cycles`, before and after. What they start must have SHELLKIT_CENSUS in its environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import threading
import time
from typing import Any

import attrs

from .measure import Row, resident

__all__ = ["Census", "differences", "settled", "watch_directories"]

#: MiB that may be more at the end: pages that the allocator keeps are not returned at once. (A leak of 1 KiB in each
#: of the ~100,000 commands of a ten-minute soak would be 100 MiB.)
_MEMORY = 4.0

#: Cgroups and temporary directories that shellkit has made in this process and not removed.
_directories: set[str] = set()


@attrs.frozen
class Census:
    """What exists when nothing runs."""

    descriptors: int
    processes: int
    threads: int
    directories: int
    mib: float


def _census() -> Census:
    gc.collect()
    with contextlib.suppress(AttributeError):  # glibc only: what is free goes back to the system before it is counted
        ctypes.CDLL(None).malloc_trim(0)
    return Census(
        descriptors=len(os.listdir("/proc/self/fd")) - 1,
        processes=len(_processes()),
        threads=threading.active_count(),
        directories=len(_directories),
        mib=resident() / (1 << 20),
    )


def _see_directories(event: str, args: tuple[Any, ...]) -> None:
    """Hear of each (PEP 578): the machine's other shellkits do not count."""
    if event in ("os.mkdir", "os.rmdir"):
        path = os.fsdecode(args[0])
        if "shellkit-" in path:
            (_directories.add if event == "os.mkdir" else _directories.discard)(path)


def _processes() -> list[int]:
    """Children of this process, and whatever was started in a session whose cookie this run has used."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                parent = int(file.read().rpartition(b") ")[2].split()[1])
            with open(f"/proc/{pid}/environ", "rb") as file:
                mine = _MARK in file.read()
            if pid != os.getpid() and (parent == os.getpid() or mine):
                found.append(pid)
    return found


#: Handed down to everything that a session of this run starts, next to the session's own cookie: the caller sets it.
_MARK = b"SHELLKIT_CENSUS=%d\0" % os.getpid()


def settled() -> Census:
    """Count once nothing changes any more, at the latest after some seconds: the kernel reaps in its own time."""
    census = _census()
    for _ in range(100):
        time.sleep(0.05)
        now = _census()
        if attrs.evolve(now, mib=0.0) == attrs.evolve(census, mib=0.0):
            return now
        census = now
    return census


def differences(begin: Census, end: Census, after: str) -> list[Row]:
    """Return a row for each figure: nothing may be more, but for memory.

    Args:
        begin: counted before.
        end: counted afterwards.
        after: what lies between, for the details.
    """
    return [
        Row(
            what=field.name,
            yardstick=f"{getattr(begin, field.name):g} at the beginning",
            value=round(float(getattr(end, field.name) - getattr(begin, field.name)), 2),
            unit="more",
            bound=_MEMORY if field.name == "mib" else 0.0,
            detail=f"{getattr(end, field.name):g} {after}",
        )
        for field in attrs.fields(Census)
    ]


def watch_directories() -> None:
    """Count directories from now on; an audit hook cannot be taken back."""
    sys.addaudithook(_see_directories)
