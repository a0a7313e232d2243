"""Read an audit log and say what has been done to it. Called by `shellkit audit`, and by whoever keeps the logs.

One pass, one line in memory at a time. The chain shows a changed, removed, swapped, added or torn line. It cannot
show that the *last* lines are gone, or that the whole file was written anew: for that, keep a hash from
`AuditEntry.hash` or `VerifyReport.head` where the writer of the file cannot reach, and pass it as `anchor`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import IO, Any, Literal

import attrs

from .record import AuditEntry, AuditError, parse

__all__ = ["AuditProblem", "VerifyReport", "records", "verify"]

Kind = Literal["changed", "removed", "swapped", "added", "torn", "anchor"]

#: Longer than any line that is written: 10 MB of command, six characters an escape.
_LONGEST = 128 * 1024 * 1024
#: More than this are only counted.
_MOST_PROBLEMS = 100


@attrs.frozen
class AuditProblem:
    """What is wrong at a line.

    Attributes:
        line: its number in the file, counted from 1.
        kind: "changed", "removed" (lines before this one are missing), "swapped", "added", "torn" (half a line),
            or "anchor".
        text: what is wrong, as a sentence.
    """

    line: int
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {self.text}"


@attrs.frozen(kw_only=True)
class VerifyReport:
    """What `verify` found.

    Attributes:
        path: the file.
        lines: how many lines it has.
        head: the hash of its last line, None if that is not sound; kept elsewhere, it is the next check's `anchor`.
        problems: what is wrong, in the order of the lines; the first 100.
        problem_count: how many there are in all.
        notes: what looks wrong and is explained: half a line that a crash left, and that the next line owns up to.
        unfinished: calls without an end: running now, or cut off by a crash.
    """

    path: str
    lines: int
    head: str | None
    problems: tuple[AuditProblem, ...]
    problem_count: int
    notes: tuple[AuditProblem, ...]
    unfinished: int

    @property
    def ok(self) -> bool:
        """Whether the chain is whole."""
        return self.problem_count == 0


def verify(path: str | os.PathLike[str], *, anchor: str | None = None) -> VerifyReport:
    """Check every line of an audit log.

    Args:
        path: the file; it may be in use.
        anchor: a hash that must be among its lines.

    Raises:
        AuditError: the file cannot be read.
    """
    checker = _Checker(anchor)
    for line in _lines(path):
        checker.take(line)
    return checker.report(os.fspath(path))


def records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of an audit log, unchecked; lines that are none are left out.

    Raises:
        AuditError: the file cannot be read.
    """
    for line in _lines(path):
        record, _ = parse(line.rstrip(b"\n"))
        if record is not None:
            yield record


@attrs.frozen
class _Broken:
    """A line that is no record, or one with a wrong hash."""

    line: int
    whole: bool
    is_record: bool
    size: int
    sha256: str

    @classmethod
    def of(cls, number: int, line: bytes, is_record: bool) -> _Broken:
        text = line.removesuffix(b"\n")
        return cls(number, text != line, is_record, len(text), hashlib.sha256(text).hexdigest())

    def is_told_by(self, record: dict[str, Any]) -> bool:
        return (self.size, self.sha256) == (record.get("bytes"), record.get("sha256"))


class _Checker:
    """Follows the chain. `_at` is where it stands; `_gaps` are numbers that were skipped and may turn up later."""

    def __init__(self, anchor: str | None) -> None:
        self._anchor = anchor
        self._line = 0
        self._at = AuditEntry()
        self._broken: list[_Broken] = []  # the lines since `_at` that are none of this log's
        self._gaps: list[tuple[int, int, int]] = []  # first and last number that is missing, the line that showed it
        self._problems: list[AuditProblem] = []
        self._count = 0
        self._notes: list[AuditProblem] = []
        self._open: set[int] = set()

    def take(self, line: bytes) -> None:
        self._line += 1
        text = line.removesuffix(b"\n")
        record, right = parse(text)
        if record is None or not right:
            if len(self._broken) == _MOST_PROBLEMS:
                self._settle_broken(None)
            self._broken.append(_Broken.of(self._line, line, record is not None))
            return
        if self._broken:
            self._settle_broken(record)
        self._place(record)
        if record["hash"] == self._anchor:
            self._anchor = None
        if record.get("event") == "before":
            self._open.add(record["seq"])
        elif record.get("event") == "after":
            call = record.get("call")
            self._open.discard(call if isinstance(call, int) else -1)

    def _settle_broken(self, record: dict[str, Any] | None) -> None:
        """Decide about the broken lines before `record` (None: before the end of the file)."""
        broken, self._broken = self._broken, []
        if record is None and not broken[-1].whole:
            torn = broken.pop()
            self._problem(
                "torn", "the line is cut off: by a crash, a full disk, or something else that wrote", torn.line
            )
        follows = record is not None and AuditEntry(record["seq"] - 1, record["prev"]) == self._at
        if record is not None and follows and record.get("event") == "torn" and broken[-1].is_told_by(record):
            torn = broken.pop()
            self._notes.append(AuditProblem(torn.line, "torn", "half a line, left by a crash; the next line says so"))
        for one in broken:
            if follows:
                self._problem("added", "it is no line of this log", one.line)
            elif one.is_record:
                self._problem("changed", "what it says does not match its hash", one.line)
            else:
                self._problem("changed", "it cannot be read as a record", one.line)
        if broken and not follows:
            last = self._at.seq + len(broken) if record is None else min(self._at.seq + len(broken), record["seq"] - 1)
            self._at = AuditEntry(max(self._at.seq, last), "")

    def _place(self, record: dict[str, Any]) -> None:
        seq, expected = record["seq"], self._at.seq + 1
        if seq < expected:
            self._take_earlier(seq)
            return
        if seq > expected:
            self._gaps.append((expected, seq - 1, self._line))
        elif self._at.hash and record["prev"] != self._at.hash:
            line = max(self._line - 1, 1)
            self._problem("changed", "it is not the line that was here when the next one was written", line)
        if seq == 0 and record.get("event") != "begin":
            self._problem("changed", "it is no beginning of a log")
        self._at = AuditEntry(seq, record["hash"])

    def _take_earlier(self, seq: int) -> None:
        for at, (first, last, line) in enumerate(self._gaps):
            if first <= seq <= last:
                parts = [(first, seq - 1, line), (seq + 1, last, line)]
                self._gaps[at : at + 1] = [part for part in parts if part[0] <= part[1]]
                self._problem("swapped", f"record {seq} stands behind its place, which is before line {line}")
                return
        self._problem("added", f"record {seq} has been here before")

    def _problem(self, kind: Kind, text: str, line: int | None = None) -> None:
        self._count += 1
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(AuditProblem(line or self._line, kind, text))

    def report(self, path: str) -> VerifyReport:
        sound = self._line > 0 and not self._broken
        if self._broken:
            self._settle_broken(None)
        for first, last, line in self._gaps:
            which = f"record {first} is" if first == last else f"records {first} to {last} are"
            self._problem("removed", f"{which} missing before this line", line)
        if self._line == 0:
            self._problem("removed", "the file is empty; even a log without commands has a first line", 1)
        if self._anchor is not None:
            self._problem("anchor", f"no line has the hash {self._anchor}: lines were removed, or this is another log")
        return VerifyReport(
            path=path,
            lines=self._line,
            head=self._at.hash if sound else None,
            problems=tuple(sorted(self._problems, key=lambda problem: problem.line)),
            problem_count=self._count,
            notes=tuple(self._notes),
            unfinished=len(self._open),
        )


def _lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the lines that the file had when it was opened; what is being appended meanwhile does not look torn."""
    try:
        with open(path, "rb") as file:
            left = _settled_size(file)
            while left > 0 and (line := file.readline(min(left, _LONGEST))):
                left -= len(line)
                yield line
    except OSError as error:
        raise AuditError(f"the audit log {os.fspath(path)} cannot be read: {error.strerror or error}") from error


def _settled_size(file: IO[bytes]) -> int:
    """Return the file's size at a moment when nobody is in the middle of a line."""
    try:
        from fcntl import LOCK_SH, LOCK_UN, flock
    except ImportError:  # nobody writes logs on such a platform
        return os.fstat(file.fileno()).st_size
    flock(file, LOCK_SH)
    try:
        return os.fstat(file.fileno()).st_size
    finally:
        flock(file, LOCK_UN)
