"""The text that a model gets for a result, to the letter (contract E6, H2)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from shellkit import ShellResult


@attrs.frozen
class _Job:
    pids: tuple[int, ...]
    running: bool = True


BASE: dict[str, Any] = {"command": "c", "exit_code": 0, "duration": 0.123, "workdir": "/w"}
END = "[exit code 0, 0.12 s, in /w]"

GOLDEN: dict[str, tuple[dict[str, Any], str]] = {
    "stdout": ({"stdout": "a\nb\n"}, f"a\nb\n{END}"),
    "stdout without a line end": ({"stdout": "a"}, f"a\n{END}"),
    "stdout with empty lines": ({"stdout": "\na\n\n"}, f"\na\n\n{END}"),
    "stderr": ({"stderr": "e\n"}, f"[stderr]\ne\n{END}"),
    "both": ({"stdout": "a\n", "stderr": "e\n"}, f"a\n[stderr]\ne\n{END}"),
    "nothing": ({}, f"[no output]\n{END}"),
    "non-zero": ({"stdout": "a\n", "exit_code": 2}, "a\n[exit code 2, 0.12 s, in /w]"),
    "timed out": (
        {"stdout": "a\n", "exit_code": 124, "timed_out": True, "duration": 2.0, "notes": ("Give it longer.",)},
        "a\n[exit code 124, timed out, 2.00 s, in /w]\n[note: Give it longer.]",
    ),
    "truncated": (
        {"stdout": "a\n[... 9 bytes left out ...]\nz\n", "truncated": True, "stdout_omitted": 9},
        f"a\n[... 9 bytes left out ...]\nz\n{END}",
    ),
    "notes": ({"notes": ("One.", "Two.")}, f"[no output]\n{END}\n[note: One.]\n[note: Two.]"),
    "restored": (
        {"exit_code": 137, "shell_state": "restored", "notes": ("The shell ended; a new one has its state.",)},
        "[no output]\n[exit code 137, 0.12 s, in /w]\n[note: The shell ended; a new one has its state.]",
    ),
    "unknown end": ({"exit_code": None, "workdir": None}, "[no output]\n[exit code unknown, 0.12 s]"),
    "a job": (
        {"stdout": "started\n", "background": (_Job((12, 34)),)},
        f"started\n{END}\n[still running in the background: pid 12 34; what it writes from now on is not shown]",
    ),
    "a job of many": (
        {"background": (_Job(tuple(range(1, 21))),)},
        f"[no output]\n{END}\n[still running in the background: pid 1 2 3 4 5 6 7 8 and 12 more; "
        "what it writes from now on is not shown]",
    ),
    "a job that has ended": ({"background": (_Job((12,), running=False),)}, f"[no output]\n{END}"),
    "colours and progress": ({"stdout": "\x1b[31mred\x1b[0m\n 10%\r 20%\rdone\nx\by\n"}, f"red\ndone\ny\n{END}"),
    "bytes that are no text": (
        {"stdout": "a\ufffdb\n", "workdir": "/w\udcff"},
        "a\ufffdb\n[exit code 0, 0.12 s, in /w?]",
    ),
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_for_model(kind: str) -> None:
    """E6, I: output first, then how it ended and where the shell stands, what still runs, and each note."""
    values, expected = GOLDEN[kind]
    assert ShellResult(**{**BASE, **values}).for_model() == expected


def test_a_real_job_is_named(free: Any) -> None:
    """I: the pid in the text is the one that the shell calls `$!`, so that the model can end it."""
    output = free.call("sleep 100 & echo $!")
    pid = output.result.stdout.strip()
    assert f"[still running in the background: pid {pid}; " in output.text
    assert (
        free.call(f"kill {pid}; wait {pid} 2>/dev/null; kill -0 {pid} 2>/dev/null || echo gone").result.stdout
        == "gone\n"
    )


def test_real_output_is_cut_in_the_middle(bench: Any) -> None:
    """E2: the text of a long output has its beginning, its end, and the number of bytes left out between them."""
    it = bench(shell={"max_output_bytes": 100}, approval="never", acknowledge_unsafe=True)
    output = it.call("seq 1000")
    assert output.text.startswith("1\n2\n")
    assert "\n999\n1000\n[exit code 0, " in output.text
    assert str(output.result.stdout_omitted) in output.text.replace(",", "")
