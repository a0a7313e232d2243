"""A tool on a real bash, with a real audit log, and ways to call it and to see what it did."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor
from shellkit.audit import AuditLog
from shellkit.policy import ApprovalRequest, Decision
from shellkit.tool import ShellTool, ToolOutput


class Person:
    """An approver that gives one answer, and keeps what it was asked."""

    def __init__(self, **answer: Any) -> None:
        self.answer = Decision(**{"approved": True, **answer})
        self.asked: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request)
        return self.answer


class Bench:
    """A tool, the directory that its shell stands in, and its audit log."""

    def __init__(self, tool: ShellTool, shell: BlockingExecutor, workdir: Path, audit: AuditLog) -> None:
        self.tool = tool
        self.shell = shell
        self.workdir = workdir
        self.audit = audit

    def call(self, command: object = None, **arguments: Any) -> ToolOutput:
        """Call the tool: with a command, or with arguments of any kind as `raw`."""
        given = arguments.get("raw", {"command": command, **arguments})
        return asyncio.run(self.tool.call(given))

    @property
    def made(self) -> list[str]:
        """The names in the working directory: what commands have left there."""
        return sorted(path.name for path in self.workdir.iterdir())

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of the audit log without its first."""
        return [json.loads(line) for line in Path(self.audit.path).read_bytes().splitlines()][1:]

    def usable(self) -> bool:
        """Whether the session goes on: the programmer's own door, which no gate guards."""
        return self.shell.run("echo fine").stdout == "fine\n"


@pytest.fixture
def person() -> type[Person]:
    """Return the maker of approvers."""
    return Person


@pytest.fixture
def bench(open_shell: Callable[..., BlockingExecutor], tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Return a function that makes a tool; `shell` holds options of the executor, the rest are the tool's."""
    logs: list[AuditLog] = []

    def make(shell: dict[str, Any] | None = None, **options: Any) -> Bench:
        workdir = tmp_path / "work"
        workdir.mkdir(exist_ok=True)
        opened = open_shell(**{"workdir": workdir, "confinement": "off", **(shell or {})})
        logs.append(AuditLog(tmp_path / f"audit{len(logs)}"))
        return Bench(opened.executor.as_tool(**{"audit": logs[-1], **options}), opened, workdir, logs[-1])

    yield make
    for log in logs:
        log.close()


@pytest.fixture
def free(bench: Callable[..., Bench]) -> Bench:
    """A tool that asks nobody."""
    return bench(approval="never", acknowledge_unsafe=True)
