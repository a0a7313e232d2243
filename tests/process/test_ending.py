"""How a child ended, also where somebody else was told first."""

from __future__ import annotations

import os
import platform
import re
import select
import signal
from collections.abc import Iterator

import pytest

from shellkit.process.ending import Ending, look

ENDS = {"exit 0": Ending(0), "exit 7": Ending(7), "kill -9 $$": Ending(137, by_signal=True)}
_REMEMBERS = tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= (6, 15)


@pytest.fixture
def ignored() -> Iterator[None]:
    """Ignore SIGCHLD: the kernel reaps children at once, and tells nobody (wait(2), "Notes")."""
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, previous)


def child(command: str) -> tuple[int, int]:
    """Return a shell's process id and pidfd; it runs `command` when its stdin ends."""
    reader, writer = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_CLOSE, writer)]
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"read x; {command}"], {}, file_actions=actions)
    pidfd = os.pidfd_open(pid)
    assert look(pidfd) is None
    os.close(reader)
    os.close(writer)
    return pid, pidfd


def ended(pidfd: int) -> Ending | None:
    select.select([pidfd], [], [], 10)
    try:
        return look(pidfd)
    finally:
        os.close(pidfd)


@pytest.mark.parametrize("command", ENDS)
def test_how_a_child_ended(command: str) -> None:
    """D1: the kernel's wait status is the truth."""
    assert ended(child(command)[1]) == ENDS[command]


@pytest.mark.parametrize("command", ENDS)
def test_a_host_that_ignores_sigchld(ignored: None, command: str) -> None:
    """D1: the code is not lost with the child where the kernel remembers it, and unknown elsewhere."""
    assert ended(child(command)[1]) == (ENDS[command] if _REMEMBERS else Ending(None))


@pytest.mark.parametrize("command", ENDS)
def test_a_host_that_waits_for_any_child(command: str) -> None:
    """D1: as above, when something else in this process was faster."""
    pid, pidfd = child(command)
    os.waitpid(pid, 0)
    assert ended(pidfd) == (ENDS[command] if _REMEMBERS else Ending(None))
