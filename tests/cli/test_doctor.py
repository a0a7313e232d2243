"""`shellkit doctor`: what it says of this machine is true, and safe to paste."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable

import pytest

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]


def test_report(shellkit: Shellkit) -> None:
    """Every group is there, and the last line says whether a session works."""
    done = shellkit("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    for heading in ("Session", "Shells", "Isolation", "Limits", "Environment"):
        assert f"\n{heading}\n" in f"\n{done.stdout}"
    assert done.stdout.splitlines()[-1].startswith("doctor: a session works here")


def test_json(shellkit: Shellkit) -> None:
    """`--json` says the same as values; whatever is limited or absent has a remedy."""
    report = json.loads(shellkit("doctor", "--json").stdout)
    assert report["works"] is True
    checks = {(check["group"], check["name"]): check for check in report["checks"]}
    assert checks["Shells", "bash"]["status"] == "ok"
    for name in ("kill", "pidfd", "memfd", "/proc of children", "bwrap", "docker", "podman"):
        assert ("Isolation", name) in checks
    for check in report["checks"]:
        assert check["found"]
        assert check["remedy"] or check["status"] in ("ok", "refused")


def test_secrets_are_named_and_not_shown(shellkit: Shellkit) -> None:
    """The names of variables that are left out appear, their values never."""
    done = shellkit("doctor", env={"SOME_API_KEY": "hunter2", "X\x1b[2J_TOKEN": "hunter2"})
    assert "SOME_API_KEY" in done.stdout
    assert "X\\x1b[2J_TOKEN" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["no-such-shell", "/bin/cat", "/bin/false"])
def test_nothing_works(shellkit: Shellkit, shell: str) -> None:
    """Without a usable shell the exit code is 1, and the message tells what to do."""
    done = shellkit("doctor", "--json", env={"SHELLKIT_SHELL": shell})
    report = json.loads(done.stdout)
    assert (done.returncode, report["works"], done.stderr) == (1, False, "")
    [failed] = [check for check in report["checks"] if check["status"] == "failed"]
    assert failed["remedy"]
    assert os.path.basename(shell) in failed["found"]
