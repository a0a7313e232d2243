"""A command that outlived its time-out has a number among the programs (issue 5, 4)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from shellkit import Executor, ProcessLimits, StdinClosed

LONG = 60.0


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A FIFO that a command can wait at until the test opens it."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def test_it_is_waited_for_and_read(talk: Any, gate: Path) -> None:
    """Issue 5, 4: a handed-over command is listed, waited for by a line and by its end, and its exit code is kept."""

    async def conversation(shell: Executor) -> None:
        command = "echo before; cat gate; echo after; echo wrong >&2; cat gate; exit 7"
        result = await shell.run(command, timeout=0.2, on_timeout="background")
        assert (result.stdout, result.exit_code, result.process_id) == ("before\n", None, 1)
        assert "[still running, session_id 1]" in result.for_model()
        (listed,) = shell.processes()
        assert (listed.command, listed.running, listed.waits_for_input) == (command, True, False)
        assert listed.runtime >= 0.2
        waiting = asyncio.create_task(shell.write(1, until="^wrong$", yield_time=LONG))
        await asyncio.to_thread(gate.write_text, "from the gate\n")
        update = await waiting
        assert (update.matched, update.process_id) == (True, 1)
        ended = asyncio.create_task(shell.write(1, until="exit", yield_time=LONG))
        await asyncio.to_thread(gate.write_text, "")
        last = await ended
        assert update.output + last.output == "from the gate\nafter\n[stderr]\nwrong\n"
        assert (last.exit_code, last.process_id) == (7, None)
        assert (await shell.write(1)).exit_code == 7

    talk(conversation)


def test_nothing_can_be_typed_to_it(talk: Any) -> None:
    """Issue 5, 4: its input is at its end, and the error names `launch`; Ctrl-C reaches it."""

    async def conversation(shell: Executor) -> None:
        await shell.run("sleep 100", timeout=0.2, on_timeout="background")
        with pytest.raises(StdinClosed, match="launch a program"):
            await shell.write(1, "text\n")
        with pytest.raises(ValueError, match="tty=True"):
            await shell.screen(1)
        with pytest.raises(ValueError, match="tty=True"):
            shell.resize(1, 10, 10)
        assert not (await shell.write(1, "\x03", until="exit", yield_time=LONG)).running

    talk(conversation)


def test_it_is_stopped(talk: Any, sleeps: Any) -> None:
    """Issue 5, 4: stopping it ends everything that it started."""
    length = sleeps()

    async def conversation(shell: Executor) -> None:
        await shell.run(f"sleep {length}; touch never", timeout=0.2, on_timeout="background")
        assert not (await shell.stop(1)).running
        assert sleeps.left() == []
        assert (await shell.run("ls")).stdout == ""

    talk(conversation)


def test_closing_ends_it(talk: Any, sleeps: Any) -> None:
    """G3: closing the executor ends it, also while somebody waits for it."""
    length = sleeps()

    async def conversation(shell: Executor) -> None:
        await shell.run(f"sleep {length}", timeout=0.2, on_timeout="background")
        waiting = asyncio.create_task(shell.write(1, until="exit", yield_time=LONG))
        await asyncio.sleep(0)
        await shell.close()
        assert not (await waiting).running
        assert sleeps.left() == []

    talk(conversation)


def test_it_makes_room_like_others(talk: Any, sleeps: Any, eventually: Any) -> None:
    """Issue 5, 2: the limit of programs counts handed-over commands, too."""
    length = sleeps()

    async def conversation(shell: Executor) -> None:
        await shell.run(f"sleep {length}", timeout=0.2, on_timeout="background")
        result = await shell.run("sleep 100", timeout=0.2, on_timeout="background")
        assert [each.process_id for each in shell.processes()] == [result.process_id]
        await asyncio.to_thread(eventually, lambda: not sleeps.left())

    talk(conversation, process_limits=ProcessLimits(count=1))


def test_what_is_left_out_can_be_read(talk: Any, tmp_path: Path) -> None:
    """E5: the reference to the whole output of a handed-over command is in its updates."""

    async def conversation(shell: Executor) -> None:
        result = await shell.run("seq 1000; read x < gate; seq 1000 2000; exit 3", timeout=0.5, on_timeout="background")
        ended = asyncio.create_task(shell.write(1, until="exit", yield_time=LONG))
        await asyncio.to_thread((tmp_path / "work/gate").write_text, "\n")
        update = await ended
        assert (update.exit_code, update.output_ref) == (3, result.stdout_ref)
        page = await shell.read_output(update.output_ref, pattern="^(500|1500)$")
        assert page.text == "500:500\n1501:1500\n"

    work = tmp_path / "work"
    work.mkdir()
    os.mkfifo(work / "gate")
    talk(conversation, workdir=work, spill_dir=tmp_path / "spill", max_output_bytes=1000)


def test_without_an_event_loop(open_shell: Any) -> None:
    """Contract A, `sync()`: the same, blocking."""
    shell = open_shell()
    result = shell.run("echo begun; sleep 100", timeout=0.2, on_timeout="background")
    assert result.process_id == 1
    assert not shell.stop(1).running


def test_through_the_tools(talk: Any) -> None:
    """Issue 5, 4: `run_shell` hands over what outlives its time-out, and `write_stdin` waits for it."""

    async def conversation(shell: Executor) -> None:
        tools = {
            tool.name: tool
            for tool in shell.as_tools(approval="never", acknowledge_unsafe=True, on_timeout="background")
        }
        assert "runs on: the answer then holds a session_id" in tools["run_shell"].description
        output = await tools["run_shell"].call({"command": "echo begun; read x < gate; exit 3", "timeout": 0.2})
        assert "[still running, session_id 1]" in output.text
        await tools["run_shell"].call({"command": "echo > gate"})
        output = await tools["write_stdin"].call({"session_id": 1, "until": "exit"})
        assert "[exit code 3" in output.text
        output = await tools["write_stdin"].call({"session_id": 1, "chars": "x"})
        assert "nothing was typed" in output.text

    async def with_gate(shell: Executor) -> None:
        await shell.run("mkfifo gate")
        await conversation(shell)

    talk(with_gate)
