"""The two ways in which a program can be connected, and characters of all widths for every program."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every program a locale with wide characters, whatever the machine has."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture(params=[True, False], ids=["tty", "pipes"])
def tty(request: pytest.FixtureRequest) -> bool:
    """A terminal, and two pipes, for rules that hold with both."""
    return bool(request.param)
