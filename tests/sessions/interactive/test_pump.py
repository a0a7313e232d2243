"""The thread that drains: who is called, when, and that nothing stops it."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Iterator

import pytest

from shellkit.sessions.interactive import Pump


@pytest.fixture
def pump() -> Iterator[Pump]:
    pump = Pump()
    yield pump
    pump.stop()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    yield ends
    for fd in ends:
        os.close(fd)


def test_one_thread_serves_all_and_ends(pump: Pump) -> None:
    """Issue 5, must hold: one thread for any number of programs, started with the first thing to do, ended by `stop`."""
    assert "shellkit-pump" not in {thread.name for thread in threading.enumerate()}
    done = threading.Barrier(2)
    pump.run(lambda: done.wait(5) and None)
    pump.run(lambda: None)
    assert [thread.name for thread in threading.enumerate()].count("shellkit-pump") == 1
    done.wait(5)
    pump.stop()
    pump.stop()
    assert "shellkit-pump" not in {thread.name for thread in threading.enumerate()}


def test_errands_run_when_they_are_due_in_order(pump: Pump) -> None:
    """Issue 5, build 2, limits: an errand runs after its time, those of one time in the order given."""
    ran: list[str] = []
    finished = threading.Event()
    begun = time.monotonic()
    pump.run(finished.set, after=0.05)
    pump.run(lambda: ran.append("first"))
    pump.run(lambda: ran.append("second"))
    assert finished.wait(5)
    assert time.monotonic() - begun >= 0.05
    assert ran == ["first", "second"]


def test_a_watcher_is_called_until_it_is_forgotten(pump: Pump, pipe: tuple[int, int]) -> None:
    """E4: a readable descriptor is reported again and again, as long as it is watched."""
    reader, writer = pipe
    got: list[bytes] = []
    arrived = threading.Semaphore(0)

    def watcher(events: int, buffer: memoryview) -> None:
        count = os.readv(reader, [buffer])
        got.append(bytes(buffer[:count]))
        arrived.release()

    pump.watch(reader, select.EPOLLIN, watcher)
    for piece in (b"one", b"two"):
        os.write(writer, piece)
        assert arrived.acquire(timeout=5)
    pump.forget(reader)
    pump.forget(reader)
    os.write(writer, b"three")
    settled = threading.Event()
    pump.run(settled.set)
    assert settled.wait(5)
    assert got == [b"one", b"two"]


def test_failing_watchers_and_errands_are_logged_and_hurt_nobody(
    pump: Pump, pipe: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    """C4 in spirit: one program's fault is logged, and the thread goes on for the others."""

    def fail(*arguments: object) -> None:
        raise RuntimeError("on purpose")

    reader, writer = pipe
    with caplog.at_level(logging.ERROR, "shellkit"):
        pump.watch(reader, select.EPOLLIN, fail)
        os.write(writer, b"x")
        pump.run(fail)
        survived = threading.Event()
        pump.run(survived.set, after=0.02)
        assert survived.wait(5)
    assert sorted(record.message for record in caplog.records) == [
        "an errand of an interactive program failed",
        "draining a program failed; it is not watched any more",
    ]


def test_noisy_descriptors_rest_and_a_quiet_one_is_served(pump: Pump) -> None:
    """Issue 5, done when: programs that print without end leave a processor to others, and hold up no quiet one."""
    noisy = [os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) for _ in range(8)]
    quiet = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    calls = [0] * len(noisy)
    answered = threading.Semaphore(0)

    def busy(index: int) -> None:
        calls[index] += 1
        spent = time.monotonic() + 0.005
        while time.monotonic() < spent:
            pass

    def answer(events: int, buffer: memoryview) -> None:
        os.readv(quiet[0], [buffer])
        answered.release()

    try:
        for index, (reader, writer) in enumerate(noisy):
            os.write(writer, b"never read")
            pump.watch(reader, select.EPOLLIN, lambda events, buffer, index=index: busy(index))  # type: ignore[misc]
        pump.watch(quiet[0], select.EPOLLIN, answer)
        for _ in range(5):
            os.write(quiet[1], b"x")
            assert answered.acquire(timeout=5)
        assert all(calls)
        assert pump._resting
    finally:
        for reader, _ in (*noisy, quiet):
            pump.forget(reader)
        for fd in (fd for pair in (*noisy, quiet) for fd in pair):
            os.close(fd)
