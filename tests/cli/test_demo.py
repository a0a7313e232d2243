"""`shellkit demo`: the agent that a newcomer sees at work."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from shellkit.cli.demo import STEPS

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]


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
