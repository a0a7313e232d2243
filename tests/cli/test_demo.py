"""`shellkit demo`: the tour that a newcomer sees."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from shellkit.cli.demo import STEPS

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_demo(shellkit: Shellkit, shell: str) -> None:
    """Every step goes as promised, without colour when piped; one of them waits a second for a time-out."""
    done = shellkit("demo", "--shell", shell)
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
