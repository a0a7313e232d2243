"""What becomes of a session when the host has no descriptors left."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator

import pytest

from shellkit import LocalExecutor, SpawnError
from shellkit.sessions.base import Mode

#: More descriptors than a session needs for its first command.
ENOUGH = 32


@contextlib.contextmanager
def _room(count: int) -> Iterator[None]:
    """Leave room for so many descriptors and no more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + ENOUGH, limits[1]))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for fd in taken[:count]:
            os.close(fd)
        del taken[:count]
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_no_room_for_a_session(mode: Mode) -> None:
    """A, G3: a start that runs out of descriptors is `SpawnError` and keeps none; the next call is another try."""
    with LocalExecutor(mode=mode).sync() as shell:
        shell.run("true")  # what is imported, and the reaper, once and for all
    refused = []
    for room in range(ENOUGH):
        before = _descriptors()
        shell = LocalExecutor(mode=mode).sync()
        try:
            with _room(room):
                assert shell.run("echo ran").stdout == "ran\n"
        except SpawnError as error:
            refused.append(str(error))
        assert shell.run("echo again").stdout == "again\n"
        shell.close()
        assert _descriptors() == before
    assert 8 < len(refused) < ENOUGH - 8
    assert all("Too many open files; close files and executors" in said for said in refused)


def test_no_room_for_input() -> None:
    """A, C1: input that there is no descriptor for is `SpawnError`; nothing ran, and the session goes on."""
    with LocalExecutor().sync() as shell:
        shell.run("kept=yes")
        with _room(0), pytest.raises(SpawnError, match=r"input.*Too many open files"):
            shell.run("touch ran; cat", input="text")
        assert shell.run("echo $kept; cat", input="text").stdout == "yes\ntext"


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
@pytest.mark.parametrize("room", range(3))
def test_closing_needs_no_room(mode: Mode, room: int) -> None:
    """G3: where the host has no descriptors left, `close()` still ends everything and gives its own back."""
    before = _descriptors()
    shell = LocalExecutor(mode=mode).sync()
    (job,) = shell.run("sleep 1000 & sleep 1000 & echo started").background
    with _room(room):
        shell.close()
    assert not job.running
    assert _descriptors() <= before + 1  # the reaper's pipe, for as long as another session of this process lives
