"""A tool on a real bash for the adapters' tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor
from shellkit.tool import ShellTool


@pytest.fixture
def make_tool(open_shell: Callable[..., BlockingExecutor], tmp_path: Path) -> Callable[..., ShellTool]:
    """Return a function that makes a tool on a bash in `tmp_path`; it asks nobody unless told so."""

    def make(**options: Any) -> ShellTool:
        asks: dict[str, Any] = {"approval": "never", "acknowledge_unsafe": True} if "approval" not in options else {}
        return open_shell(workdir=tmp_path, confinement="off").executor.as_tool(**asks, **options)

    return make


@pytest.fixture
def tool(make_tool: Callable[..., ShellTool]) -> ShellTool:
    """A tool that asks nobody."""
    return make_tool()
