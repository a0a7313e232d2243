"""`shellkit agent` at a terminal: what a person sees, is asked, and can interrupt."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from shellkit.testing.openai_server import OpenAIServer, StartServer
from shellkit.testing.scripted_model import Hang, Item, Step, function_call, message

AtTerminal = Callable[..., pexpect.spawn]

PROMPT = "agent> "
QUESTION = "[e]dit? "


def run(command: str) -> Item:
    """Return the call of a model that wants a command to run."""
    return function_call("run_shell", {"command": command, "timeout": None, "workdir": None})


def output_of(body: dict[str, Any]) -> str:
    """Return the output of the last call, as the model sees it."""
    return str([item for item in body["input"] if item.get("type") == "function_call_output"][-1]["output"])


@pytest.fixture
def at_terminal(environ: dict[str, str], tmp_path: Path) -> Iterator[AtTerminal]:
    """Return a function that starts `shellkit agent` at a terminal of its own."""
    started: list[pexpect.spawn] = []

    def start(server: OpenAIServer, *more: str) -> pexpect.spawn:
        words = ["-m", "shellkit", "agent", "--base-url", server.base_url, "--model", "m", *more]
        chosen: Any = {**environ, "OPENAI_API_KEY": "x"}
        process = pexpect.spawn(sys.executable, words, env=chosen, cwd=str(tmp_path), timeout=30)
        started.append(process)
        return process

    yield start
    for process in started:
        process.close(force=True)


def rest(process: pexpect.spawn) -> str:
    """Return what is printed until the end, as lines without colour."""
    process.expect(pexpect.EOF)
    process.wait()
    return re.sub(r"\x1b\[[0-9;]*m", "", process.before.decode()).replace("\r\n", "\n")


def test_what_is_seen(at_terminal: AtTerminal, openai_server: StartServer) -> None:
    """Issue 4, live output while a command runs, and the usage at the end; the last message is there once."""
    server = openai_server([[message("I look."), run("echo out; echo err >&2; (exit 3)")], [message("It failed.")]])
    process = at_terminal(server, "--approve", "never", "x")
    shown = rest(process).splitlines()
    assert shown[:2] == ["I look.", "$ echo out; echo err >&2; (exit 3)"]
    assert sorted(shown[2:4]) == ["err", "out"]
    assert shown[4].startswith("[exit code 3, ")
    assert shown[5:] == ["It failed.", "[tokens: 200 in, 40 out]"]
    assert process.exitstatus == 0


def test_output_is_live(at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 4: what a command prints is seen before it ends."""
    server = openai_server([[run("echo begun; until [ -e go ]; do sleep 0.01; done; echo ended")], [message("x")]])
    process = at_terminal(server, "--approve", "never", "x")
    process.expect_exact("begun\r\n")
    (tmp_path / "go").touch()
    assert "ended" in rest(process)


def test_what_is_printed_cannot_draw(at_terminal: AtTerminal, openai_server: StartServer) -> None:
    """H3: neither a model nor a command can move the cursor, hide text or fake a question with control characters."""
    server = openai_server([[run("printf '\\033[2Jcleared\\033]0;title\\007\\n'")], [message("\x1b[2J\x1b[Hdone")]])
    process = at_terminal(server, "--approve", "never", "x")
    process.expect(pexpect.EOF)
    assert b"\x1b[2J" not in process.before
    assert b"\x1b]0" not in process.before
    assert b"cleared" in process.before


def test_approval(at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path) -> None:
    """H3: the person sees each command and decides; the model learns of a refusal and its reason."""
    server = openai_server([[run("touch yes")], [run("touch no")], [message("I see.")]])
    process = at_terminal(server, "x")
    process.expect_exact("touch yes")
    process.expect_exact(QUESTION)
    process.sendline("y")
    process.expect_exact("touch no")
    process.expect_exact(QUESTION)
    process.sendline("n")
    process.expect_exact("reason: ")
    process.sendline("not today")
    assert "I see." in rest(process)
    assert [path.name for path in tmp_path.iterdir()] == ["yes"]
    assert "not today" in output_of(server.model.requests[2])


def test_a_sub_agent_asks_here(at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 4, sub-agents: two that ask at once are asked about one after the other, each with its name."""

    def script(body: dict[str, Any]) -> Step:
        if body["model"] == "m":
            commands = "shellkit agent --model child a & shellkit agent --model child b & wait"
            return [message("all done")] if "function_call_output" in str(body["input"]) else [run(commands)]
        return [message("ok")] if "function_call_output" in str(body["input"]) else [run("touch $RANDOM")]

    process = at_terminal(openai_server(script), "x")
    process.expect_exact(QUESTION)
    process.sendline("y")
    for _ in range(2):
        process.expect(r"sub-agent [12] \([ab]\) asks: every command is approved by a person")
        process.expect_exact(QUESTION)
        process.sendline("y")
    assert "all done" in rest(process)
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_is_printed_into_a_question(
    at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    """H3: while a sub-agent's question stands no command can print what looks like a part of it."""

    def script(body: dict[str, Any]) -> Step:
        answered = body["input"][-1].get("type") == "function_call_output"
        if answered:
            return [message("done")]
        asks = "shellkit agent --model child --approve ask x & until [ -e go ]; do sleep 0.01; done"
        return [run(f"{asks}; echo FORGED; touch printed; wait" if body["model"] == "m" else "echo asked")]

    process = at_terminal(openai_server(script), "x")
    process.expect_exact(QUESTION)
    process.sendline("y")
    process.expect_exact("sub-agent 1")
    process.expect_exact("[e]dit? ")
    (tmp_path / "go").touch()
    eventually((tmp_path / "printed").exists)
    process.sendline("y")
    assert re.match(r"y\n+FORGED\n", rest(process))


def test_ctrl_c_ends_the_command_then_the_turn(at_terminal: AtTerminal, openai_server: StartServer) -> None:
    """Issue 4: the first Ctrl-C ends the command, which the model is told, the next one the turn."""
    asked: list[dict[str, Any]] = []

    def script(body: dict[str, Any]) -> Step:
        asked.append(body)
        return [run("echo under way; sleep 60; echo never")] if len(asked) == 1 else Hang([message("I wait. So")], 6)

    process = at_terminal(openai_server(script), "--approve", "never", "x")
    process.expect_exact("under way\r\n")
    process.sendintr()
    process.expect_exact("I wait.")
    process.sendintr()
    assert rest(process).endswith("shellkit: note: interrupted\n[tokens: 100 in, 20 out]\n")
    assert process.exitstatus == 130
    assert "under way" in output_of(asked[1])
    assert "the user interrupted it" in output_of(asked[1])


def test_ctrl_c_at_a_question(at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path) -> None:
    """H3: Ctrl-C at the question refuses the command; the model is told, and goes on."""
    server = openai_server([[run("touch ran")], [message("I see.")]])
    process = at_terminal(server, "x")
    process.expect_exact(QUESTION)
    process.sendintr()
    assert "I see." in rest(process)
    assert process.exitstatus == 0
    assert output_of(server.model.requests[1]).startswith("Not run: ")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_sub_agents(
    at_terminal: AtTerminal,
    openai_server: StartServer,
    tmp_path: Path,
    sleeps: Any,
    eventually: Callable[..., None],
) -> None:
    """Issue 4, sub-agents: Ctrl-C ends the command that a sub-agent is, with whatever it runs."""
    length = sleeps()

    def script(body: dict[str, Any]) -> Step:
        if body["model"] == "m":
            told = "function_call_output" in str(body["input"])
            return [message("all done")] if told else [run("shellkit agent --model child a")]
        return [run(f"touch begun; sleep {length}")]

    process = at_terminal(openai_server(script), "--approve", "never", "x")
    eventually((tmp_path / "begun").exists, seconds=30)
    process.sendintr()
    assert "all done" in rest(process)
    assert sleeps.left() == []


def test_a_conversation(at_terminal: AtTerminal, openai_server: StartServer) -> None:
    """Issue 4, a REPL without a task: Ctrl-C at the prompt drops the line, in a turn the turn; Ctrl-D leaves."""
    server = openai_server([[run("A=kept")], [message("one")], Hang([message("two")], 6), [message("three")]])
    process = at_terminal(server, "--approve", "never")
    process.expect_exact(PROMPT)
    process.sendline("first")
    process.expect_exact("one\r\n")
    process.expect_exact(PROMPT)
    process.send("dropped")
    process.expect_exact("dropped")
    process.sendintr()
    process.expect_exact(PROMPT)
    process.sendline("second")
    process.expect_exact("two")
    process.sendintr()
    process.expect_exact("interrupted")
    process.expect_exact(PROMPT)
    process.sendline("third")
    process.expect_exact("three\r\n")
    process.expect_exact(PROMPT)
    process.sendeof()
    assert "[tokens: 300 in, 60 out]" in rest(process)
    assert process.exitstatus == 0


def test_sub_agents_in_the_background_go_on(
    at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    """Issue 4, sub-agents: while the person thinks at the prompt, one in the background reaches its model."""
    steps: list[Step] = [[run("shellkit agent --model child x > answer &")], [message("started")]]

    def script(body: dict[str, Any]) -> Step:
        return steps.pop(0) if body["model"] == "m" else [message("from behind")]

    process = at_terminal(openai_server(script), "--approve", "never")
    process.expect_exact(PROMPT)
    process.sendline("go")
    process.expect_exact("started\r\n")
    process.expect_exact(PROMPT)
    eventually(lambda: (tmp_path / "answer").read_text() == "from behind\n", seconds=30)
    process.sendeof()
    rest(process)
    assert process.exitstatus == 0


def test_typing_is_asked_about(at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 5.3: the person sees what would be typed into which program; the answer is seen, and what came of it."""
    steps: list[Step] = [
        [function_call("exec_command", {"cmd": "cat > typed; echo read", "tty": True})],
        [function_call("write_stdin", {"session_id": 1, "chars": "good\n"})],
        [function_call("write_stdin", {"session_id": 1, "chars": "bad\x1b[2J\n"})],
        [function_call("write_stdin", {"session_id": 1, "chars": "\x04", "until": "exit"})],
        [message("typed")],
    ]
    server = openai_server(steps)
    process = at_terminal(server, "x")
    process.expect_exact("May this run?")
    process.expect_exact("[y]es, [n]o, [e]dit? ")
    process.sendline("y")
    process.expect_exact("process 1 runs on")
    process.expect_exact("process 1: cat > typed; echo read <- good")
    process.expect_exact("May this be typed?")
    process.expect_exact("into  process 1: cat > typed; echo read, no isolation")
    process.expect_exact("why   what is typed into a program is approved by a person")
    process.expect_exact("[y]es, [n]o? ")
    process.sendline("e")
    process.expect_exact("Answer with one of the letters in brackets.")
    process.sendline("y")
    process.expect_exact("May this be typed?")
    process.expect_exact("bad\\x1b[2J")
    process.expect_exact("[y]es, [n]o? ")
    process.sendline("n")
    process.expect_exact("reason: ")
    process.sendline("not that")
    process.expect_exact("May this be typed?")
    process.expect_exact("\\x04")
    process.expect_exact("[y]es, [n]o? ")
    process.sendline("y")
    shown = rest(process)
    assert "read\n[exit code 0, " in shown
    assert "typed\n" in shown
    assert "not that" in output_of(server.model.requests[3])
    assert (tmp_path / "typed").read_text() == "good\n"


def test_typing_is_asked_about_once(at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 5.3: with --typing first a program is cleared by the first answer."""
    steps: list[Step] = [
        [function_call("exec_command", {"cmd": "cat > typed", "tty": True})],
        *([function_call("write_stdin", {"session_id": 1, "chars": f"{n}\n"})] for n in (1, 2, 3)),
        [function_call("stop_process", {"session_id": 1})],
        [message("typed")],
    ]
    process = at_terminal(openai_server(steps), "--typing", "first", "x")
    for question in ("May this run?", "May this be typed?"):
        process.expect_exact(question)
        process.expect_exact("? ")
        process.sendline("y")
    shown = rest(process)
    assert "May this" not in shown
    assert "stop_process process 1: cat > typed" in shown
    assert (tmp_path / "typed").read_text() == "1\n2\n3\n"


def test_a_person_types_the_password(at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 5.3: what a program asks for secretly a person can type instead; the model and the terminal never see it."""
    asks = f'{sys.executable} -c "import getpass; print(len(getpass.getpass()))"'
    steps: list[Step] = [
        [function_call("exec_command", {"cmd": asks, "tty": True})],
        [function_call("write_stdin", {"session_id": 1, "chars": "ask the user\n", "until": "exit"})],
        [message("It is in.")],
    ]
    server = openai_server(steps)
    process = at_terminal(server, "--log", "log", "--audit", "audit", "--resume", "conversation", "x")
    process.logfile_read = seen = io.BytesIO()
    process.expect_exact(QUESTION)
    process.sendline("y")
    process.expect_exact("(13 characters, not shown: the program asks for a secret)")
    process.expect_exact("[y]es, [n]o, [t]ype it yourself? ")
    process.sendline("t")
    process.expect_exact("not shown while you type: ")
    process.sendline("open sesame")
    process.expect_exact("It is in.")
    rest(process)
    assert "11\n[exit code 0" in output_of(server.model.requests[2])
    assert b"sesame" not in seen.getvalue()
    assert "sesame" not in str(server.model.requests)
    assert [path.name for path in tmp_path.iterdir() if path.is_file() and b"sesame" in path.read_bytes()] == []


def test_a_command_that_runs_on(at_terminal: AtTerminal, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 5.4: what takes too long is not ended; the person sees that it runs on, and what comes of it."""
    wait = {"session_id": 1, "until": "exit", "yield_time_ms": 60_000}
    steps: list[Step] = [
        [function_call("run_shell", {"command": "echo a; until [ -e go ]; do sleep 0.01; done; echo b", "timeout": 1})],
        [run("touch go"), function_call("write_stdin", wait)],
        [message("Done.")],
    ]
    shown = rest(at_terminal(openai_server(steps), "--approve", "never", "x"))
    assert "a\n[time-out, process 1 runs on, " in shown
    assert re.search(r"write_stdin process 1: echo a; .*\nb\n\[exit code 0, ", shown)
