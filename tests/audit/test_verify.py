"""Checking the audit log: every way to damage it is found and named (contract H9)."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from shellkit.audit import AuditError, AuditLog, records, verify
from shellkit.audit.record import AuditEntry, encode
from shellkit.cli.audit import audit as audit_command


def allowed(log: AuditLog, command: str = "ls", **about: Any) -> Any:
    return log.before(command, decision="allowed", decided_by="policy: read-only", tool="run_shell", **about)


def edit(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def found(path: Path, **options: Any) -> list[tuple[int, str]]:
    return [(problem.line, problem.kind) for problem in verify(path, **options).problems]


def test_every_way_to_tear_the_last_line(filled: Path) -> None:
    """H9: cut anywhere in its last line, a log is reported as torn, can be continued, and then explains itself."""
    data = filled.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    for end in {start + 1, start + 2, (start + len(data)) // 2, len(data) - 2}:
        filled.write_bytes(data[:end])
        assert found(filled) == [(12, "torn")]
        assert verify(filled).head is None
        with AuditLog(filled) as log:
            allowed(log)
        report = verify(filled)
        assert (report.problems, [(note.line, note.kind) for note in report.notes]) == ((), [(12, "torn")])
        assert report.lines == 14


def test_only_the_line_end_is_missing(filled: Path) -> None:
    """H9: a last line that is whole but for its line end is no loss."""
    os.truncate(filled, filled.stat().st_size - 1)
    assert verify(filled).ok
    with AuditLog(filled) as log:
        allowed(log)
    assert (verify(filled).ok, verify(filled).notes, verify(filled).lines) == (True, (), 13)


def test_nothing_but_half_a_line(path: Path) -> None:
    """H9: a file without one whole line is not taken for a log."""
    path.write_bytes(b'{"event":"beg')
    with pytest.raises(AuditError, match="no whole line"):
        AuditLog(path)


def test_a_forged_explanation(filled: Path) -> None:
    """H9: half a line is explained only by the line that was written when it was found."""
    os.truncate(filled, filled.stat().st_size - 9)
    with AuditLog(filled) as log:
        allowed(log)
    edit(filled, lambda lines: [*lines[:11], b"xx" + lines[11], *lines[12:]])
    assert (12, "added") in found(filled)


# -- tampering -------------------------------------------------------------------------------------------


def test_whole(filled: Path) -> None:
    """H9: an untouched log has no problems, and its report names its last hash."""
    report = verify(filled)
    assert (report.ok, report.problems, report.notes, report.lines) == (True, (), (), 12)
    assert report.head == list(records(filled))[-1]["hash"]


def test_one_changed_byte(filled: Path) -> None:
    """H9: a change of any byte of any line is found at that line."""
    data = filled.read_bytes()
    for at in range(0, len(data), 7):
        if data[at] == 10:
            continue
        filled.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        line = data.count(b"\n", 0, at) + 1
        if data[at] ^ 1 == 10:
            continue
        assert (line, "changed") in found(filled), at
        assert {number for number, _ in found(filled)} == {line}


@pytest.mark.parametrize("number", range(1, 12))
def test_a_removed_line(filled: Path, number: int) -> None:
    """H9: a missing line is named by the line that stands in its place."""
    edit(filled, lambda lines: lines[: number - 1] + lines[number:])
    assert found(filled) == [(number, "removed")]
    assert f"record {number - 1} is missing" in str(verify(filled).problems[0])


def test_several_removed_lines(filled: Path) -> None:
    """H9: a gap is one problem, and says how much is gone."""
    edit(filled, lambda lines: lines[:3] + lines[7:])
    assert found(filled) == [(4, "removed")]
    assert "records 3 to 6 are missing" in verify(filled).problems[0].text


@pytest.mark.parametrize("number", range(1, 12))
def test_swapped_lines(filled: Path, number: int) -> None:
    """H9: two neighbours in the wrong order are named as that, and as nothing else."""
    edit(filled, lambda lines: [*lines[: number - 1], lines[number], lines[number - 1], *lines[number + 1 :]])
    assert found(filled) == [(number + 1, "swapped")]


def test_moved_line(filled: Path) -> None:
    """H9: a line that was moved far back is found where it is now."""
    edit(filled, lambda lines: [*lines[:2], *lines[3:10], lines[2], *lines[10:]])
    assert found(filled) == [(10, "swapped")]


@pytest.mark.parametrize(
    "junk", [b"junk\n", b"\n", b"{}\n", b"[1]\n", b'{"seq":"1","prev":1}\n', b"[" * 100_000 + b"\n"]
)
def test_added_lines(filled: Path, junk: bytes) -> None:
    """H9: a line that is none of this log's is named, and the chain is followed past it."""
    edit(filled, lambda lines: [*lines[:4], junk, *lines[4:]])
    assert found(filled) == [(5, "added")]


def test_repeated_line(filled: Path) -> None:
    """H9: a line that stands there twice is named."""
    edit(filled, lambda lines: [*lines[:6], lines[2], *lines[6:]])
    assert found(filled) == [(7, "added")]


def test_a_line_with_a_new_hash(filled: Path) -> None:
    """H9: a changed line whose own hash was made to fit does not fit the next one."""

    def forge(lines: list[bytes]) -> list[bytes]:
        record = json.loads(lines[3])
        fields = {name: value for name, value in record.items() if name not in ("seq", "prev", "hash")}
        forged, _ = encode({**fields, "command": "innocent"}, AuditEntry(record["seq"] - 1, record["prev"]))
        return [*lines[:3], forged, *lines[4:]]

    edit(filled, forge)
    assert found(filled) == [(4, "changed")]


def test_a_forged_record_cannot_break_verify(path: Path) -> None:
    """H9: records of odd shapes with right hashes are no crash."""
    line, at = encode({"event": "begin"}, AuditEntry())
    data = line
    for fields in (
        {"event": "after", "call": []},
        {"event": ["before"]},
        {"event": "torn", "bytes": {}},
        {"event": "before"},
    ):
        line, at = encode(fields, at)
        data += line
    path.write_bytes(data)
    assert verify(path).ok
    assert CliRunner().invoke(audit_command, ["show", str(path)]).exit_code == 0


def test_lines_of_another_log(filled: Path, tmp_path: Path) -> None:
    """H9: a line of another log with the right number is found."""
    other = tmp_path / "other"
    with AuditLog(other) as log:
        for _ in range(5):
            allowed(log)
    stolen = other.read_bytes().splitlines(keepends=True)[3]
    edit(filled, lambda lines: [*lines[:3], stolen, *lines[4:]])
    assert {kind for _, kind in found(filled)} == {"changed"}
    assert {line for line, _ in found(filled)} <= {3, 4}


def test_the_end_is_missing(filled: Path) -> None:
    """H9: that the last lines are gone shows with a hash that was noted elsewhere, and only with it."""
    head = verify(filled).head
    edit(filled, lambda lines: lines[:-2])
    assert found(filled) == []
    assert found(filled, anchor=head) == [(10, "anchor")]
    assert found(filled, anchor=verify(filled).head) == []


def test_empty_and_missing_files(path: Path) -> None:
    """H9: an empty file is no log; one that cannot be read is an `AuditError`."""
    with pytest.raises(AuditError, match="cannot be read"):
        verify(path)
    path.touch()
    assert found(path) == [(1, "removed")]


def test_many_problems_are_counted(path: Path) -> None:
    """H9: a report is bounded, and says how much more there is."""
    path.write_bytes(b"junk\n" * 5000)
    report = verify(path)
    assert (len(report.problems), report.problem_count) == (100, 5000)


@given(st.lists(st.integers(0, 11), max_size=20))
def test_any_order_but_the_right_one_is_found(numbers: list[int]) -> None:
    """H9: whatever lines of a log are put together, only a beginning of the log in its order is whole."""
    lines, at = [], AuditEntry()
    for number in range(12):
        line, at = encode({"event": "before" if number else "begin"}, at)
        lines.append(line)
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(lines[number] for number in numbers))
        file.flush()
        assert verify(file.name).ok == (numbers != [] and numbers == list(range(len(numbers))))


def test_a_log_in_use_is_not_torn(path: Path) -> None:
    """H9: what is appended while `verify` reads does not look like half a line."""
    stop = threading.Event()

    def write() -> None:
        with AuditLog(path) as log:
            while not stop.is_set():
                allowed(log, "x" * 1000)

    AuditLog(path).close()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert [verify(path).problems for _ in range(20)] == [()] * 20
    finally:
        stop.set()
        writer.join()
