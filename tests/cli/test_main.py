"""The command as a whole."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


def test_help_lists_the_commands(shellkit: Shellkit) -> None:
    """`shellkit --help` names every sub-command."""
    done = shellkit("--help")
    assert done.returncode == 0
    for name in ("run", "repl", "policy", "audit", "doctor", "demo"):
        assert f"\n  {name} " in done.stdout


def test_version(shellkit: Shellkit) -> None:
    """`shellkit --version` is the package's."""
    import shellkit as package

    assert package.__version__ in shellkit("--version").stdout


def test_unknown_command(shellkit: Shellkit) -> None:
    """A command that there is not is a usage error."""
    assert shellkit("no-such-command").returncode == 2


def test_import_loads_no_command_line() -> None:
    """`import shellkit` loads neither click nor rich, nor the command line, nor the test suite."""
    code = "import shellkit, sys; print([n for n in sys.modules if n.split('.')[0] in ('click', 'rich', 'pytest')"
    code += " or n.startswith(('shellkit.cli', 'shellkit.testing'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=Path(__file__).parents[2], text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    """Contract C2: what would go to a stream that the caller has closed is in no file of ours instead."""
    log = tmp_path / "log"
    words = [sys.executable, "-m", "shellkit", "run", "--audit", str(log), "echo printed", "-"]
    done = subprocess.run(f"{shlex.join(words)} {closed}", shell=True, capture_output=True, input=b"true", timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout in (b"", b"printed\n")
    words = [sys.executable, "-m", "shellkit", "audit", "verify", str(log)]
    assert subprocess.run(words, capture_output=True, timeout=60).returncode == 0


PRINTING = (
    "--help",
    "--version",
    "run 'echo printed'",
    "run --json true",
    "ps",
    "doctor",
    "doctor --json",
    "demo",
    "policy check ls",
    "policy check --json ls",
    "audit verify LOG",
    "audit show LOG",
    "audit show --json LOG",
    "play CAST",
)


@pytest.mark.parametrize("line", PRINTING)
def test_output_that_cannot_be_written(line: str, start: Start, shellkit: Shellkit) -> None:
    """Contract C2: a full disk is one line on stderr and exit code 2, a reader that has gone is exit code 141."""
    if "LOG" in line or "CAST" in line:
        shellkit("run", "--audit", "LOG", "echo printed")
        shellkit("repl", "--record", "CAST", input="echo printed")
    with open("/dev/full", "wb") as full:
        process = start(*shlex.split(line), stdout=full)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said.startswith(b"shellkit: note: the output cannot be written: No space left on device; make room")
    assert said.count(b"\n") == 1
    process = start(*shlex.split(line))
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""
