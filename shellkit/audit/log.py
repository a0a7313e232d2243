"""Write the audit log. Called by the gate of the tool: before a command, after it, and for a call that was refused.

What cannot be recorded must not run: every failure to write is an `AuditError`. One file may be written by several
threads and processes at once. The calls block for microseconds (with `fsync`, for as long as the disk takes).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import threading
import time
import weakref
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal

from ..process.update import ProcessUpdate
from ..result import ShellResult
from .record import AuditEntry, AuditError, encode, parse
from .redact import redact

__all__ = ["AuditLog"]

#: Seconds to wait for another process that is writing; it holds the lock for microseconds unless it is stopped.
_PATIENCE = 5.0
_BLOCK = 65536


class AuditLog:
    """An append-only file of JSON lines, each holding the hash of the one before.

    Args:
        path: the file; made (0600) if it does not exist. It belongs where the commands it records cannot write.
        redact: take what looks like a secret out of a command before it is written; the SHA-256 of the original
            stays. (A secret that can be guessed can be guessed from that, too.)
        fsync: wait until each line is on the disk, so that it survives a power failure, not only a crash.

    Raises:
        AuditError: the file cannot be opened, is no regular file, or its last line has been damaged.
    """

    def __init__(self, path: str | os.PathLike[str], *, redact: bool = True, fsync: bool = False) -> None:
        self.path = os.fspath(path)
        try:
            self.path = os.path.abspath(self.path)
        except FileNotFoundError as error:  # the current directory is gone
            raise self._error("cannot be opened", error) from error
        self._redact = redact
        self._fsync = fsync
        self._close: weakref.finalize[Any, Any] | None = None
        self._open()
        self._extend(None)

    # -- for the gate ----------------------------------------------------------------------------------

    def before(
        self,
        command: str,
        *,
        decision: Literal["allowed", "refused"],
        decided_by: str,
        reason: str = "",
        tool: str = "",
        executor: str = "",
        session: str = "",
        call_id: str = "",
        workdir: str | None = None,
        reader: str = "",
    ) -> AuditEntry:
        """Record a call before it runs, or that it does not; when this returns, the line is written.

        Args:
            command: the text as it will run.
            decision: whether it will run.
            decided_by: who or which rule decided: a rule of the policy, an approver, the memory of approvals.
            reason: why, in the words of the rule or the person.
            tool: name of the tool.
            executor: what runs it, e.g. "LocalExecutor".
            session: which conversation it belongs to.
            call_id: the model's id of the call.
            workdir: where it will run, if known.
            reader: the running program that the text is typed into, if it is no command.

        Returns:
            What `after` needs. Nothing follows a call that was refused.

        Raises:
            AuditError: the line could not be written. The command must not run.
            ValueError: `decision` is another word.
        """
        if decision not in ("allowed", "refused"):
            raise ValueError(f'decision is "allowed" or "refused", not {decision!r}')
        fields: dict[str, Any] = {
            "call_id": call_id,
            "command": command,
            "decided_by": decided_by,
            "decision": decision,
            "event": "before" if decision == "allowed" else "refused",
            "executor": executor,
            "pid": os.getpid(),
            "reason": reason,
            "session": session,
            "tool": tool,
            "workdir": workdir,
        }
        if reader:
            fields["reader"] = redact(reader) if self._redact else reader
        if self._redact:
            fields["reason"] = redact(reason) if reason else ""
            fields["command"] = shown = redact(command)
            if shown != command:
                fields["command_sha256"] = _measured(command)[1]
        return self._append(fields)

    def after(self, entry: AuditEntry, outcome: ShellResult | ProcessUpdate | BaseException | None) -> AuditEntry:
        """Record what came of a command that `before` has recorded.

        Args:
            entry: what `before` returned.
            outcome: the result or update, of whose output sizes and SHA-256 (of what was kept, as UTF-8) are written;
                the exception that came instead, of which the type is written, and the result that it carries;
                or None if there is nothing to tell.

        Raises:
            AuditError: the line could not be written; the command has run all the same.
        """
        fields: dict[str, Any] = {"event": "after", "call": entry.seq}
        if isinstance(outcome, BaseException):
            fields["error"] = type(outcome).__name__
            carried = getattr(outcome, "result", None)  # `ExecutorClosed` has what had been printed
        else:
            carried = outcome
        if isinstance(carried, ShellResult):
            fields |= _outcome(carried)
        elif isinstance(carried, ProcessUpdate):
            fields |= _news(carried)
        return self._append(fields)

    def close(self) -> None:
        """Give the file back; later calls raise `AuditError`. Idempotent."""
        with self._mutex if os.getpid() == self._pid else contextlib.nullcontext():  # a fork may have kept it locked
            if self._close is not None:
                self._close()

    def __enter__(self) -> AuditLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- writing ---------------------------------------------------------------------------------------

    def _append(self, fields: dict[str, Any]) -> AuditEntry:
        if os.getpid() != self._pid:
            # A forked child shares the parent's open file, and with it the parent's lock (flock(2)).
            self._open()
        fields["time"] = _now()
        return self._extend(fields)

    def _open(self) -> None:
        try:
            from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
        except ImportError as error:
            raise AuditError("an audit log needs POSIX file locks, which this platform has not") from error
        self._flock, self._acquire, self._release = flock, LOCK_EX | LOCK_NB, LOCK_UN
        if self._close is not None:
            self._close()
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._last = AuditEntry()
        self._end = -1  # of the file when `_last` was its last line; the file is read again when it differs
        try:
            # O_NONBLOCK: opening a FIFO must not wait for its reader.
            self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        except OSError as error:
            raise self._error("cannot be opened", error) from error
        self._close = weakref.finalize(self, os.close, self._fd)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            self._close()
            raise AuditError(f"the audit log {self.path} is no regular file, so it can be no chain; name another path")

    def _extend(self, fields: dict[str, Any] | None) -> AuditEntry:
        """Append a line, if one is given, while nobody else writes; return the last one."""
        if not self._mutex.acquire(timeout=_PATIENCE):
            raise AuditError(f"the audit log {self.path} is being written by another thread that does not go on")
        try:
            if self._close is None or not self._close.alive:
                raise AuditError(f"the audit log {self.path} is closed; make a new AuditLog")
            self._lock_file()
            try:
                self._catch_up()
                return self._last if fields is None else self._write(fields)
            finally:
                self._flock(self._fd, self._release)
        except OSError as error:
            raise self._error("cannot be written", error) from error
        finally:
            self._mutex.release()

    def _lock_file(self) -> None:
        give_up = 0.0
        while True:
            try:
                return self._flock(self._fd, self._acquire)
            except BlockingIOError:
                now = time.monotonic()
                give_up = give_up or now + _PATIENCE
                if now > give_up:
                    raise AuditError(
                        f"the audit log {self.path} has been locked by another process for {_PATIENCE:g} s; "
                        "find it with fuser, or use another file"
                    ) from None
                time.sleep(0.0002)

    def _catch_up(self) -> None:
        """Read the last line if others have written since, begin an empty file, and mend a line that was torn."""
        status = os.fstat(self._fd)
        end = status.st_size
        if status.st_nlink == 0:
            raise self._tampered("was deleted while in use")
        if end == self._end:
            return
        if end < self._end:
            raise self._tampered("has become shorter while in use: lines were removed")
        if end == 0:
            self._end, self._last = 0, AuditEntry()
            self._write({"event": "begin", "id": secrets.token_hex(16), "time": _now(), "version": 1})
            return
        start, line = self._last_line(end)
        if line.endswith(b"\n"):
            self._last, self._end = self._entry_of(line[:-1]), end
        elif parse(line)[1]:  # only its line end is missing
            self._last, self._end = self._entry_of(line), end
            self._put(b"\n")
            self._end += 1
        elif start == 0:
            raise self._tampered("has no whole line")
        else:
            # Half a line: what wrote it was killed, or the disk was full. It stays, and the next line says so.
            self._last, self._end = self._entry_of(self._last_line(start)[1][:-1]), end
            self._write(
                {"event": "torn", "bytes": len(line), "sha256": hashlib.sha256(line).hexdigest(), "time": _now()}, b"\n"
            )

    def _entry_of(self, line: bytes) -> AuditEntry:
        record, right = parse(line)
        if record is None or not right or record["seq"] < self._last.seq:
            raise self._tampered("does not end with a line that was written here")
        return AuditEntry(record["seq"], record["hash"])

    def _last_line(self, end: int) -> tuple[int, bytes]:
        """Return where the last line before `end` starts, and its bytes."""
        tail = b""
        at = end
        while at > 0:
            # Each step reads as much as all before: linear, however long the line is.
            size = min(at, max(_BLOCK, len(tail)))
            at -= size
            tail = os.pread(self._fd, size, at) + tail
            if (found := tail.rfind(b"\n", 0, len(tail) - 1)) >= 0:
                return at + found + 1, tail[found + 1 :]
        return 0, tail

    def _write(self, fields: dict[str, Any], lead: bytes = b"") -> AuditEntry:
        line, entry = encode(fields, self._last)
        self._put(lead + line)
        # In this order: an interrupt between the two makes the next call read the file, and not fork the chain.
        self._last = entry
        self._end += len(lead) + len(line)
        return entry

    def _put(self, data: bytes) -> None:
        written = os.write(self._fd, data)
        if written != len(data):
            # The rest does not fit (a limit, a full disk): half a line is worse than none.
            with contextlib.suppress(OSError):  # an append-only file (chattr +a); the next writer mends the line
                os.ftruncate(self._fd, self._end)
            self._end = -1
            raise AuditError(
                f"the audit log {self.path} took only {written} of {len(data)} bytes; make room on its disk. "
                "Nothing runs that cannot be recorded"
            )
        if self._fsync:
            os.fdatasync(self._fd)

    def _tampered(self, what: str) -> AuditError:
        return AuditError(
            f"the audit log {self.path} {what}; see `shellkit audit verify`, keep it as evidence, find out who did it, "
            "and begin a new one. Nothing runs that cannot be recorded"
        )

    def _error(self, what: str, error: OSError) -> AuditError:
        return AuditError(
            f"the audit log {self.path} {what}: {error.strerror or error}; see to its directory, permissions and disk, "
            "or name another path. Nothing runs that cannot be recorded"
        )


def _outcome(result: ShellResult) -> dict[str, Any]:
    stderr_bytes, stderr_sha256 = _measured(result.stderr)
    stdout_bytes, stdout_sha256 = _measured(result.stdout)
    return {
        "duration": round(result.duration, 6),
        "exit_code": result.exit_code,
        "omitted_bytes": result.stdout_omitted + result.stderr_omitted,
        "shell_state": result.shell_state,
        "stderr_bytes": stderr_bytes,
        "stderr_sha256": stderr_sha256,
        "stdout_bytes": stdout_bytes,
        "stdout_sha256": stdout_sha256,
        "timed_out": result.timed_out,
        "workdir": result.workdir,
    }


def _news(update: ProcessUpdate) -> dict[str, Any]:
    output_bytes, output_sha256 = _measured(update.output)
    return {
        "duration": round(update.runtime, 6),
        "exit_code": update.exit_code,
        "omitted_bytes": update.omitted,
        "output_bytes": output_bytes,
        "output_sha256": output_sha256,
        "process_id": update.process_id,
    }


_NOTHING = (0, hashlib.sha256().hexdigest())


def _measured(text: str) -> tuple[int, str]:
    """Return the bytes and the SHA-256 of a text in UTF-8."""
    if not text:  # most commands leave one stream empty or both, and OpenSSL takes 5 us to begin when caches are cold
        return _NOTHING
    data = text.encode("utf-8", "surrogatepass")
    return len(data), hashlib.sha256(data).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
