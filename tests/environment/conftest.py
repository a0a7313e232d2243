"""Programs to be probed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def tool(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that makes a program in `tmp_path/bin`."""
    (tmp_path / "bin").mkdir()

    def make(name: str, script: str) -> Path:
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return make
