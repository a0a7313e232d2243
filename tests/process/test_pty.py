"""The terminal itself, and starting a program on it."""

from __future__ import annotations

import os
import select
import signal
import termios
from collections.abc import Iterator

import pytest

from shellkit import SpawnError
from shellkit.process.awaiting import awaits_input, descendants
from shellkit.process.pty import Terminal
from shellkit.process.spawn import spawn_on_terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal(24, 80)
    yield terminal
    terminal.close()
    terminal.close()


def read(terminal: Terminal, until: bytes) -> bytes:
    """Return what a program prints, up to the bytes."""
    found = b""
    while until not in found:
        ready, _, _ = select.select([terminal.master], [], [], 10)
        assert ready, f"only {found!r}"
        found += os.read(terminal.master, 1 << 16)
    return found


def run(terminal: Terminal, *argv: str) -> int:
    return spawn_on_terminal(argv, {b"PATH": os.fsencode(os.environ["PATH"])}, terminal.path)


def wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_it_has_the_size_it_is_given(terminal: Terminal) -> None:
    """Issue 5, build 1: 24 rows or any other number, at the start and later."""
    assert termios.tcgetwinsize(terminal.master) == (24, 80)
    terminal.resize(50, 132)
    assert termios.tcgetwinsize(terminal.master) == (50, 132)


def test_a_program_controls_its_terminal(terminal: Terminal) -> None:
    """Issue 5, build 1: the program leads a session whose controlling terminal this is, so /dev/tty and Ctrl-C work."""
    pid = run(terminal, "/bin/sh", "-c", "echo on $(tty) >/dev/tty; exec cat")
    assert f"on {terminal.path}".encode() in read(terminal, b"\n")
    assert os.tcgetpgrp(terminal.master) == os.getsid(pid) == pid
    os.write(terminal.master, b"\x03")
    assert wait(pid) == -signal.SIGINT


def test_its_modes_are_seen(terminal: Terminal) -> None:
    """Issue 5, build 3: a terminal that does not echo tells what must not be shown."""
    assert (terminal.echo, terminal.canonical) == (True, True)
    pid = run(terminal, "/bin/sh", "-c", "stty -echo; echo one; read x; stty echo -icanon; echo two; read x")
    read(terminal, b"one")
    assert (terminal.echo, terminal.canonical) == (False, True)
    os.write(terminal.master, b"\n")
    read(terminal, b"two")
    assert (terminal.echo, terminal.canonical) == (True, False)
    os.write(terminal.master, b"\n")
    assert wait(pid) == 0


def test_a_typed_character_is_erased_whole(terminal: Terminal) -> None:
    """C3: backspace takes a whole character back, however many bytes it has (IUTF8)."""
    pid = run(terminal, "/bin/sh", "-c", 'echo ready; read -r x; echo "<$x>"')
    read(terminal, b"ready")
    os.write(terminal.master, "a世é\x7f\x7fb\n".encode())
    assert b"<ab>" in read(terminal, b">")
    assert wait(pid) == 0


def test_an_interrupt_needs_no_key(terminal: Terminal) -> None:
    """F2: the signal comes although the program has turned Ctrl-C off, and does no harm when nothing runs."""
    terminal.interrupt()
    pid = run(terminal, "/bin/sh", "-c", "stty -isig; echo ready; exec sleep 60")
    read(terminal, b"ready")
    os.write(terminal.master, b"\x03")
    terminal.interrupt()
    assert wait(pid) == -signal.SIGINT


def test_closing_hangs_up(terminal: Terminal) -> None:
    """G3: what still runs on the terminal gets SIGHUP."""
    pid = run(terminal, "/bin/sh", "-c", "echo ready; exec sleep 60")
    read(terminal, b"ready")
    terminal.close()
    assert wait(pid) == -signal.SIGHUP


def test_what_cannot_be_started_is_said(terminal: Terminal) -> None:
    """A: a program that is none is `SpawnError`, with the remedy."""
    with pytest.raises(SpawnError, match=r"cannot start /no/such/program: No such file.*name another program"):
        run(terminal, "/no/such/program")


def test_no_wait_is_seen_in_what_is_gone() -> None:
    """Issue 5, build 2: a process that has ended waits for nothing and has no descendants."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    assert awaits_input(pid, {"/dev/tty"}) is False
    assert list(descendants(pid)) == [pid]
