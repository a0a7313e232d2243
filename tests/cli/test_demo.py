"""`shellkit demo`: the agent that a newcomer sees at work."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shellkit.cli.demo import STEPS

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_demo(shellkit: Shellkit, shell: str) -> None:
    """Issue 4, item 6: every step goes as promised without key or network, and without colour when piped.

    Slow: one step waits a second for a time-out, and another starts a sub-agent.
    """
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    done = shellkit("demo", "--shell", shell, env=nowhere)
    assert done.stdout.splitlines()[-1] == f"demo: {len(STEPS)} of {len(STEPS)} as promised"
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    for step in STEPS:
        assert step.title in done.stdout
        assert step.promise in done.stdout


def test_demo_of_a_missing_shell(shellkit: Shellkit) -> None:
    """A shell that is not there is one line and exit code 2."""
    done = shellkit("demo", "--shell", "no-such-shell")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: shell not found")


@pytest.mark.slow
def test_a_demo_that_is_ended(start: Start, tmp_path: Path) -> None:
    """G3: SIGTERM leaves no directory behind. Slow: it waits for a demo to be on its way."""
    with start("demo", env={"TMPDIR": str(tmp_path)}) as process:
        assert process.stdout is not None
        while b"user: greet me" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert not list(tmp_path.glob("shellkit-demo-*"))
