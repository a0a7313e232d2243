"""Programs that an executor launches and talks to: what a call waits for, and what its update says (issue 5, 2)."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from shellkit import (
    CommandDenied,
    Executor,
    ExecutorClosed,
    InvalidCommand,
    InvalidWorkdir,
    LocalExecutor,
    SpawnError,
    StdinClosed,
    UnknownProcess,
)

PYTHON = f"{sys.executable} -q"
#: Longer than any test may take: a call that returns all the same has not waited for it.
LONG = 60.0


def test_a_program_is_talked_to(talk: Any) -> None:
    """Issue 5, 2: a REPL gives control back when it waits for input, takes what is typed, and ends with its code."""

    async def conversation(shell: Executor) -> None:
        started = await shell.launch(PYTHON, tty=True, yield_time=LONG)
        assert (started.process_id, started.exit_code, started.waits_for_input) == (1, None, True)
        answer = await shell.write(1, "print(6*7)\n", yield_time=LONG)
        assert answer.output.splitlines() == ["print(6*7)", "42", ">>> "]
        ended = await shell.write(1, "exit(3)\n", until="exit", yield_time=LONG)
        assert (ended.process_id, ended.exit_code, ended.matched) == (None, 3, True)
        again = await shell.write(1)
        assert (again.exit_code, again.output, again.running) == (3, "", False)

    talk(conversation)


@pytest.mark.parametrize("tty", [False, True])
def test_a_short_command_ends_the_call(talk: Any, tty: bool) -> None:
    """codex#6715: a call returns with the end of the program, not at its yield time, and holds all its output."""

    async def conversation(shell: Executor) -> Any:
        return await shell.launch("echo out; echo err >&2; exit 7", tty=tty, yield_time=LONG)

    update = talk(conversation)
    assert update.output.split() == ["out", "err"]
    assert (update.exit_code, update.process_id, update.waits_for_input) == (7, None, False)


def test_yielding_stops_nothing(talk: Any) -> None:
    """Issue 5, 2: yield is not a time-out; what comes later is in the next update, and nothing is told twice."""

    async def conversation(shell: Executor) -> None:
        update = await shell.launch("echo one; read line; echo two; exit 5", yield_time=0.01)
        output = update.output
        while "one" not in output:
            output += (await shell.write(1, yield_time=0.01)).output
        assert (output, update.process_id) == ("one\n", 1)
        last = await shell.write(1, "\n", until="exit", yield_time=LONG)
        assert (last.output, last.exit_code) == ("two\n", 5)

    talk(conversation)


def test_waiting_for_a_line(talk: Any) -> None:
    """Issue 5, 2: one call waits for a line, whatever colour it has; what was printed before the call counts."""

    async def conversation(shell: Executor) -> None:
        command = "printf 'starting\\n\\033[32mready\\033[0m on port 80\\n'; exec cat"
        update = await shell.launch(command, until=r"^ready on port \d+$", yield_time=LONG)
        assert (update.matched, update.process_id) == (True, 1)
        assert "starting" in update.output
        await shell.write(1, "a\n", yield_time=LONG)
        assert not (await shell.write(1, until="ready", yield_time=0.05)).matched
        echoed = await shell.write(1, "unfinished", until="^unfin", yield_time=LONG)
        assert (echoed.matched, echoed.output) == (True, "unfinished")

    talk(conversation)


@pytest.mark.parametrize(
    ("command", "until", "note"),
    [
        ("exec sleep 100", "exit", "it has not ended within 0.01 s; it runs on"),
        ("exec sleep 100", "ready", "no line has matched the pattern within 0.01 s; it runs on"),
        ("exit 1", "ready", "it ended before the pattern came"),
    ],
)
def test_waiting_in_vain(talk: Any, command: str, until: str, note: str) -> None:
    """Issue 5, 2: what did not come is said, and that the program runs on (codex#6965)."""

    async def conversation(shell: Executor) -> Any:
        return await shell.launch(command, until=until, yield_time=0.01 if "sleep" in command else LONG)

    update = talk(conversation)
    assert not update.matched
    assert note in update.notes


def test_a_line_among_much_output(talk: Any) -> None:
    """Issue 5, 2: the line that is waited for is found even if it is left out of the bounded output."""

    async def conversation(shell: Executor) -> Any:
        command = "read go; seq 50000; echo ready; seq 50000; exec cat"
        await shell.launch(command, yield_time=LONG)
        return await shell.write(1, "\n", until="^ready$", yield_time=LONG)

    assert talk(conversation, max_output_bytes=1000).matched


def test_a_pattern_that_would_explode(talk: Any) -> None:
    """E5: a model's pattern is matched in linear time, so it stops neither the program nor the host."""

    async def conversation(shell: Executor) -> Any:
        return await shell.launch("printf '%04000d' 0; exec cat", until="(0+)+$x|(0|0)*1", yield_time=0.3)

    update = talk(conversation)
    assert (update.matched, len(update.output)) == (False, 4000)


def test_waiting_together(talk: Any) -> None:
    """Issue 5, 2: several calls may wait for one program, each for its own line."""

    async def conversation(shell: Executor) -> None:
        await shell.launch("cat", yield_time=LONG)
        waits = [asyncio.create_task(shell.write(1, until=name, yield_time=LONG)) for name in ("^one$", "^two$")]
        await asyncio.sleep(0)
        await shell.write(1, "one\n", until="one", yield_time=LONG)
        assert (await waits[0]).matched
        assert not waits[1].done()
        await shell.write(1, "two\n", until="two", yield_time=LONG)
        assert (await waits[1]).matched

    talk(conversation)


def test_output_is_bounded(talk: Any) -> None:
    """E1, E2: between two updates head and tail are kept, and the bytes left out are counted."""

    async def conversation(shell: Executor) -> Any:
        return await shell.launch("seq 100000", max_output_bytes=100, yield_time=LONG)

    update = talk(conversation)
    assert update.output.startswith("1\n2\n")
    assert update.output.endswith("99999\n100000\n")
    assert update.omitted == 588895 - 100


def test_what_looks_like_an_option_is_a_command(talk: Any) -> None:
    """B1: a command that begins with a dash is looked for as a command, and is no option of the shell."""

    async def conversation(shell: Executor) -> Any:
        return await shell.launch("--version; echo on", yield_time=LONG)

    update = talk(conversation)
    assert (update.command, update.exit_code) == ("--version; echo on", 0)
    assert "--version: command not found" in update.output
    assert update.output.endswith("on\n")


def test_the_longest_command(talk: Any) -> None:
    """Issue 5, 2: a command may have 128 KiB, less its NUL."""

    async def conversation(shell: Executor) -> Any:
        return await shell.launch("echo ran; #" + "x" * (131071 - 11), yield_time=LONG)

    assert talk(conversation).output == "ran\n"


def test_where_it_starts_and_with_what(talk: Any, tmp_path: Path) -> None:
    """Issue 5, 2: a program starts where the session stands, with the executor's environment and its own over it."""
    (tmp_path / "sub").mkdir()

    async def conversation(shell: Executor) -> None:
        await shell.run("cd sub")
        assert (await shell.launch("pwd", yield_time=LONG)).output == f"{tmp_path}/sub\n"
        assert (await shell.launch("pwd", workdir=tmp_path, yield_time=LONG)).output == f"{tmp_path}\n"
        update = await shell.launch('echo "$A-$B-$SHELLKIT_X"', env={"A": None, "B": "own"}, yield_time=LONG)
        assert update.output == "-own-\n"
        shown = await shell.launch("echo $A", yield_time=LONG)
        assert shown.output == "executor's\n"

    talk(conversation, env={"A": "executor's", "B": "executor's"})


def test_size_and_screen(talk: Any) -> None:
    """Issue 5, 1: a terminal has the size that was asked for, can be resized, and its screen can be looked at."""

    async def conversation(shell: Executor) -> None:
        await shell.launch("stty size; exec sh", tty=True, rows=30, until="^30 120", yield_time=LONG)
        seen = await shell.screen(1)
        assert (seen.lines[0], seen.rows, seen.columns) == ("30 120", 30, 120)
        shell.resize(1, 10, 40)
        assert (await shell.write(1, "stty size\n", until="^10 40", yield_time=LONG)).matched

    talk(conversation)


def test_control_keys_on_pipes(talk: Any) -> None:
    """codex, checklist: Ctrl-C reaches a program on pipes, traps included, and Ctrl-D ends its input."""

    async def conversation(shell: Executor) -> None:
        await shell.launch("trap 'echo trapped; exit 42' INT; echo set; while :; do read line; done", until="set")
        update = await shell.write(1, "\x03", until="exit", yield_time=LONG)
        assert (update.output, update.exit_code) == ("trapped\n", 42)
        await shell.launch("sort", yield_time=LONG)
        update = await shell.write(2, "b\na\n\x04", until="exit", yield_time=LONG)
        assert (update.output, update.exit_code) == ("a\nb\n", 0)

    talk(conversation)


def test_the_input_of_a_program_that_closed_it(talk: Any) -> None:
    """Issue 5, bad input: typing where nobody reads any more is an error that says what to do."""

    async def conversation(shell: Executor) -> None:
        await shell.launch("exec sleep 100", yield_time=0.0)
        await shell.write(1, "\x04")
        with pytest.raises(StdinClosed, match="start it again"):
            await shell.write(1, "text")

    talk(conversation)


def test_what_is_not_taken_is_told(talk: Any) -> None:
    """Issue 5, 1: typing more than a program reads does not block, is told, and Ctrl-C drops it."""

    async def conversation(shell: Executor) -> None:
        await shell.launch("exec sleep 100", yield_time=0.0)
        update = await shell.write(1, "x" * 1_000_000, yield_time=0.05)
        assert any("has not taken" in note for note in update.notes)
        ended = await shell.write(1, "\x03", until="exit", yield_time=LONG)
        assert ended.exit_code == 130

    talk(conversation)


def test_what_a_terminal_drops_is_told(talk: Any) -> None:
    """syn-long-line-pty: a line that is too long for a terminal is cut by the kernel, and whoever typed it is told."""

    async def conversation(shell: Executor) -> None:
        await shell.launch("stty -echo; exec wc -c", tty=True, yield_time=LONG)
        fits = await shell.write(1, "x" * 4095 + "\n" + "é" * 2047 + "\n", yield_time=LONG)
        assert not fits.notes
        cut = await shell.write(1, "é" * 2048 + "\n", yield_time=LONG)
        assert "a line of 4096 bytes was typed: the terminal passes on the first 4095" in cut.notes[0]
        ended = await shell.write(1, "\x04", until="exit", yield_time=LONG)
        assert int(ended.output) == 4096 + 4095 + 4096
        await shell.launch("exec wc -c", yield_time=LONG)
        assert not (await shell.write(2, "x" * 5000 + "\n", yield_time=LONG)).notes

    talk(conversation)


def test_a_program_that_has_ended_takes_nothing(talk: Any) -> None:
    """codex#18494: typing to a program that has ended is no error; its exit code is told again."""

    async def conversation(shell: Executor) -> Any:
        await shell.launch("exit 4", yield_time=LONG)
        return await shell.write(1, "more\n")

    update = talk(conversation)
    assert update.exit_code == 4
    assert "nothing was typed" in update.notes[0]


def test_an_unknown_program(talk: Any) -> None:
    """Issue 5, bad input: an unknown number is an error that says which programs there are."""

    async def conversation(shell: Executor) -> None:
        with pytest.raises(UnknownProcess, match="process 1 was never launched; there are: none"):
            await shell.write(1)
        await shell.launch("cat", yield_time=LONG)
        await shell.launch("exit 1", yield_time=LONG)
        for call in (shell.write(9), shell.stop(9), shell.screen(9)):
            with pytest.raises(UnknownProcess, match=r"there are: process 1 \(cat\), process 2 \(exit 1\), ended"):
                await call
        with pytest.raises(LookupError):
            shell.process(9)
        for number in (True, "1", 1.0, None, [1]):
            with pytest.raises(TypeError, match="process_id must be an int, not"):
                await shell.write(number)
            with pytest.raises(TypeError, match="process_id must be an int, not"):
                shell.process(number)

    talk(conversation)


def test_what_is_listed(talk: Any) -> None:
    """Issue 5, 2: programs are listed with what they are at, ended ones included."""

    async def conversation(shell: Executor) -> None:
        assert shell.processes() == ()
        await shell.launch("cat", tty=True, yield_time=LONG)
        await shell.launch("exit 1", yield_time=LONG)
        one, two = shell.processes()
        assert (one.command, one.tty, one.running, one.exit_code, one.waits_for_input) == (
            "cat",
            True,
            True,
            None,
            True,
        )
        assert (two.command, two.tty, two.running, two.exit_code) == ("exit 1", False, False, 1)
        assert shell.process(2).command == two.command

    talk(conversation)


def test_stopping(talk: Any, sleeps: Any, containment: str) -> None:
    """F2: stopping ends everything that the program started, also what ignores signals or has left its session."""
    lengths = [sleeps() for _ in range(3)]

    async def conversation(shell: Executor) -> Any:
        command = (
            f"setsid sleep {lengths[0]} & (trap '' INT TERM HUP; sleep {lengths[1]}; sleep {lengths[1]}) & "
            f"echo started; sleep {lengths[2]}"
        )
        await shell.launch(command, until="started", yield_time=LONG)
        update = await shell.stop(1)
        assert sleeps.left() == []
        assert (await shell.stop(1)).exit_code == update.exit_code
        return update

    update = talk(conversation)
    assert update.exit_code is not None


def test_what_it_leaves_running(talk: Any, sleeps: Any, eventually: Any) -> None:
    """I3: what a program leaves running lives on until it is stopped, and the model is told."""
    length = sleeps()

    async def conversation(shell: Executor) -> None:
        update = await shell.launch(f"sleep {length} >/dev/null 2>&1 & echo started", yield_time=LONG)
        assert (update.output, update.exit_code) == ("started\n", 0)
        assert "what it started still runs; stopping process 1 ends it" in update.notes
        eventually(lambda: len(sleeps.left()) == 1)
        await shell.stop(1)
        assert sleeps.left() == []

    talk(conversation)


def test_closing(talk: Any, sleeps: Any) -> None:
    """G3: closing the executor ends all programs, and later calls say that it is closed."""
    length = sleeps()

    async def conversation(shell: Executor) -> None:
        for _ in range(3):
            await shell.launch(f"sleep {length} & sleep {length}", yield_time=0.0)
        await shell.close()
        assert sleeps.left() == []
        for call in (shell.launch("true"), shell.write(1), shell.stop(1)):
            with pytest.raises(ExecutorClosed):
                await call
        with pytest.raises(ExecutorClosed):
            shell.processes()

    talk(conversation)


def test_closing_while_somebody_waits(talk: Any) -> None:
    """G3: closing ends the wait of another call, which tells how its program ended."""

    async def conversation(shell: Executor) -> None:
        await shell.launch("cat", yield_time=LONG)
        waiting = asyncio.create_task(shell.write(1, until="exit", yield_time=LONG))
        await asyncio.sleep(0)
        await shell.close()
        update = await waiting
        assert not update.running
        assert "it was ended because the executor was closed" in update.notes

    talk(conversation)


def test_closing_that_is_cancelled(talk: Any, sleeps: Any) -> None:
    """G3: programs are gone also when whoever closes the executor is cancelled meanwhile."""
    length = sleeps()

    async def conversation(shell: Executor) -> None:
        stubborn = f"trap '' INT TERM HUP; echo set; while :; do sleep {length}; done"
        await shell.launch(stubborn, until="set", yield_time=LONG)
        closing = asyncio.create_task(shell.close())
        await asyncio.sleep(0.05)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert sleeps.left() == []

    talk(conversation, grace=10.0)


def test_an_executor_that_is_forgotten(tmp_path: Path, sleeps: Any) -> None:
    """G3: the programs of an executor that is garbage are gone with it."""
    length = sleeps()

    async def launch() -> None:
        executor = LocalExecutor(shell="bash", workdir=tmp_path)
        await executor.launch(f"echo started; sleep {length}", until="started", yield_time=LONG)

    asyncio.run(launch())
    assert sleeps.left() == []


def test_cancelling_a_wait(talk: Any) -> None:
    """codex, lifecycle: a caller that is cancelled while it waits loses neither the program nor its output."""

    async def conversation(shell: Executor) -> None:
        launching = asyncio.create_task(shell.launch("echo out; exec sleep 100", until="never", yield_time=LONG))
        while not shell.processes():
            await asyncio.sleep(0)
        launching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await launching
        assert (await shell.write(1, until="out", yield_time=LONG)).output == "out\n"

    talk(conversation)


def test_beside_a_running_command(talk: Any) -> None:
    """Issue 5, 2: launching, typing and stopping wait for no command that runs in the session."""

    async def conversation(shell: Executor) -> None:
        command = asyncio.create_task(shell.run("read line < fifo; echo $line"))
        await shell.launch("cat", yield_time=LONG)
        assert (await shell.write(1, "beside\n", yield_time=LONG)).output == "beside\n"
        await shell.stop(1)
        assert not command.done()
        await shell.launch("echo over > fifo", yield_time=LONG)
        assert (await command).stdout == "over\n"

    async def with_fifo(shell: Executor) -> None:
        await shell.run("mkfifo fifo")
        await conversation(shell)

    talk(with_fifo)


def test_from_loop_to_loop(tmp_path: Path) -> None:
    """G2: a program is launched in one event loop, talked to in another, and from another thread."""
    executor = LocalExecutor(shell="bash", workdir=tmp_path)
    assert asyncio.run(executor.launch("cat", yield_time=LONG)).process_id == 1
    assert asyncio.run(executor.write(1, "one\n", yield_time=LONG)).output == "one\n"
    answers = []
    thread = threading.Thread(target=lambda: answers.append(asyncio.run(executor.write(1, "two\n", yield_time=LONG))))
    thread.start()
    thread.join()
    assert answers[0].output == "two\n"
    asyncio.run(executor.close())


def test_without_an_event_loop(open_shell: Any) -> None:
    """Contract A, `sync()`: the same, blocking; in a thread that has a loop (a notebook), too."""
    shell = open_shell()
    assert shell.launch("cat", tty=True, yield_time=LONG).process_id == 1
    assert shell.write(1, "one\n", yield_time=LONG).output == "one\r\none\r\n"
    assert shell.screen(1).lines[:2] == ("one", "one")
    shell.resize(1, 5, 20)
    assert [shell.process(1).command, *(each.command for each in shell.processes())] == ["cat", "cat"]

    async def in_a_notebook() -> str:
        return str(shell.write(1, "two\n", yield_time=LONG).output)

    assert asyncio.run(in_a_notebook()) == "two\r\ntwo\r\n"
    assert shell.stop(1).exit_code is not None


def test_spilled_output(talk: Any, tmp_path: Path) -> None:
    """E5: with `spill_dir` all that a program prints can be read later, whatever its updates have left out."""

    async def conversation(shell: Executor) -> None:
        update = await shell.launch("seq 20000; exec cat", until="^20000$", yield_time=LONG)
        assert update.omitted > 0
        page = await shell.read_output(update.output_ref, lines=(9999, 10001))
        assert page.text == "9999\n10000\n10001\n"
        assert "read_output, ref" in update.for_model()
        assert (await shell.stop(1)).output_ref == update.output_ref

    work = tmp_path / "work"
    work.mkdir()
    talk(conversation, workdir=work, spill_dir=tmp_path / "spill", max_output_bytes=1000)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"command": 5}, TypeError, "command"),
        ({"command": "a\0b"}, InvalidCommand, "NUL"),
        ({"command": "#" * 131072}, InvalidCommand, "write it to a file"),
        ({"rows": 0}, ValueError, "rows"),
        ({"columns": -1}, ValueError, "columns"),
        ({"rows": "24"}, TypeError, "rows"),
        ({"yield_time": -1}, ValueError, "yield_time"),
        ({"yield_time": float("nan")}, ValueError, "yield_time"),
        ({"yield_time": "1"}, TypeError, "yield_time"),
        ({"yield_time": True}, TypeError, "yield_time"),
        ({"until": "("}, ValueError, "regular expression"),
        ({"until": 5}, TypeError, "pattern"),
        ({"env": {"A=": "b"}}, ValueError, "env"),
        ({"workdir": "/nonexistent/zz"}, InvalidWorkdir, "/nonexistent/zz"),
        ({"workdir": "/usr"}, CommandDenied, "outside"),
        ({"max_output_bytes": -1}, ValueError, "max_output_bytes"),
    ],
)
def test_a_wrong_launch(tmp_path: Path, talk: Any, options: dict[str, Any], error: type[Exception], says: str) -> None:
    """Issue 5, bad input: a wrong argument is a typed error that names it, and nothing was launched."""

    async def conversation(shell: Executor) -> None:
        with pytest.raises(error, match=says):
            await shell.launch(**{"command": "touch ran", **options})
        assert shell.processes() == ()

    talk(conversation, confinement="root")
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_programs(talk: Any) -> None:
    """A: where there are no descriptors to drain programs with, that is `SpawnError`, and the next launch is another try."""

    async def conversation(shell: Executor) -> None:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        for room in (0, 1):
            lowest = os.dup(0)
            os.close(lowest)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + room, limits[1]))
            try:
                with pytest.raises(SpawnError, match="no program can be launched: Too many open files; close files"):
                    await shell.launch("true")
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert (await shell.launch("true", yield_time=LONG)).exit_code == 0

    talk(conversation)


def test_a_wrong_write(talk: Any) -> None:
    """Issue 5, bad input: what cannot be typed is a typed error."""

    async def conversation(shell: Executor) -> None:
        await shell.launch("cat", yield_time=LONG)
        with pytest.raises(TypeError, match="chars"):
            await shell.write(1, b"bytes")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="tty=True"):
            await shell.screen(1)
        with pytest.raises(ValueError, match="tty=True"):
            shell.resize(1, 10, 10)

    talk(conversation)
