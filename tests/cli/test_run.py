"""`shellkit run` as a person or a script meets it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


def _alive(pid: str) -> bool:
    """Whether the process is more than a zombie that its new parent has not met yet."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except FileNotFoundError:
        return False


def test_tour_of_the_issue(shellkit: Shellkit) -> None:
    """State outlives a syntax error and an exit, and the exit code is that of the last command."""
    done = shellkit("run", "export A=1; cd /tmp", 'echo "unbalanced', "exit 7", "echo $A $PWD")
    assert (done.stdout, done.returncode) == ("1 /tmp\n", 0)
    assert "unexpected EOF" in done.stderr
    assert "shellkit:" not in done.stderr


@pytest.mark.parametrize(
    ("commands", "code"),
    [(("exit 7",), 7), (("false", "true"), 0), (("true", "false"), 1), (("kill -9 $$",), 137), (("",), 0)],
)
def test_exit_code(shellkit: Shellkit, commands: tuple[str, ...], code: int) -> None:
    """The exit code is the last command's, whatever the ones before did."""
    assert shellkit("run", *commands).returncode == code


def test_streams_stay_apart(shellkit: Shellkit) -> None:
    """stdout and stderr of the command are ours, with nothing added."""
    done = shellkit("run", "printf out; printf err >&2")
    assert (done.stdout, done.stderr, done.returncode) == ("out", "err", 0)


def test_output_appears_while_the_command_runs(start: Start, tmp_path: Path) -> None:
    """What is printed can be read before the command has ended: it ends only once we have read it."""
    os.mkfifo(tmp_path / "answer")
    with start("run", "echo first; read line <answer; echo $line") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        (tmp_path / "answer").write_text("second\n")
        assert process.stdout.read() == b"second\n"
        assert process.wait(30) == 0


def test_stdin_is_one_command(shellkit: Shellkit) -> None:
    """`-` stands for all of stdin, here-document and all, among other commands."""
    done = shellkit("run", "A=kept", "-", "echo end", input="cat <<X\n$A\nX\nif true; then\n echo lines\nfi\n")
    assert (done.stdout, done.stderr) == ("kept\nlines\nend\n", "")


def test_stdin_that_is_no_text(shellkit: Shellkit) -> None:
    """Bytes that are not UTF-8 are refused with the remedy, and nothing runs."""
    done = shellkit("run", "echo ran", "-", input=b"echo \xff")
    assert (done.stdout, done.returncode) == ("", 2)
    assert "iconv" in done.stderr


def test_the_commands_of_stdin_do_not_read_stdin(shellkit: Shellkit) -> None:
    """A command finds its stdin empty, not ours."""
    assert shellkit("run", "cat; echo end", input="for nobody\n").stdout == "end\n"


def test_json(shellkit: Shellkit) -> None:
    """`--json` prints one object a command and nothing else."""
    done = shellkit("run", "--json", "echo out; echo err >&2", "exit 7", "sleep 60 & echo left")
    first, second, third = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["stdout"], first["stderr"], first["exit_code"]) == ("out\n", "err\n", 0)
    assert (second["exit_code"], second["shell_state"]) == (7, "restored")
    assert third["background"][0]["running"] is True
    assert (done.stderr, done.returncode) == ("", 0)


def test_timeout(shellkit: Shellkit) -> None:
    """A time-out gives 124, what had been printed, and a note."""
    done = shellkit("run", "--timeout", "0.2", "echo before; sleep 60; echo after")
    assert (done.stdout, done.returncode) == ("before\n", 124)
    assert re.match(r"shellkit: note: .*time-out", done.stderr)


def test_background_job_ends_with_the_session(shellkit: Shellkit) -> None:
    """A job that would die with the session is named."""
    done = shellkit("run", "sleep 60 & echo $!")
    assert (done.returncode, done.stderr.startswith("shellkit: note: background jobs end")) == (0, True)
    assert done.stdout.strip() in done.stderr
    assert not _alive(done.stdout.strip())


def test_stateless(shellkit: Shellkit) -> None:
    """`--mode stateless` gives every command a fresh shell."""
    assert shellkit("run", "--mode", "stateless", "A=1", "echo ${A-unset}").stdout == "unset\n"


def test_workdir_and_confinement(shellkit: Shellkit, tmp_path: Path) -> None:
    """A session with a working directory is brought back to it, unless told otherwise."""
    (tmp_path / "inner").mkdir()
    done = shellkit("run", "--workdir", "inner", "cd /", "pwd")
    assert done.stdout == f"{tmp_path}/inner\n"
    assert "note" in done.stderr
    assert shellkit("run", "--workdir", "inner", "--confinement", "off", "cd /", "pwd").stdout == "/\n"


def test_shell(shellkit: Shellkit) -> None:
    """`--shell` chooses, and so does the environment variable."""
    ask = "readlink /proc/$$/exe"
    assert "bash" not in shellkit("run", "--shell", "dash", ask).stdout
    assert "bash" not in shellkit("run", ask, env={"SHELLKIT_SHELL": "dash"}).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "Missing argument"),
        (("--no-such-option", "true"), "--no-such-option"),
        (("--timeout", "0", "true"), "positive"),
        (("--timeout", "-1", "true"), "positive"),
        (("--timeout", "nan", "true"), "finite"),
        (("--timeout", "soon", "true"), "valid float"),
        (("--mode", "other", "true"), "stateless"),
        (("--confinement", "jail", "true"), "anchor"),
        (("--shell", "no-such-shell", "true"), "shell not found"),
        (("--shell", "", "true"), "blank"),
        (("--shell", "fish", "true"), "fish"),
        (("--workdir", "/no/such/directory", "true"), "does not exist"),
        (("-", "-"), "only once"),
        ((b"echo \xff",), "surrogate"),
    ],
)
def test_bad_input(shellkit: Shellkit, arguments: tuple[str | bytes, ...], says: str) -> None:
    """A wrong call is one line on stderr that names the remedy, and exit code 2."""
    done = shellkit("run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("Error:")]) == 1


def test_dashes(shellkit: Shellkit) -> None:
    """After `--` everything is a command."""
    assert shellkit("run", "--", "--json", "echo ran").stdout == "ran\n"


def test_reader_that_goes_away(start: Start) -> None:
    """A closed stdout ends the command and the session, quietly."""
    with start("run", "yes", "echo never >&2") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(2) == b"y\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_interrupt(start: Start) -> None:
    """Ctrl-C ends the command and what it started; the exit code is 130 and the later commands do not run."""
    with start("run", "echo $$; sleep 60", "echo never") as process:
        assert process.stdout is not None
        shell = process.stdout.readline().decode().strip()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b""
        assert process.wait(30) == 130
    assert not _alive(shell)


def test_output_as_it_is(shellkit: Shellkit) -> None:
    """Line ends, NUL bytes and characters arrive as they were written."""
    assert shellkit("run", r"printf 'a\r\nb\0\303\244'").stdout == "a\r\nb\0ä"
