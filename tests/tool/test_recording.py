"""The audit log around a command: what cannot be recorded does not run."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shellkit.audit import AuditError, AuditLog, verify
from shellkit.policy import READ_ONLY, Rule, RulePolicy

FREE = {"approval": "never", "acknowledge_unsafe": True}
POLICY = RulePolicy(rules=[*READ_ONLY.rules, Rule(prefix=["rm"], decision="deny", origin="shellkit.toml:3")])


@contextmanager
def _full_tmpfs(path: Path) -> Iterator[Path]:
    """A disk of two pages that a file of four fills."""
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", str(path)], capture_output=True)
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is not allowed here: {done.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


@contextmanager
def _size_limit(size: int) -> Iterator[None]:
    """No file of this process may become longer: what a full disk is to a writer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_before_and_after(bench: Any) -> None:
    """H9: one line before with who decided by which rule, one after with exit and output; the chain is whole."""
    it = bench(approval="policy", policy=POLICY)
    asyncio.run(it.tool.call({"command": "cat nothing"}, call_id="call_7"))
    before, after = it.lines
    assert (before["command"], before["decision"], before["call_id"]) == ("cat nothing", "allowed", "call_7")
    assert before["decided_by"].startswith("policy: allow ")
    assert (before["tool"], before["executor"], before["workdir"]) == ("run_shell", "LocalExecutor", str(it.workdir))
    assert (after["call"], after["exit_code"], after["stdout_bytes"]) == (before["seq"], 1, 0)
    assert after["stderr_bytes"] > 0
    assert verify(it.audit.path).ok


def test_the_line_is_there_before_the_command_runs(bench: Any) -> None:
    """H9: it is flushed before the command starts, so the command itself can read it."""
    it = bench(**FREE)
    assert "tail -n 1" in it.call(f"tail -n 1 {it.audit.path}").result.stdout


def test_refused_calls_are_on_record(bench: Any, person: Any) -> None:
    """H9: who or which rule refused, and why; by the policy, by a person, for want of one, by the confinement."""
    denied = bench(policy=POLICY)
    denied.call("rm -rf /")
    assert denied.lines[0]["decided_by"] == "policy: deny rm (shellkit.toml:3)"
    refused = bench(approver=person(approved=False, reason="no"))
    refused.call("ls")
    assert refused.lines[0]["decided_by"] == "approver Person"
    unasked = bench()
    unasked.call("ls")
    assert unasked.lines[0]["decided_by"] == "no approver"
    outside = bench(shell={"confinement": "root"}, **FREE)
    outside.call("ls", workdir="/")
    assert outside.lines[0]["decided_by"] == "confinement"
    for it in (denied, refused, unasked, outside):
        (line,) = it.lines
        assert (line["event"], line["decision"]) == ("refused", "refused")
        assert line["reason"].startswith("Not run: ")
        assert verify(it.audit.path).ok


def test_a_directory_is_no_audit_log(bench: Any, tmp_path: Path) -> None:
    """H9: a log that cannot be opened is an error when the tool is made, before any model sees it."""
    with pytest.raises(AuditError, match="cannot be opened"):
        bench(audit=tmp_path, **FREE)


def test_a_path_is_an_audit_log(bench: Any, tmp_path: Path) -> None:
    """H9: `audit=` takes the path of a log; its descriptor goes with the tool."""
    it = bench(audit=tmp_path / "mine", **FREE)
    it.call("true")
    it.tool = None
    gc.collect()
    assert not [fd for fd in os.listdir("/proc/self/fd") if _target(fd) == str(tmp_path / "mine")]
    assert verify(tmp_path / "mine").lines == 3


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def _deleted(it: Any) -> None:
    os.unlink(it.audit.path)


def _closed(it: Any) -> None:
    it.audit.close()


@pytest.mark.parametrize("break_it", [_deleted, _closed])
def test_what_cannot_be_recorded_does_not_run(bench: Any, break_it: Any) -> None:
    """H9: when the line before cannot be written, the command does not run, and the model is told."""
    it = bench(**FREE)
    break_it(it)
    output = it.call("touch a")
    assert (output.is_error, output.result, it.made) == (True, None, [])
    assert output.text.startswith("Not run: the audit log ")
    assert it.usable()


def test_a_full_disk(bench: Any, tmp_path: Path) -> None:
    """H9: on a disk without room nothing runs; with room again, commands do, and the chain is whole."""
    with _full_tmpfs(tmp_path / "disk") as disk, AuditLog(disk / "audit") as log:
        it = bench(audit=log, **FREE)
        it.call("true")
        (disk / "filler").write_bytes(b"x" * 4096)
        output = it.call("touch a # " + "x" * 5000)
        assert (output.is_error, it.made) == (True, [])
        assert "make room on its disk" in output.text
        (disk / "filler").unlink()
        assert it.call("echo b").result.stdout == "b\n"
        assert verify(disk / "audit").ok


def test_a_file_that_may_not_grow(bench: Any) -> None:
    """H9: half a line is as good as none: the command does not run."""
    it = bench(**FREE)
    with _size_limit(os.path.getsize(it.audit.path) + 50):
        output = it.call("touch a")
    assert (output.is_error, it.made) == (True, [])
    assert "Nothing runs that cannot be recorded" in output.text
    assert it.call("touch b").result is not None
    assert (it.made, verify(it.audit.path).ok) == (["b"], True)


def test_an_outcome_that_cannot_be_recorded(bench: Any) -> None:
    """H4, H9: the command has run, so the model gets its result, with a note; the next one does not run."""
    it = bench(**FREE)
    output = it.call(f"rm {it.audit.path}; echo done")
    assert output.text.startswith("done\n")
    assert "could not be recorded" in output.text
    assert "could not be recorded" in output.result.notes[-1]
    assert it.call("touch a").is_error
    assert it.made == []


def test_a_refusal_that_cannot_be_recorded(bench: Any) -> None:
    """H4: the model is told the reason of the refusal all the same."""
    it = bench()
    it.audit.close()
    output = it.call("touch a")
    assert "needs approval" in output.text
    assert it.made == []


def test_secrets_are_not_written(bench: Any) -> None:
    """H9: what looks like a secret is taken out of the command, and out of the reason that quotes it."""
    it = bench(approval="policy", policy=RulePolicy(rules=[Rule(prefix=["curl"], decision="deny")]))
    output = it.call("curl -H 'Authorization: Bearer abcdefghijklmnop' http://x")
    assert output.is_error
    assert "abcdefghijklmnop" not in Path(it.audit.path).read_text()
