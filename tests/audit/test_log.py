"""Writing the audit log: its lines, several writers, and what cannot be written (contract H9)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from shellkit import ExecutorClosed, ShellkitError, ShellResult
from shellkit.audit import AuditError, AuditLog, records, verify
from shellkit.audit import log as log_module

DONE = ShellResult(
    command="x", stdout="out\n", stderr="é", exit_code=3, duration=0.25, workdir="/w", shell_state="restored"
)


def allowed(log: AuditLog, command: str = "ls", **about: Any) -> Any:
    return log.before(command, decision="allowed", decided_by="policy: read-only", tool="run_shell", **about)


def test_a_line_before_and_after(path: Path) -> None:
    """H9: one line says what, where, for whom and who decided; the next one what came of it."""
    with AuditLog(path) as log:
        entry = allowed(log, "ls", reason="reads", executor="LocalExecutor", session="s1", call_id="c1", workdir="/w")
        log.after(entry, DONE)
    begin, before, after = (json.loads(line) for line in path.read_text().splitlines())
    assert (begin["event"], begin["seq"], begin["prev"], len(begin["id"])) == ("begin", 0, "0" * 64, 32)
    assert before["prev"] == begin["hash"]
    assert {name: before[name] for name in before if name not in ("hash", "prev", "time", "pid")} == {
        "event": "before", "seq": 1, "command": "ls", "decision": "allowed", "decided_by": "policy: read-only",
        "reason": "reads", "tool": "run_shell", "executor": "LocalExecutor", "session": "s1", "call_id": "c1",
        "workdir": "/w",
    }  # fmt: skip
    assert before["time"].endswith("+00:00")
    assert {name: after[name] for name in after if name not in ("hash", "prev", "time")} == {
        "event": "after", "seq": 2, "call": 1, "exit_code": 3, "duration": 0.25, "timed_out": False,
        "shell_state": "restored", "workdir": "/w", "omitted_bytes": 0,
        "stdout_bytes": 4, "stdout_sha256": hashlib.sha256(b"out\n").hexdigest(),
        "stderr_bytes": 2, "stderr_sha256": hashlib.sha256("é".encode()).hexdigest(),
    }  # fmt: skip


def test_the_hash_is_of_canonical_json(path: Path) -> None:
    """H9: anybody can check a line: drop `hash`, write canonical JSON, take the SHA-256."""
    with AuditLog(path) as log:
        allowed(log, 'printf "é\\n\u2028" \udce9')
    for line in path.read_bytes().splitlines():
        record = json.loads(line)
        claimed = record.pop("hash")
        canonical = json.dumps(record, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(canonical.encode()).hexdigest() == claimed
    assert json.loads(line)["command"] == 'printf "é\\n\u2028" \udce9'


def test_every_log_begins_differently(tmp_path: Path) -> None:
    """H9: the first line is random, so that lines of one log do not fit into another."""
    for name in ("a", "b"):
        AuditLog(tmp_path / name).close()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()


def test_it_is_on_the_file_before_the_command_starts(path: Path) -> None:
    """H9: when `before` returns, the line can be read, and nothing is kept back in a buffer."""
    with AuditLog(path) as log:
        entry = allowed(log, "sleep 1")
        assert json.loads(path.read_bytes().splitlines()[-1])["hash"] == entry.hash
        assert verify(path).unfinished == 1


def test_refusals_have_a_line(filled: Path) -> None:
    """H9: a refused call is recorded with who refused it and why; it has no end."""
    last = list(records(filled))[-1]
    assert (last["event"], last["decision"], last["decided_by"], last["reason"]) == (
        "refused",
        "refused",
        "approver: ann",
        "no",
    )
    assert verify(filled).unfinished == 0


def test_an_exception_is_an_end(path: Path) -> None:
    """H9: a call that ended with an exception says which, and what had been printed if that is known."""
    with AuditLog(path) as log:
        log.after(allowed(log), ExecutorClosed("closed", DONE))
        log.after(allowed(log), KeyboardInterrupt())
    ends = [record for record in records(path) if record["event"] == "after"]
    assert [end["error"] for end in ends] == ["ExecutorClosed", "KeyboardInterrupt"]
    assert ends[0]["stdout_bytes"] == 4
    assert "exit_code" not in ends[1]


def test_wrong_decision(path: Path) -> None:
    """H9: a decision is one of two words, so that no refusal is counted as a run."""
    with AuditLog(path) as log, pytest.raises(ValueError, match="allowed"):
        log.before("ls", decision="allow", decided_by="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_the_owner_reads_it(path: Path, umask: int) -> None:
    """H9: the file is made 0600, whatever the umask."""
    before = os.umask(umask)
    try:
        AuditLog(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_goes_on(filled: Path) -> None:
    """H9: a second writer continues the chain, and `fsync` changes nothing in it."""
    lines = len(filled.read_bytes().splitlines())
    with AuditLog(filled, fsync=True) as log:
        log.after(allowed(log), DONE)
    assert (verify(filled).ok, verify(filled).lines) == (True, lines + 2)


def test_a_command_of_ten_megabytes(path: Path) -> None:
    """H9, B3: the whole command is recorded, however long, and the next writer finds its line."""
    command = "x" * 10_000_000
    with AuditLog(path) as log:
        allowed(log, command)
    with AuditLog(path) as log:
        allowed(log, "ls")
    assert (verify(path).ok, [len(record.get("command", "")) for record in records(path)]) == (True, [0, 10_000_000, 2])


# -- several writers -------------------------------------------------------------------------------------


WRITER = """
import sys
from shellkit.audit import AuditLog
from shellkit.result import ShellResult
with AuditLog(sys.argv[1]) as log:
    for _ in range(int(sys.argv[2])):
        log.after(log.before("ls", decision="allowed", decided_by="x"), ShellResult(command="ls", exit_code=0))
"""


def writer(path: Path, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, path, str(count)])


def test_several_processes(path: Path) -> None:
    """H9: processes that write to one file at once make one chain."""
    writers = [writer(path, 200) for _ in range(4)]
    assert [one.wait() for one in writers] == [0] * 4
    report = verify(path)
    assert (report.problems, report.lines, report.unfinished) == ((), 1601, 0)


def test_several_threads(path: Path) -> None:
    """H9: threads that share a log make one chain, and each end belongs to its beginning."""
    with AuditLog(path) as log:

        def work(name: str) -> None:
            for number in range(50):
                log.after(
                    allowed(log, f"{name} {number}"), ShellResult(command="", stdout=f"{name} {number}", exit_code=0)
                )

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (verify(path).ok, verify(path).lines) == (True, 401)
    commands = {record["seq"]: record["command"] for record in records(path) if record["event"] == "before"}
    for record in records(path):
        if record["event"] == "after":
            assert record["stdout_sha256"] == hashlib.sha256(commands[record["call"]].encode()).hexdigest()


def test_a_forked_child(path: Path) -> None:
    """H9, G4: a forked child writes with a lock of its own, even if the parent's was held when it forked."""
    with AuditLog(path) as log:
        log._mutex.acquire()
        child = os.fork()
        if child == 0:
            try:
                for _ in range(100):
                    allowed(log, "child")
                log.close()
            finally:
                os._exit(0)
        log._mutex.release()
        for _ in range(100):
            allowed(log, "parent")
        os.waitpid(child, 0)
        allowed(log, "parent")
    assert (verify(path).problems, verify(path).lines) == ((), 202)


def test_a_writer_that_is_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H9: a process that holds the lock and does not go on is an error after a while, not a hang."""
    from fcntl import LOCK_EX, flock

    monkeypatch.setattr(log_module, "_PATIENCE", 0.02)
    with AuditLog(path) as log, path.open("rb") as other:
        flock(other, LOCK_EX)
        with pytest.raises(AuditError, match="locked by another process"):
            allowed(log)


# -- what cannot be written ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["missing/audit.jsonl", ".", "fifo", "/dev/null"])
def test_paths_that_are_no_file(tmp_path: Path, name: str) -> None:
    """H9: a log that cannot be written is an `AuditError` at once, with a remedy."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(AuditError, match="path"):
        AuditLog(tmp_path / name)
    assert issubclass(AuditError, ShellkitError)


def test_a_current_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H9, D5: so is a log in a directory that has been deleted."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(AuditError, match=r"the audit log log cannot be opened: No such file.* name another path"):
        AuditLog("log")


def test_after_close(path: Path) -> None:
    """H9: a closed log records nothing, and says so instead of letting the command run."""
    log = AuditLog(path)
    log.close()
    log.close()
    with pytest.raises(AuditError, match="closed"):
        allowed(log)


def test_a_full_disk(path: Path) -> None:
    """H9: what does not fit is an `AuditError`, and the file ends with a whole line (RLIMIT_FSIZE is the disk)."""
    code = (
        "import os, resource, sys; from shellkit.audit import *\n"
        "log = AuditLog(sys.argv[1]); size = os.path.getsize(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, -1))\n"
        "for _ in range(2):\n"
        "    try: log.before('ls', decision='allowed', decided_by='x'); print('written')\n"
        "    except AuditError as error: print(error)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))\n"
        "log.before('ls', decision='allowed', decided_by='x')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert [line.startswith("the audit log") and "room" in line for line in done.stdout.splitlines()] == [True, True]
    assert (verify(path).problems, verify(path).lines) == ((), 2)


def test_an_error_of_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H9: an error of write(2) is an `AuditError` with its reason; the log goes on when the error is gone."""

    def fail(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with AuditLog(path) as log:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fail)
            with pytest.raises(AuditError, match="No space left on device"):
                allowed(log)
        allowed(log)
    assert (verify(path).ok, verify(path).lines) == (True, 2)


@pytest.mark.parametrize("how", ["delete", "empty", "shorten", "append a line", "other log"])
def test_what_happens_to_a_log_in_use(filled: Path, how: str) -> None:
    """H9: a writer notices that its file was deleted, cut or continued by something else, and nothing more runs."""
    with AuditLog(filled) as log:
        lines = filled.read_bytes().splitlines(keepends=True)
        if how == "delete":
            filled.unlink()
        elif how == "empty":
            os.truncate(filled, 0)
        elif how == "shorten":
            os.truncate(filled, sum(map(len, lines[:-1])))
        elif how == "append a line":
            filled.write_bytes(b"".join(lines) + b'{"event":"before"}\n')
        else:
            filled.write_bytes(lines[0] + b"x" * 10_000 + b"\n" + lines[1])
        for _ in range(2):
            with pytest.raises(AuditError, match="keep it as evidence"):
                allowed(log)


def test_a_killed_writer(path: Path) -> None:
    """H9: after SIGKILL in the middle of writing, the log can be continued and the chain is whole."""
    running = writer(path, 10**9)
    while not (path.exists() and path.stat().st_size > 20_000):
        os.sched_yield()
        assert running.poll() is None
    running.send_signal(signal.SIGKILL)
    running.wait()
    with AuditLog(path) as log:
        allowed(log)
    assert verify(path).problems == ()
