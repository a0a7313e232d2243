"""Output limits: bounded memory, the head and the tail, and nothing that stops the drain (E1-E4, E6)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, LocalExecutor

MARKER = re.compile(r"\[\.\.\. (\d+) bytes omitted \.\.\.\]\n")


def resident() -> int:
    """Return this process's peak resident memory in bytes since `reset_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def test_head_and_tail_are_kept(open_shell: Any, mode: str) -> None:
    """E2: over the limit the head and the tail are kept, half and half, with one marker that names what is left out."""
    shell = open_shell(mode=mode, max_output_bytes=10_000)
    result = shell.run("echo FIRST-LINE; seq 1 100000; echo 'E   assert 1 == 2'; (exit 3)")
    whole = "FIRST-LINE\n" + "".join(f"{n}\n" for n in range(1, 100_001)) + "E   assert 1 == 2\n"
    (omitted,) = MARKER.findall(result.stdout)
    head, tail = MARKER.split(result.stdout)[0], MARKER.split(result.stdout)[-1]
    assert result.exit_code == 3
    assert result.truncated
    assert whole.startswith(head.removesuffix("\n"))
    assert whole.endswith(tail)
    assert 4990 <= len(head) <= 5001
    assert len(tail) == 5000
    assert int(omitted) == result.stdout_omitted
    assert len(whole) == result.stdout_omitted + 10_000
    assert result.stderr_omitted == 0


@pytest.mark.parametrize("limit", [1, 2, 3, 100, 65536])
def test_exactly_at_the_limit(open_shell: Any, mode: str, limit: int) -> None:
    """E2: output of exactly the limit is untouched, one byte more is cut."""
    shell = open_shell(mode=mode, max_output_bytes=limit)
    at = shell.run(f"head -c {limit} /dev/zero | tr '\\0' x")
    assert (at.stdout, at.truncated, at.stdout_omitted) == ("x" * limit, False, 0)
    over = shell.run(f"head -c {limit + 1} /dev/zero | tr '\\0' x >&2")
    assert (over.truncated, over.stderr_omitted, over.stdout_omitted) == (True, 1, 0)


def test_cuts_are_at_characters(open_shell: Any, mode: str) -> None:
    """E2: head and tail are cut at characters, so that a cut makes no replacement character."""
    for limit in (1000, 1001, 1002, 1003):
        shell = open_shell(mode=mode, max_output_bytes=limit)
        result = shell.run("for i in $(seq 1 2000); do printf '😀'; done")
        assert "\ufffd" not in result.stdout
        kept = result.stdout.count("😀") * 4
        assert result.stdout_omitted == 8000 - kept
        shell.close()


def test_a_limit_of_nothing_says_so(open_shell: Any, mode: str) -> None:
    """E3: `max_output_bytes=0` keeps nothing and says so; exit codes are unaffected."""
    shell = open_shell(mode=mode, max_output_bytes=0)
    result = shell.run("echo hello; echo err >&2; (exit 3)")
    assert MARKER.fullmatch(result.stdout)
    assert (result.stdout_omitted, result.stderr_omitted, result.truncated, result.exit_code) == (6, 4, True, 3)
    assert shell.run("true").stdout == ""


@pytest.mark.parametrize("limit", [-1, -65536])
def test_a_negative_limit_is_refused(limit: int) -> None:
    """E3: a negative limit is a `ValueError`."""
    with pytest.raises(ValueError, match="max_output_bytes"):
        LocalExecutor(max_output_bytes=limit)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "head -c 400000000 /dev/zero",
        "head -c 400000000 /dev/zero | tr '\\0' a",
        "head -c 200000000 /dev/zero & head -c 200000000 /dev/zero >&2; wait",
        "yes | head -c 300000000",
    ],
)
def test_memory_is_bounded(either: BlockingExecutor, command: str) -> None:
    """E1: a running command costs its limits plus at most 4 MiB of memory, whatever it prints."""
    either.run("seq 1 100000; seq 1 100000 >&2")
    reset_peak()
    before = resident()
    result = either.run(command, timeout=60)
    assert result.exit_code == 0
    assert result.stdout_omitted + result.stderr_omitted >= 300_000_000 - 4 * 65536
    assert resident() - before <= 2 * 65536 + 4 * 1024 * 1024


@pytest.mark.slow
def test_memory_is_bounded_at_a_time_out(either: BlockingExecutor) -> None:
    """E1, F4: `yes` until its time-out costs no memory, and its output's head and tail are kept."""
    either.run("seq 1 100000")
    reset_peak()
    before = resident()
    result = either.run("yes", timeout=1)
    assert result.timed_out
    assert result.stdout.startswith("y\ny\n")
    assert result.stdout_omitted > 10_000_000
    assert resident() - before <= 2 * 65536 + 4 * 1024 * 1024
    assert either.run("echo ok").stdout == "ok\n"


@pytest.mark.slow
def test_memory_is_bounded_while_a_job_writes(shell: BlockingExecutor, eventually: Any) -> None:
    """E1, I2: a noisy background job costs its limits, while the session is idle too, and is not blocked."""
    shell.run("seq 1 100000")
    reset_peak()
    before = resident()
    job = shell.run("(head -c 300000000 /dev/zero | tr '\\0' j; echo written > told) & echo started").background[0]
    eventually(lambda: shell.run("cat told 2>/dev/null").stdout == "written\n", 30)
    output = job.wait(10)
    assert output.stdout_omitted > 290_000_000
    assert resident() - before <= 4 * 65536 + 4 * 1024 * 1024


def test_for_model_is_clean_and_stdout_is_raw(either: BlockingExecutor) -> None:
    """E6: `for_model` strips ANSI and resolves progress bars and backspaces; `stdout` stays raw."""
    command = (
        "printf '\\033[31mred\\033[0m \\033]8;;http://e\\033\\\\link\\033]8;;\\033\\\\\\n10%%\\r100%%\\nab\\bc\\n'"
    )
    result = either.run(command)
    assert "\x1b[31m" in result.stdout
    assert "10%\r100%" in result.stdout
    assert result.for_model().startswith("red link\n100%\nac\n")
    assert "exit code 0" in result.for_model()
    silent = either.run("false")
    assert "no output" in silent.for_model()
    assert "exit code 1" in silent.for_model()
