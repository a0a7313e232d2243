"""A log to write to, and one that holds some calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from shellkit import ShellResult
from shellkit.audit import AuditLog

DONE = ShellResult(
    command="x", stdout="out\n", stderr="é", exit_code=3, duration=0.25, workdir="/w", shell_state="restored"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def filled(path: Path) -> Path:
    """A log of five calls: line 1 begins it, 2 to 11 are calls and their ends, 12 is a refusal."""
    with AuditLog(path) as log:
        for number in range(5):
            log.after(log.before(f"echo {number}", decision="allowed", decided_by="policy: read-only"), DONE)
        log.before("rm -rf /", decision="refused", decided_by="approver: ann", reason="no")
    return path
