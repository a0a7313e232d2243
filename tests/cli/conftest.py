"""The real command line in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit.testing.openai_server import openai_server

__all__ = ["openai_server"]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of the developer's own shows."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "TERM": "dumb"}


@pytest.fixture
def start(environ: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Return a function that starts `shellkit ARGUMENTS` and does not wait."""

    def start_it(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        chosen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        chosen["env"] = {**environ, **chosen.pop("env", {})}
        command = [sys.executable, "-m", "shellkit", *arguments]
        return subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **chosen)

    return start_it


@pytest.fixture
def shellkit(environ: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs `shellkit ARGUMENTS` to its end; `input` is its stdin."""

    def run_it(
        *arguments: str,
        input: str | bytes = "",  # noqa: A002  (as in `subprocess.run`)
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        data = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            [sys.executable, "-m", "shellkit", *arguments],
            cwd=tmp_path,
            env={**environ, **(env or {})},
            input=data,
            capture_output=True,
            timeout=60,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run_it
