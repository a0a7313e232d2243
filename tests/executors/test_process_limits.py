"""How many programs an executor keeps, for how long, and what is said about those that had to go (issue 5, 2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shellkit import LocalExecutor, ProcessLimits, UnknownProcess

LONG = 60.0
FEW = ProcessLimits(count=4, protected=2)


async def _launched(shell: LocalExecutor, *commands: str) -> None:
    for command in commands:
        await shell.launch(command, yield_time=LONG)


def _known(shell: LocalExecutor) -> list[int]:
    return [each.process_id for each in shell.processes()]


def test_the_least_recently_used_goes(talk: Any, sleeps: Any) -> None:
    """Issue 5, 2: one program more than the limit ends the one that was not used for longest, and says so."""
    length = sleeps()

    async def conversation(shell: LocalExecutor) -> None:
        await _launched(shell, "cat", f"sleep {length} & cat", "cat", "cat")
        await shell.write(1, yield_time=0)
        update = await shell.launch("cat", yield_time=LONG)
        assert _known(shell) == [1, 3, 4, 5]
        assert sleeps.left() == []
        (note,) = update.notes
        assert note.startswith(f"process 2 (sleep {length} & cat) was ended to make room: 4 programs are kept")
        assert (await shell.write(5, yield_time=0)).notes == ()

    talk(conversation, process_limits=FEW)


def test_ended_ones_go_first(talk: Any) -> None:
    """Codex, lifecycle: what has ended makes room before what runs."""

    async def conversation(shell: LocalExecutor) -> None:
        await _launched(shell, "cat", "exit 1", "cat", "cat")
        update = await shell.launch("cat", yield_time=LONG)
        assert _known(shell) == [1, 3, 4, 5]
        assert "process 2 (exit 1) had ended, and was forgotten to make room" in update.notes[0]

    talk(conversation, process_limits=FEW)


def test_recent_ones_are_protected(talk: Any) -> None:
    """Codex, lifecycle: the most recently used programs stay, even if they have ended."""

    async def conversation(shell: LocalExecutor) -> None:
        await _launched(shell, "cat", "cat", "cat", "exit 1", "cat")
        assert _known(shell) == [2, 3, 4, 5]
        assert (await shell.write(4)).exit_code == 1

    talk(conversation, process_limits=FEW)


def test_what_is_waited_for_stays(talk: Any) -> None:
    """Codex, lifecycle: a program that a call waits for is in use."""

    async def conversation(shell: LocalExecutor) -> None:
        await _launched(shell, "cat")
        waiting = asyncio.create_task(shell.write(1, until="said", yield_time=LONG))
        await asyncio.sleep(0)
        await _launched(shell, "cat", "cat", "cat", "cat", "cat")
        assert _known(shell) == [1, 4, 5, 6]
        await shell.write(1, "said\n", yield_time=LONG)
        await waiting

    talk(conversation, process_limits=FEW)


def test_what_has_gone_is_remembered(talk: Any) -> None:
    """Issue 5, bad input: the number of a program that had to go is answered with the reason."""

    async def conversation(shell: LocalExecutor) -> None:
        await _launched(shell, "cat", "cat")
        with pytest.raises(UnknownProcess, match=r"process 1 was ended to make room: .* there are: process 2 \(cat\)"):
            await shell.write(1)

    talk(conversation, process_limits=ProcessLimits(count=1))


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (ProcessLimits(life=0.2), "a program may run for 0.2 s"),
        (ProcessLimits(idle=0.2), "a program that no call is about may run for 0.2 s"),
        (ProcessLimits(life=0.2, idle=100), "a program may run for 0.2 s"),
    ],
)
def test_time_is_up(talk: Any, sleeps: Any, eventually: Any, limits: ProcessLimits, why: str) -> None:
    """Issue 5, 2: a program that has had its time is ended with all that it started, and the next update says why."""
    length = sleeps()

    async def conversation(shell: LocalExecutor) -> None:
        await shell.launch(f"echo begun; setsid sleep {length} & sleep {length}", until="begun", yield_time=LONG)
        while shell.process(1).running:
            await asyncio.sleep(0.01)
        update = await shell.write(1)
        assert (update.running, update.exit_code) == (False, 137)
        assert f"it was ended because its time was up: {why}" in update.notes
        eventually(lambda: not sleeps.left())

    talk(conversation, process_limits=limits)


def test_the_end_is_announced(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5, 2: before its time is up, updates say which program will be ended, and when."""
    # `cat` says nothing, so launching it takes at least 0.1 s, in which the first one is idle.
    monkeypatch.setattr("shellkit.executors.programs._ANNOUNCED_PART", 0.9995)

    async def conversation(shell: LocalExecutor) -> None:
        await _launched(shell, "cat")
        update = await shell.launch("cat", yield_time=LONG)
        assert update.notes == (
            "process 1 (cat) will be ended in 100 s: a program that no call is about may run for 100 s",
        )

    talk(conversation, process_limits=ProcessLimits(idle=100.0))


def test_being_used_counts(talk: Any) -> None:
    """Issue 5, 2: a program that is looked at, or waited for, is not idle."""

    async def conversation(shell: LocalExecutor) -> None:
        await _launched(shell, "cat")
        assert (await shell.write(1, until="never", yield_time=0.6)).running
        assert (await shell.write(1, yield_time=0)).running

    talk(conversation, process_limits=ProcessLimits(idle=0.4))


@pytest.mark.parametrize("options", [{"count": 0}, {"protected": 0}, {"life": 0}, {"idle": -1.0}])
def test_impossible_limits(options: dict[str, Any]) -> None:
    """Issue 5, bad input: a limit that leaves nothing is an error."""
    with pytest.raises(ValueError, match=next(iter(options))):
        ProcessLimits(**options)


def test_limits_of_another_kind() -> None:
    """Contract A: a wrong option of the executor is a typed error."""
    with pytest.raises(TypeError, match="ProcessLimits"):
        LocalExecutor(process_limits=64)  # type: ignore[arg-type]
