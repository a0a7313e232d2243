"""`shellkit audit`, on logs that the command line itself has written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def log(shellkit: Shellkit, tmp_path: Path) -> Path:
    """A log with a command that ran, one that failed, and one that was refused."""
    (tmp_path / "p.toml").write_text("[policy]\ndefault = 'allow'\n[[rule]]\nprefix = ['rm']\ndecision = 'deny'\n")
    done = shellkit("run", "--policy", "p.toml", "--audit", "log", "echo one", "(exit 3)", "rm x", "echo never")
    assert (done.stdout, done.returncode) == ("one\n", 126)
    return tmp_path / "log"


def test_every_command_is_recorded(shellkit: Shellkit, log: Path) -> None:
    """H9: each command is there with who decided and how it ended, the refused one too; only the user can read it."""
    done = shellkit("audit", "show", "--json", "log")
    calls = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(call["event"], call["command"]) for call in calls] == [
        ("before", "echo one"),
        ("before", "(exit 3)"),
        ("refused", "rm x"),
    ]
    assert [call["outcome"] and call["outcome"]["exit_code"] for call in calls] == [0, 3, None]
    assert calls[2]["decided_by"] == "policy: deny rm (p.toml:3)"
    assert {call["tool"] for call in calls} == {"shellkit run"}
    shown = shellkit("audit", "show", "log", env={"COLUMNS": "160"})
    assert (shown.returncode, "refused" in shown.stdout, "exit 3" in shown.stdout) == (0, True, True)
    assert os.stat(log).st_mode & 0o777 == 0o600


def test_recording_alone_refuses_nothing(shellkit: Shellkit) -> None:
    """H9: `--audit` without a policy or approval runs as ever, and writes it down."""
    done = shellkit("run", "--audit", "log", "A=kept", "echo $A")
    assert (done.stdout, done.stderr, done.returncode) == ("kept\n", "", 0)
    assert "the chain is whole" in shellkit("audit", "verify", "log").stdout


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("change", "line 2: changed"),
        ("remove", "removed"),
        ("swap", "swapped"),
    ],
)
def test_a_line_that_was_tampered_with_is_named(shellkit: Shellkit, log: Path, how: str, says: str) -> None:
    """H9: a changed, missing or reordered line is named, and the exit code is 1; 0 before."""
    assert shellkit("audit", "verify", "log").returncode == 0
    lines = log.read_bytes().splitlines(keepends=True)
    if how == "change":
        lines[1] = lines[1].replace(b"echo one", b"echo two")
    elif how == "remove":
        del lines[2]
    else:
        lines[1:3] = lines[2:0:-1]
    log.write_bytes(b"".join(lines))
    done = shellkit("audit", "verify", "log")
    assert (done.returncode, says in done.stdout) == (1, True)


@pytest.mark.parametrize("command", ["verify", "show"])
def test_no_file(shellkit: Shellkit, command: str) -> None:
    """Bad input: a file that is not there is one line and exit code 2."""
    done = shellkit("audit", command, "no-such-log")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-log" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run", "repl"])
def test_what_cannot_be_recorded_does_not_run(shellkit: Shellkit, tmp_path: Path, command: str) -> None:
    """H9: without a log that can be written, nothing runs."""
    arguments = ["touch ran"] if command == "run" else []
    done = shellkit(command, "--audit", "no/such/log", *arguments, input="touch ran\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no/such/log cannot be opened" in done.stderr
    assert list(tmp_path.iterdir()) == []
