"""`shellkit repl --tty`: a terminal that belongs to an interactive shell for a while."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., pexpect.spawn]

PROMPT = r"bash-[\d.]+[$#] "


@pytest.fixture
def terminal(environ: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts `repl --tty` in a terminal and waits for the shell's prompt."""
    started: list[pexpect.spawn] = []

    def start(*options: str, **env: str) -> pexpect.spawn:
        arguments = ["-m", "shellkit", "repl", "--tty", "--shell", "bash", *options]
        process = pexpect.spawn(
            sys.executable,
            arguments,
            env={**environ, **env},  # type: ignore[arg-type]
            cwd=str(tmp_path),
            timeout=30,
            dimensions=(30, 90),
        )
        started.append(process)
        process.expect(PROMPT)
        return process

    yield start
    for process in started:
        process.close(force=True)


def ended(process: pexpect.spawn) -> int | None:
    """Wait for the end and return the exit code."""
    process.expect(pexpect.EOF)
    process.wait()
    return process.exitstatus  # type: ignore[no-any-return]


def test_the_terminal_is_the_shell_s(terminal: Start, tmp_path: Path) -> None:
    """Issue 5, build 7: job control, size, keys and line editing work, and the exit code is the shell's."""
    process = terminal("--workdir", "/")
    process.sendline("pwd; stty size; set -o | grep monitor; echo $TERM")
    process.expect(r"\n/\r\n30 90\r\nmonitor\s+on\r\ndumb\r\n")
    process.expect(PROMPT)
    process.sendline("sh -c 'echo under way; exec sleep 60'")
    process.expect("under way\r\n")
    process.sendintr()
    process.expect(PROMPT)
    process.setwinsize(40, 100)
    process.sendline("echo $?; stty size")
    process.expect("130\r\n40 100\r\n")
    process.expect(PROMPT)
    process.sendline("exit 5")
    assert ended(process) == 5


def test_a_person_s_own_editor_and_secrets_left_out(terminal: Start) -> None:
    """H8: what makes programs harmless is not needed where a person answers; secrets stay out."""
    process = terminal(EDITOR="my-editor", MY_API_KEY="secret")
    process.sendline('echo "$EDITOR|$PAGER|$MY_API_KEY|"')
    process.expect_exact("\r\nmy-editor|||\r\n")
    process.sendeof()
    assert ended(process) == 0


def test_only_the_person_s_terminal_answers(terminal: Start) -> None:
    """Issue 5, build 7: what a program asks its terminal is answered by the real one, once."""
    process = terminal()
    process.sendline(r"stty -echo raw; printf '\033[6n'; dd bs=6 count=1 2>/dev/null | od -c; stty sane")
    process.expect_exact("\x1b[6n")
    process.send("\x1b[7;7R")
    process.expect_exact("033   [   7   ;   7   R")
    process.expect(PROMPT)
    process.sendline("exit 0")
    assert ended(process) == 0


def test_the_terminal_is_given_back_as_it_was(environ: dict[str, str], terminal: Start) -> None:
    """Issue 5, build 7: after its end, and after SIGTERM, the terminal's modes are what they were."""
    for end in (lambda process: process.sendline("exit 0"), lambda process: process.kill(signal.SIGTERM)):
        process = terminal()
        # A second descriptor of the program's end keeps the modes after it is gone.
        held = os.open(os.readlink(f"/proc/{process.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)
        try:
            assert not termios.tcgetattr(held)[3] & termios.ICANON
            end(process)
            process.wait()
            assert termios.tcgetattr(held)[3] & termios.ICANON
            assert termios.tcgetattr(held)[3] & termios.ECHO
        finally:
            os.close(held)
    assert process.exitstatus == 143


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(number: int, terminal: Start, eventually: Callable[..., None]) -> None:
    """G3, G4: whatever ends it, the shell and what runs in it are gone."""
    process = terminal()
    process.sendline("trap '' HUP TERM; sh -c 'trap \"\" HUP TERM INT; echo pid $$; while :; do sleep 1; done'")
    process.expect(r"pid (\d+)\r\n")
    pid = int(process.match[1])
    process.kill(number)
    eventually(lambda: not os.path.exists(f"/proc/{pid}"), 10)


def test_a_hang_up_ends_it(terminal: Start, eventually: Callable[..., None]) -> None:
    """G3: closing the window ends the shell and what runs in it."""
    process = terminal()
    process.sendline("sh -c 'echo pid $$; exec sleep 60'")
    process.expect(r"pid (\d+)\r\n")
    pid = int(process.match[1])
    process.ptyproc.fileobj.close()
    process.ptyproc.closed = True  # or it would close it once more
    eventually(lambda: not os.path.exists(f"/proc/{pid}"), 10)
    process.wait()


def test_it_can_be_recorded(terminal: Start, shellkit: Shellkit, tmp_path: Path) -> None:
    """Issue 5, build 6: --record FILE writes what the terminal shows, and `shellkit play` plays it."""
    process = terminal("--record", "demo.cast")
    process.sendline("echo $((6 * 7)) answers")
    process.expect("42 answers\r\n")
    process.sendline("exit")
    ended(process)
    assert "42 answers" in shellkit("play", "--speed", "1000", "--idle-limit", "0", "demo.cast").stdout


def test_a_session_without_a_terminal_can_be_recorded(shellkit: Shellkit) -> None:
    """Issue 5, build 6: the repl's own --record writes its commands and their output."""
    shellkit("repl", "--record", "demo.cast", input="echo $((6 * 7)) answers\n")
    assert "42 answers" in shellkit("play", "--idle-limit", "0", "demo.cast").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--tty needs a terminal"),
        (("--approve",), "--approve, --policy and --audit see commands"),
        (("--policy", "p.toml"), "--approve, --policy and --audit see commands"),
        (("--audit", "a.log"), "--approve, --policy and --audit see commands"),
        (("--timeout", "3"), "--mode, --confinement and --timeout hold for commands"),
        (("--mode", "stateless"), "--mode, --confinement and --timeout hold for commands"),
    ],
)
def test_what_cannot_be_kept_is_refused(options: tuple[str, ...], message: str, shellkit: Shellkit) -> None:
    """Issue 5, build 7: without a terminal, or with a gate that would see nothing, it says so; exit code 2."""
    done = shellkit("repl", "--tty", *options)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shell", "no-such-shell"), "no-such-shell"),
        (("--workdir", "/no/such/directory"), "name another workdir"),
        (("--record", "/no/such/directory/x.cast"), "cannot be written"),
    ],
)
def test_what_cannot_be_started_is_one_line(
    options: tuple[str, ...], message: str, environ: dict[str, str], tmp_path: Path
) -> None:
    """H4 in spirit: a wrong option is one line with the remedy, and the terminal is as it was."""
    process = pexpect.spawn(
        sys.executable,
        ["-m", "shellkit", "repl", "--tty", *options],
        env=environ,  # type: ignore[arg-type]
        cwd=str(tmp_path),
        timeout=30,
    )
    process.expect_exact(message)
    assert ended(process) == 2
    process.close()
