"""`shellkit repl`, from a pipe and at a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pexpect
import pytest

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]


def test_lines_from_a_pipe(shellkit: Shellkit) -> None:
    """Without a terminal each line is a command, with no prompt between; the exit code is the last one's."""
    done = shellkit("repl", input="A=1\necho $A\nexit 3\necho still $A\n(exit 5)\n")
    assert (done.stdout, done.stderr, done.returncode) == ("1\nstill 1\n", "", 5)


def test_continued_lines(shellkit: Shellkit) -> None:
    """A backslash at the end goes on in the next line, an escaped one does not, and the last line needs no newline."""
    assert shellkit("repl", input="echo a \\\nb\necho c\\\\\necho d").stdout == "a b\nc\\\nd\n"


def test_wrong_lines_do_not_end_it(shellkit: Shellkit) -> None:
    """A syntax error, a NUL and bytes that are no text are told, and the next line runs."""
    done = shellkit("repl", input=b'echo "open\necho \0\necho \xff\necho next\n')
    assert (done.stdout, done.returncode) == ("next\n", 0)
    assert done.stderr.count("shellkit: note: command contains") == 2


def test_bad_options(shellkit: Shellkit) -> None:
    """A wrong option is one line and exit code 2."""
    done = shellkit("repl", "--workdir", "/no/such/directory")
    assert done.returncode == 2
    assert "does not exist" in done.stderr


@pytest.fixture
def terminal(environ: dict[str, str], tmp_path: Path) -> Iterator[Callable[[], pexpect.spawn]]:
    """Return a function that starts a repl at a terminal and waits for its first prompt."""
    started: list[pexpect.spawn] = []

    def start() -> pexpect.spawn:
        arguments = ["-m", "shellkit", "repl"]
        heed = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup(1)
        options: Any = {"env": environ, "cwd": str(tmp_path), "timeout": 30, "preexec_fn": heed}
        process = pexpect.spawn(sys.executable, arguments, **options)
        process.setecho(False)
        started.append(process)
        process.expect_exact("~ [0] $ ")
        return process

    yield start
    for process in started:
        process.close(force=True)


def test_prompt_shows_directory_and_exit_code(terminal: Callable[[], pexpect.spawn]) -> None:
    """The prompt follows `cd` and exit codes; Ctrl-D leaves with the last one."""
    process = terminal()
    process.sendline("cd /tmp")
    process.expect_exact("/tmp [0] $ ")
    process.sendline("printf 'no newline'; (exit 4)")
    process.expect_exact("no newline\r\n")
    process.expect_exact("/tmp [4] $ ")
    process.sendeof()
    process.expect(pexpect.EOF)
    process.wait()
    assert process.exitstatus == 4


def test_ctrl_c_interrupts_the_command_only(terminal: Callable[[], pexpect.spawn]) -> None:
    """Ctrl-C ends what runs, at the prompt only the line, and the session keeps its state."""
    process = terminal()
    process.sendline("A=kept; echo under way; sleep 60; echo never")
    process.expect_exact("under way\r\n")
    process.sendintr()
    process.expect_exact("interrupted")
    process.expect_exact("~ [130] $ ")
    process.send("half a line")
    process.sendintr()
    process.expect_exact("~ [130] $ ")
    process.sendline("echo [$A]")
    process.expect_exact("[kept]\r\n")
    process.expect_exact("~ [0] $ ")
    process.sendeof()
    process.expect(pexpect.EOF)


def test_continued_line_at_a_terminal(terminal: Callable[[], pexpect.spawn]) -> None:
    """The second line of a command has a prompt of its own."""
    process = terminal()
    process.sendline("echo one \\")
    process.expect_exact("> ")
    process.sendline("two")
    process.expect_exact("one two\r\n")


def test_history_is_kept(terminal: Callable[[], pexpect.spawn], tmp_path: Path) -> None:
    """Lines can be had again in the next conversation, from a file that only the user can read."""
    process = terminal()
    process.sendline("echo from before")
    process.expect(r"from before\r\n.*\$ ")
    process.sendeof()
    process.expect(pexpect.EOF)
    path = tmp_path / ".local" / "state" / "shellkit" / "history"
    assert re.search("^echo from before$", path.read_text(), re.MULTILINE)
    assert os.stat(path).st_mode & 0o777 == 0o600
    second = terminal()
    second.send("\x1b[A\r")
    second.expect(r"from before\r\n.*\$ ")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_history_is_kept_when_the_window_is_closed(
    terminal: Callable[[], pexpect.spawn], tmp_path: Path, number: signal.Signals
) -> None:
    """The lines of a conversation that a signal ends can be had again, too; nothing goes on."""
    process = terminal()
    process.sendline("echo from before")
    process.expect(r"from before\r\n.*\$ ")
    process.kill(number)
    process.expect(pexpect.EOF)
    process.wait()
    assert process.exitstatus == 128 + number
    assert "echo from before\n" in (tmp_path / ".local" / "state" / "shellkit" / "history").read_text()


def test_ctrl_c_gives_a_continued_command_up(terminal: Callable[[], pexpect.spawn], tmp_path: Path) -> None:
    """Ctrl-C in the second line of a command runs none of it, and leaves nothing in the history."""
    process = terminal()
    process.sendline("touch made \\")
    process.expect_exact("> ")
    process.send("half a line")
    process.sendintr()
    process.expect_exact("~ [0] $ ")
    process.sendeof()
    process.expect(pexpect.EOF)
    assert not (tmp_path / "made").exists()
    assert "\x03" not in (tmp_path / ".local/state/shellkit/history").read_text()
