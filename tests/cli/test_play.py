"""`shellkit play`: recordings in the terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shellkit import LocalExecutor
from shellkit.output.asciicast import Event, Header, event_line, header_line

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


def cast(path: Path, *events: Event, idle_limit: float | None = None, end: bytes = b"") -> Path:
    """Write a recording."""
    lines = [header_line(Header(columns=80, rows=24, idle_limit=idle_limit)), *map(event_line, events), end]
    path.write_bytes(b"".join(lines))
    return path


def test_what_was_recorded_is_shown(shellkit: Shellkit, tmp_path: Path) -> None:
    """Issue 5, item 6: `shellkit play` prints what a session recorded."""
    with LocalExecutor(shell="bash", record=tmp_path / "a.cast").sync() as shell:
        shell.run("echo hello")
    done = shellkit("play", "a.cast")
    assert (done.stdout.replace("\r\n", "\n"), done.stderr, done.returncode) == ("$ echo hello\nhello\n", "", 0)


def test_only_output_is_shown(shellkit: Shellkit, tmp_path: Path) -> None:
    """Issue 5, item 6: what was typed, and what a player need not know, is passed over; so is a line that was cut off."""
    cast(
        tmp_path / "a.cast",
        Event(0, "o", "a"),
        Event(0, "i", "typed"),
        Event(0, "m", "mark"),
        Event(0, "r", "90x20"),
        Event(0, "o", "é行"),
        end=b'[0.5, "o", "never se',
    )
    done = shellkit("play", "a.cast")
    assert (done.stdout, done.stderr, done.returncode) == ("aé行", "", 0)


@pytest.mark.parametrize(
    ("options", "limit", "least"),
    [([], None, 0.4), (["--speed", "100"], None, 0), (["--idle-limit", "0"], None, 0), ([], 0.01, 0)],
)
def test_pace(start: Start, tmp_path: Path, options: list[str], limit: float | None, least: float) -> None:
    """Issue 5, item 6: pauses are as long as they were, or as the options and the recording allow."""
    length = least or 600.0
    cast(tmp_path / "a.cast", Event(0, "o", "first"), Event(length, "o", "second"), idle_limit=limit)
    began = time.monotonic()
    with start("play", *options, "a.cast") as player:
        assert player.stdout is not None
        assert player.stdout.read() == b"firstsecond"
    assert least <= time.monotonic() - began < 600


def test_ctrl_c_gives_the_terminal_back(start: Start, tmp_path: Path) -> None:
    """Issue 5, item 6: stopping is no error, and leaves neither colour nor a hidden cursor behind."""
    cast(tmp_path / "a.cast", Event(0, "o", "\x1b[?25l\x1b[31mred"), Event(600, "o", "never"))
    host, guest = pty.openpty()
    try:
        with start("play", "a.cast", stdout=guest, stderr=guest) as player:
            seen = b""
            while b"red" not in seen:
                seen += os.read(host, 1000)
            player.send_signal(signal.SIGINT)
            assert player.wait(20) == 130
            while not seen.endswith(b"\x1b[0m\x1b[?25h"):
                seen += os.read(host, 1000)
    finally:
        os.close(host)
        os.close(guest)
    assert b"Traceback" not in seen


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not an asciicast"),
        (b"hello\n", "not an asciicast"),
        (b'{"version": 3}\n', "version 2"),
        (b'{"version": 2, "width": 1, "height": 1}\nnonsense\n', "line 2"),
    ],
)
def test_wrong_files(shellkit: Shellkit, tmp_path: Path, content: bytes, says: str) -> None:
    """Issue 5, item 6: a file that is no recording is one line on stderr."""
    (tmp_path / "a.cast").write_bytes(content)
    done = shellkit("play", "a.cast")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: a.cast")
    assert says in done.stderr
    assert shellkit("play", "no-such.cast").returncode == 2


def test_nobody_reads(start: Start, tmp_path: Path) -> None:
    """Issue 5, item 6: a closed pipe ends the player without a word."""
    cast(tmp_path / "a.cast", *(Event(0, "o", "x" * 10_000) for _ in range(100)))
    with start("play", "a.cast") as player:
        assert player.stdout is not None
        assert player.stderr is not None
        player.stdout.read(10)
        player.stdout.close()
        assert player.stderr.read() == b""
