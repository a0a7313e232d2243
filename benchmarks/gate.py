"""What the tool's gate adds to `run`: policy, approval, audit (on tmpfs) and rendering, in microseconds.

The bound is absolute (issue 3), so a busy machine shows here; the row says what the same calls of `run` took.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
from typing import Any

from shellkit import LocalExecutor
from shellkit.audit import AuditLog
from shellkit.policy import READ_ONLY, ApprovalRequest, Decision
from shellkit.tool import ShellTool

from .measure import Row, Times, alternate_async, report

_CALLS = 300
_TMPFS = "/dev/shm" if os.path.isdir("/dev/shm") else None
_WAYS = {
    "approver": "an approver that answers at once",
    "memory": "an approval remembered for the session",
    "policy": "approval='policy', allowed by a rule",
    "new": "the same, and no command a second time",
}


async def _approve_once(request: ApprovalRequest) -> Decision:
    return Decision(approved=True)


async def _approve_for_the_session(request: ApprovalRequest) -> Decision:
    return Decision(approved=True, scope="session")


async def _measure() -> Times:
    with tempfile.TemporaryDirectory(dir=_TMPFS) as directory, AuditLog(os.path.join(directory, "audit")) as audit:
        async with LocalExecutor(shell="bash") as shell:
            tools = {
                "approver": shell.as_tool(policy=READ_ONLY, approver=_approve_once, audit=audit),
                "memory": shell.as_tool(policy=READ_ONLY, approver=_approve_for_the_session, audit=audit),
                "policy": shell.as_tool(policy=READ_ONLY, approval="policy", audit=audit),
                "new": shell.as_tool(policy=READ_ONLY, approval="policy", audit=audit),
            }
            number = itertools.count()

            async def run() -> None:
                await shell.run("true")

            def through(name: str, tool: ShellTool) -> Any:
                async def call() -> None:
                    command = f"true {next(number)}" if name == "new" else "true"
                    output = await tool.call({"command": command, "timeout": None, "workdir": None})
                    assert output.result is not None, output.text

                return call

            candidates = {"run": run, **{name: through(name, tool) for name, tool in tools.items()}}
            return await alternate_async(candidates, calls=_CALLS)


def main() -> bool:
    """Measure and report."""
    times = asyncio.run(_measure())
    rows = [
        Row(
            what=f"gate: {way}",
            yardstick="run() of the same command",
            value=times.difference(name, "run") * 1e6,
            unit="us",
            bound=150,
            detail=f"{name} {times.median(name) * 1e6:.0f} us, run {times.median('run') * 1e6:.0f} us; "
            f"rounds {times.spread(name, 'run')} x",
        )
        for name, way in _WAYS.items()
    ]
    return report("gate", rows)


if __name__ == "__main__":
    sys.exit(not main())
