"""Programs that people talk to, talked to by a program: REPLs, pagers, editors, prompts, full screens."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shellkit.sessions.interactive import InteractiveSession, ScreenView
from shellkit.sessions.interactive.argv import inherited_environment

TEXT = "".join(f"line {number} 世界 🙂 é\n" for number in range(1, 101))


async def screen_when(program: InteractiveSession, drawn: Callable[[ScreenView], bool]) -> ScreenView:
    """Look at the screen whenever something was printed, until it is drawn: a look may come in the middle."""
    async with asyncio.timeout(20):
        while not drawn(view := await program.screen()):
            seen = program.output_at
            await program.wait_until(lambda seen=seen: program.output_at > seen or not program.running, 0.1)  # type: ignore[misc]
    return view


async def screen_with(program: InteractiveSession, text: str) -> ScreenView:
    """Wait until the screen shows `text`."""
    return await screen_when(program, lambda view: text in view.text)


async def waits(program: InteractiveSession) -> None:
    """Wait until the program waits: it has printed its prompt before it reads."""
    async with asyncio.timeout(20):
        while not program.waits_for_input:
            await program.wait(0.01)


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    """A hundred numbered lines with characters of all widths."""
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def test_python_repl(tty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5, must hold: python3; its line editing turns the terminal's echo off, which is no request for a secret."""
    monkeypatch.setenv("PYTHON_BASIC_REPL", "1")  # the new one of Python 3.13 draws each key

    async def main() -> None:
        async with InteractiveSession([sys.executable, "-iq"], tty=tty) as python:
            await python.expect(">>> ")
            await python.write("print(6 * 7)\n")
            assert "42" in (await python.expect(">>> ")).before.split()
            await waits(python)
            assert not python.asks_secret
            await python.write("def f():\n    return 'ü' * 3\n\nf()\n")
            await python.expect("üüü")
            python.close_stdin()
            assert await python.wait(10) == 0

    asyncio.run(main())


def test_interactive_bash() -> None:
    """Issue 5, must hold: bash -i with job control, which needs a controlling terminal."""

    async def main() -> None:
        async with InteractiveSession(["bash", "--norc", "-i"]) as bash:
            await bash.expect(r"bash-.*[$#] $")
            await bash.write("stty -echo; PS1='> '; tty; set -o | grep monitor\n")
            await bash.expect(r"/dev/pts/\d+\r\nmonitor\s+on\r\n.*> $")
            await bash.write("sh -c 'echo begun; read -r x; echo got $x'\n")
            await bash.expect("begun\r\n")
            await bash.send_keys("C-z")
            await bash.expect("Stopped.*> $")
            await bash.write("fg\n")
            await bash.expect("got")
            await bash.write("it\n")
            await bash.expect("got it\r\n.*> $")
            await bash.write("exit 5\n")
            assert await bash.wait(10) == 5

    asyncio.run(main())


@pytest.mark.requires("less")
def test_less(text_file: Path) -> None:
    """Issue 5, must hold: less; pages, searches and is left by keys."""

    async def main() -> None:
        async with InteractiveSession(["less", str(text_file)], rows=10, columns=40) as less:
            await screen_when(less, lambda view: view.lines[0] == "line 1 世界 🙂 é" and "text.txt" in view.text)
            await less.send_keys("PageDown")
            await screen_when(less, lambda view: (view.lines[0], view.lines[-1]) == ("line 10 世界 🙂 é", ":"))
            await less.send_keys("/")
            await less.write("line 50")
            await less.send_keys("Enter")
            await screen_when(less, lambda view: view.lines[0] == "line 50 世界 🙂 é")
            await waits(less)
            await less.send_keys("q")
            assert await less.wait(10) == 0

    asyncio.run(main())


@pytest.mark.requires("vim")
def test_vim(text_file: Path) -> None:
    """Issue 5, must hold: vim; a full screen, keys with names, a raw terminal, wide characters, another size."""

    async def main() -> None:
        argv = ["vim", "-nu", "NONE", text_file.name]
        async with InteractiveSession(argv, workdir=text_file.parent, rows=12, columns=60) as vim:
            view = await screen_when(vim, lambda view: "100 lines" in view.text and view.cursor == (0, 0))
            assert view.lines[0] == "line 1 世界 🙂 é"
            await vim.send_keys("Down", "Down", "A")
            await vim.write(" added 字")
            await vim.send_keys("Escape")
            added = "line 3 世界 🙂 é added 字"
            await screen_when(vim, lambda view: view.lines[2] == added and view.cursor == (2, 23))
            vim.resize(20, 50)
            view = await screen_with(vim, "line 17 ")
            assert (view.rows, view.columns, view.lines[2]) == (20, 50, added)
            assert (vim.echo, vim.asks_secret) == (False, False)
            await vim.write(":wq\r")
            assert await vim.wait(10) == 0
        assert text_file.read_text() == TEXT.replace("line 3 世界 🙂 é", "line 3 世界 🙂 é added 字")

    asyncio.run(main())


@pytest.mark.requires("top")
def test_top() -> None:
    """Issue 5, must hold: top; a screen that refreshes by itself, and answers keys."""

    async def main() -> None:
        async with InteractiveSession(["top", "-d", "0.2"], rows=20, columns=80) as top:
            view = await screen_when(top, lambda view: "load average" in view.text and "COMMAND" in view.text)
            assert len(view.lines) == 20
            await top.send_keys("q")
            assert await top.wait(10) == 0

    asyncio.run(main())


@pytest.mark.requires("git", "vim")
def test_git_commit_with_an_editor(tmp_path: Path) -> None:
    """Issue 5, must hold: git commit with an editor, which runs as a child on the same terminal."""
    env = {
        **inherited_environment(),
        b"HOME": os.fsencode(tmp_path),
        b"GIT_EDITOR": b"vim -nu NONE",
        b"GIT_CONFIG_COUNT": b"2",
        b"GIT_CONFIG_KEY_0": b"user.name",
        b"GIT_CONFIG_VALUE_0": b"Nobody",
        b"GIT_CONFIG_KEY_1": b"user.email",
        b"GIT_CONFIG_VALUE_1": b"nobody@example.com",
    }
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    async def main() -> None:
        argv = ["git", "commit", "--allow-empty"]
        async with InteractiveSession(argv, workdir=tmp_path, env=env) as git:
            await screen_with(git, "COMMIT_EDITMSG")
            await git.send_keys("i")
            await git.write("Say what changed")
            await git.send_keys("Escape", ":", "x", "Enter")
            assert await git.wait(20) == 0
            assert "Say what changed" in (await git.screen()).text

    asyncio.run(main())
    log = subprocess.run(["git", "-C", str(tmp_path), "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout == "Say what changed\n"


@pytest.mark.requires("dialog")
def test_a_full_screen_dialog(tmp_path: Path) -> None:
    """Issue 5, must hold: a dialog-like full screen: boxes, moving between buttons, a choice."""

    async def main() -> None:
        script = "dialog --menu 'Choose a fruit' 12 40 3 1 Apfel 2 Birne 3 Öl 2>choice"
        async with InteractiveSession(["sh", "-c", script], workdir=tmp_path, rows=24, columns=80) as dialog:
            await screen_when(dialog, lambda view: all(part in view.text for part in ("┌", "Apfel", "Cancel")))
            await dialog.send_keys("Down", "Down", "Enter")
            assert await dialog.wait(10) == 0
        assert (tmp_path / "choice").read_text() == "3"

    asyncio.run(main())


def test_a_curses_program_reads_named_keys() -> None:
    """Issue 5, build 1, named keys: what curses makes of them is what they are called."""
    keys = {
        "Up": "KEY_UP", "Down": "KEY_DOWN", "Left": "KEY_LEFT", "Right": "KEY_RIGHT", "Home": "KEY_HOME",
        "Insert": "KEY_IC", "Delete": "KEY_DC", "PageUp": "KEY_PPAGE", "PageDown": "KEY_NPAGE", "End": "KEY_END",
        "BSpace": "KEY_BACKSPACE", "F1": "KEY_F(1)", "F5": "KEY_F(5)", "F6": "KEY_F(6)", "F12": "KEY_F(12)",
        "C-a": "^A", "Tab": "^I", "x": "x",
    }  # fmt: skip
    script = (
        "import curses\n"
        "def main(screen):\n"
        "    while True:\n"
        "        screen.addstr(0, 0, curses.keyname(screen.getch()).decode() + '.')\n"
        "        screen.clrtobot()\n"
        "curses.wrapper(main)\n"
    )

    async def main() -> None:
        async with InteractiveSession([sys.executable, "-c", script]) as program:
            await program.wait_until(lambda: not program.echo, 20)
            for key, name in keys.items():
                await program.send_keys(key)
                await screen_when(program, lambda view, name=name: view.text == f"{name}.")  # type: ignore[misc]

    asyncio.run(main())


def test_a_raw_reader_gets_every_byte() -> None:
    """Issue 5, must hold: a program that reads in raw mode gets what a terminal would else act upon."""
    script = (
        "import os, sys, tty\n"
        "tty.setraw(0)\n"
        "os.write(1, b'ready')\n"
        "got = b''\n"
        "while len(got) < 9: got += os.read(0, 100)\n"
        "os.write(1, repr(got).encode())\n"
    )

    async def main() -> None:
        async with InteractiveSession([sys.executable, "-c", script]) as program:
            await program.expect("ready")
            await program.send_keys("C-c", "C-d", "C-z", "Enter", "C-Space", "M-x")
            await program.write(b"\xff\xfe")
            await program.wait(10)
            assert program.read().text == repr(b"\x03\x04\x1a\r\x00\x1bx\xff\xfe")

    asyncio.run(main())


def test_a_program_asks_for_the_window_size() -> None:
    """Issue 5, must hold: the size at the start, and SIGWINCH with the new one."""
    script = (
        "import os, signal\n"
        "def show(*_): print(*os.get_terminal_size(), flush=True)\n"
        "signal.signal(signal.SIGWINCH, show)\n"
        "show()\n"
        "while True: signal.pause()\n"
    )

    async def main() -> None:
        async with InteractiveSession([sys.executable, "-c", script]) as program:
            await program.expect("120 24\r\n")
            program.resize(50, 200)
            await program.expect("200 50\r\n")
            assert (await program.screen()).columns == 200

    asyncio.run(main())


def test_a_program_asks_the_terminal_where_the_cursor_is() -> None:
    """Issue 5, must hold: a program that asks by a control sequence, as those do that find no size otherwise."""
    script = (
        "import os, tty\n"
        "tty.setraw(0)\n"
        "os.write(1, b'\\x1b[999;999H\\x1b[6n')\n"
        "answer = b''\n"
        "while not answer.endswith(b'R'): answer += os.read(0, 100)\n"
        "os.write(1, repr(answer).encode())\n"
    )

    async def main() -> None:
        async with InteractiveSession([sys.executable, "-c", script], rows=30, columns=100) as program:
            await program.expect(r"\[30;100R")
            assert await program.wait(10) == 0

    asyncio.run(main())


def test_a_server_that_prints_for_ever_is_found_ready() -> None:
    """Issue 5, must hold: a server that prints without end; its ready line is found in the flood."""
    script = "i=0; while :; do echo noise $i; i=$((i+1)); [ $i = 5000 ] && echo listening on port 8080; done"

    async def main() -> None:
        async with InteractiveSession(["sh", "-c", script], tty=False) as server:
            found = await server.expect(r"listening on port (\d+)\n", 30)
            assert found.groups == ("8080",)
            await server.expect("noise 50000\n", 30)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("script", "prompt"),
    [
        (
            "import getpass; print(getpass.getpass('[sudo] password for me: ') == 'geheim')",
            r"\[sudo\] password for me: ",
        ),
        (  # what sudo does with pwfeedback: it reads single keys, and prints asterisks itself
            "import sys, tty, termios; m = termios.tcgetattr(0); tty.setcbreak(0); print('Password: ', end='', flush=1)\n"
            "got = ''\n"
            "while (key := sys.stdin.read(1)) not in '\\r\\n': got += key; print('*', end='', flush=True)\n"
            "termios.tcsetattr(0, termios.TCSANOW, m); print(got == 'geheim')",
            "Password: ",
        ),
    ],
    ids=["lines", "keys"],
)
def test_a_password_prompt(script: str, prompt: str) -> None:
    """Issue 5, must hold: a sudo-like password prompt is seen as one, and what is typed is printed by nobody."""

    async def main() -> None:
        async with InteractiveSession([sys.executable, "-c", script]) as program:
            await program.expect(prompt)
            await program.wait_until(lambda: program.asks_secret, 10)
            await program.write("geheim\n")
            found = await program.expect("True\r\n")
            assert "geheim" not in found.before
            assert not program.asks_secret

    asyncio.run(main())


# -- ssh to this machine ----------------------------------------------------------------------------------


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[list[str]]:
    """An OpenSSH server on this machine with throwaway keys; the argv that logs in."""
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "open sesame", "-f", str(tmp_path / "locked")], check=True)
    keys = [(tmp_path / f"{name}.pub").read_text() for name in ("client", "locked")]
    (tmp_path / "authorized").write_text("".join(keys))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": tmp_path / "host", "PidFile": "none", "UsePAM": "no",
        "AuthorizedKeysFile": tmp_path / "authorized", "PasswordAuthentication": "no", "StrictModes": "no",
        "KbdInteractiveAuthentication": "no", "PermitRootLogin": "prohibit-password",
    }  # fmt: skip
    (tmp_path / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # privilege separation (sshd(8))
    program = shutil.which("sshd") or "sshd"
    server = subprocess.Popen([program, "-De", "-f", str(tmp_path / "sshd_config")], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        for line in server.stderr:
            if "listening" in line:
                break
        options = ["-F", "none", "-p", str(port), "-o", f"UserKnownHostsFile={tmp_path / 'known'}", "-tt"]
        yield ["ssh", *options, "127.0.0.1"]
    finally:
        server.terminate()
        server.communicate()


@pytest.mark.requires("sshd", "ssh")
def test_ssh(sshd: list[str], tmp_path: Path) -> None:
    """Issue 5, must hold: ssh to a local sshd: the host key question, a remote shell, its window, its exit code."""

    async def main() -> None:
        async with InteractiveSession([*sshd, "-i", str(tmp_path / "client"), "sh -i"], rows=33, columns=99) as ssh:
            await ssh.expect(r"continue connecting \(yes/no/\[fingerprint\]\)\? ")
            assert not ssh.asks_secret
            await ssh.write("yes\n")
            await ssh.expect(r"[#$] $")
            await ssh.write("stty size\n")
            await ssh.expect("\n33 99\r\n")
            ssh.resize(40, 80)
            await ssh.write("sh -c 'echo be\"\"gun; exec sleep 60'\n")
            await ssh.expect("begun")
            await ssh.send_keys("C-c")
            await ssh.expect(r"\^C.*[#$] $")
            await ssh.write("stty size; exit 6\n")
            await ssh.expect("\n40 80\r\n")
            assert await ssh.wait(20) == 6

    asyncio.run(main())


@pytest.mark.requires("sshd", "ssh")
def test_ssh_asks_for_a_passphrase(sshd: list[str], tmp_path: Path) -> None:
    """Issue 5, must hold: a passphrase is asked for on the terminal, seen as a secret, and not echoed."""

    async def main() -> None:
        options = ["-i", str(tmp_path / "locked"), "-o", "StrictHostKeyChecking=accept-new", "-o", "IdentityAgent=none"]
        async with InteractiveSession([*sshd, *options, "echo in"]) as ssh:
            await ssh.expect("Enter passphrase for key .*: ")
            assert ssh.asks_secret
            await ssh.write("open sesame\n")
            assert "sesame" not in (await ssh.expect("in\r\n")).before
            assert await ssh.wait(20) == 0

    asyncio.run(main())
