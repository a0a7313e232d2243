"""`shellkit audit verify` and `shellkit audit show` (contract H9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from shellkit import ExecutorClosed, ShellResult
from shellkit.audit import AuditLog, verify
from shellkit.cli.audit import audit as audit_command


def allowed(log: AuditLog, command: str = "ls", **about: Any) -> Any:
    return log.before(command, decision="allowed", decided_by="policy: read-only", tool="run_shell", **about)


def edit(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def test_cli_verify(filled: Path) -> None:
    """H9: `shellkit audit verify` ends with 0 and the last hash, or with 1, the line and the reason, or with 2."""
    run = CliRunner().invoke
    done = run(audit_command, ["verify", str(filled)])
    assert (done.exit_code, "12 lines; the chain is whole" in done.output) == (0, True)
    assert str(verify(filled).head) in done.output
    edit(filled, lambda lines: [*lines[:3], lines[3].replace(b"echo", b"evil"), *lines[4:]])
    done = run(audit_command, ["verify", str(filled)])
    assert (done.exit_code, "line 4: changed: what it says does not match its hash" in done.output) == (1, True)
    done = run(audit_command, ["verify", "--anchor", "0" * 64, str(filled)])
    assert (done.exit_code, "anchor" in done.output) == (1, True)
    assert run(audit_command, ["verify", f"{filled}.none"]).exit_code == 2


def test_cli_show(filled: Path) -> None:
    """H9: `shellkit audit show` prints one row a call with its end; `--last` the last ones only."""
    with AuditLog(filled) as log:
        log.after(allowed(log, "sleep 9"), ShellResult(command="", exit_code=124, timed_out=True, duration=9))
        log.after(allowed(log, "cat"), ExecutorClosed("closed"))
        allowed(log, "printf '\x1b[31m'")
    run = CliRunner().invoke
    shown = run(audit_command, ["show", str(filled)], env={"COLUMNS": "160"}).output
    for words in (
        "echo 0",
        "exit 3, 0.25 s",
        "rm -rf /",
        "refused",
        "approver: ann",
        "timed out",
        "ExecutorClosed",
        "no end",
    ):
        assert words in shown
    assert "\x1b[31m" not in shown
    assert "echo 4" not in run(audit_command, ["show", "--last", "4", str(filled)]).output
    calls = [json.loads(line) for line in run(audit_command, ["show", "--json", str(filled)]).output.splitlines()]
    assert [call["event"] for call in calls] == ["before"] * 5 + ["refused"] + ["before"] * 3
    assert [call["outcome"] is None for call in calls] == [False] * 5 + [True, False, False, True]
    assert calls[0]["outcome"]["exit_code"] == 3
