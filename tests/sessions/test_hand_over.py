"""A command whose time is over may run on as a background job (`on_timeout="background"`, issue 5)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, LocalExecutor

Eventually = Callable[..., None]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A FIFO that a command can wait at until the test opens it."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def hand_over(shell: BlockingExecutor, command: str, **options: Any) -> Any:
    """Run what does not end in time, and return its result."""
    result = shell.run(command, **{"timeout": 0.2, "on_timeout": "background", **options})
    assert (result.exit_code, result.timed_out, len(result.background)) == (None, True, 1)
    return result


def test_it_runs_on(either: BlockingExecutor, containment: str, gate: Path) -> None:
    """Issue 5: what it printed so far is in the result, the rest and the exit code are the job's."""
    result = hand_over(either, "echo before; echo err >&2; cat gate; echo after; exit 7")
    (job,) = result.background
    assert (result.stdout, result.stderr) == ("before\n", "err\n")
    assert job.running
    assert job.exit_code is None
    assert either.run("echo next").stdout == "next\n"
    gate.write_text("from the gate\n")
    assert job.wait(10).stdout == "from the gate\nafter\n"
    assert (job.exit_code, job.running) == (7, False)


def test_no_room_for_it(either: BlockingExecutor, sleeps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """I3: where too many jobs run already the command is stopped, and the result says that and nothing else."""
    monkeypatch.setattr("shellkit.sessions.leftovers.MAX_JOBS", 1)
    first = hand_over(either, f"sleep {sleeps()}")
    result = either.run(f"echo begun; sleep {sleeps()}", timeout=0.2, on_timeout="background")
    assert (result.stdout, result.exit_code, result.timed_out, result.process_id) == ("begun\n", 124, True, None)
    assert "was stopped: there was no room for it in the background" in result.for_model()
    assert "runs on" not in result.for_model()
    assert len(sleeps.left()) == 1
    first.background[0].stop()
    assert hand_over(either, "sleep 60").process_id == 2


def test_the_session_goes_on_as_it_was_before(kind: Any, open_shell: Callable[..., BlockingExecutor]) -> None:
    """D2: the next command finds the state from before the command, not what that changes in its own shell."""
    shell = open_shell(shell=list(kind.argv))
    shell.run("A=kept; mkdir -p sub; cd sub")
    result = hand_over(shell, "A=changed; cd /; sleep 60", env={"B": "b"}, workdir="/")
    assert result.shell_state == "restored"
    assert str(result.workdir).endswith("/sub")
    after = shell.run('echo "$A ${B-unset}"; pwd')
    assert after.stdout.splitlines() == ["kept unset", result.workdir]
    assert after.shell_state == "alive"


def test_the_model_is_told(shell: BlockingExecutor) -> None:
    """Issue 5: the text for a model says that the command runs on, and never that it did not run."""
    text = hand_over(shell, "echo begun; sleep 60").for_model()
    assert "begun" in text
    assert "[not ended yet, " in text
    assert "was not stopped: it runs on in the background" in text
    assert "did not run" not in text


def test_stop_lets_nothing_of_the_rest_run(
    either: BlockingExecutor, containment: str, sleeps: Any, tmp_path: Path
) -> None:
    """F3: stopping it ends its shell first, and what that runs."""
    (job,) = hand_over(either, f"sleep {sleeps()}; touch never").background
    job.stop()
    assert (job.running, job.exit_code) == (False, 143)
    assert sleeps.left() == []
    assert not (tmp_path / "never").exists()


def test_later_time_outs_leave_it_alone(shell: BlockingExecutor, containment: str, sleeps: Any) -> None:
    """F2: the ladder of a later command does not touch it; `close` does."""
    kept, killed = sleeps(), sleeps()
    (job,) = hand_over(shell, f"sleep {kept}").background
    assert shell.run(f"sleep {killed}", timeout=0.2).exit_code == 124
    assert [line.split()[-1] for line in sleeps.left()] == [kept]
    assert job.running
    shell.close()
    assert sleeps.left() == []
    assert not job.running


def test_the_first_command_of_a_session(open_shell: Callable[..., BlockingExecutor], mode: str, sleeps: Any) -> None:
    """A shell that has not been taken into the containment yet is handed over as well."""
    shell = open_shell(mode=mode)
    (job,) = hand_over(shell, f"sleep {sleeps()}", timeout=0.01).background
    assert shell.run("echo next").stdout == "next\n"
    assert shell.run("sleep 60", timeout=0.2).exit_code == 124
    assert job.running
    job.stop()
    assert sleeps.left() == []


@pytest.mark.parametrize(
    ("command", "code", "printed"),
    [
        ("cat gate; exec sh -c 'echo program; exit 5'", 5, "program\n"),
        ("trap 'echo bye' EXIT; cat gate; exit 3", 3, "bye\n"),
        ("set -e; cat gate; false; echo never", 1, ""),
        ("cat gate; kill -9 $$", 137, ""),
        ("cat gate; (exit 4)", 4, ""),
        ("A=$(head -c 300000 /dev/zero | tr '\\0' x); cat gate; echo ${#A}", 0, "300000\n"),
    ],
)
def test_how_it_ends(shell: BlockingExecutor, gate: Path, command: str, code: int, printed: str) -> None:
    """D1: its exit code is what it would have been, also when its shell ends with it or has much state to print."""
    (job,) = hand_over(shell, command).background
    gate.write_text("")
    output = job.wait(10)
    assert (job.exit_code, output.stdout) == (code, printed)


def test_what_one_has_read_the_other_does_not(shell: BlockingExecutor, tmp_path: Path) -> None:
    """L7: the job and its number share one output, of which each part is given out once, and the exit code is both's."""
    os.mkfifo(tmp_path / "second")
    os.mkfifo(tmp_path / "third")
    result = hand_over(shell, "cat second; cat third; exit 3")
    (job,) = result.background
    (tmp_path / "second").write_text("two\n")
    assert shell.write(result.process_id, until="two", yield_time=10).output == "two\n"
    assert job.read().stdout == ""
    (tmp_path / "third").write_text("three\n")
    assert job.wait(10).stdout == "three\n"
    update = shell.write(result.process_id)
    assert (update.output, update.exit_code, job.exit_code) == ("", 3, 3)


def test_the_caller_hears_no_more(gate: Path, tmp_path: Path) -> None:
    """C4: `on_output` belongs to the call, and what comes after that is the job's."""

    async def call() -> None:
        heard: list[str] = []
        async with LocalExecutor(shell="bash", workdir=tmp_path) as shell:
            result = await shell.run(
                "echo one; cat gate; echo two",
                timeout=0.2,
                on_timeout="background",
                on_output=lambda stream, text: heard.append(text),
            )
            gate.write_text("")
            assert (await result.background[0].wait()).stdout == "two\n"
        assert "".join(heard) == "one\n"

    asyncio.run(call())


def test_a_cancelled_command_is_not_handed_over(sleeps: Any, eventually: Eventually, tmp_path: Path) -> None:
    """F6: cancelling ends the command, whatever its time-out would have done."""

    async def call() -> None:
        async with LocalExecutor(shell="bash", workdir=tmp_path) as shell:
            running = asyncio.ensure_future(shell.run(f"sleep {sleeps()}", timeout=60, on_timeout="background"))
            while not sleeps.left():
                await asyncio.sleep(0.005)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert sleeps.left() == []

    asyncio.run(call())


def test_a_wrong_word(shell: BlockingExecutor) -> None:
    """A wrong value is refused before anything runs."""
    with pytest.raises(ValueError, match="on_timeout must be 'kill' or 'background', not 'detach'"):
        shell.run("echo ran", on_timeout="detach")  # type: ignore[arg-type]
