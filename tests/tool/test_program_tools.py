"""The tools for programs: one gate for all, what is asked, what is hidden, and what a model is told (issue 5, 3)."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import LocalExecutor
from shellkit.audit import AuditLog, verify
from shellkit.policy import READ_ONLY, ApprovalRequest, Decision, Rule, RulePolicy
from shellkit.tool import Tool, ToolOutput

#: Reads a password as sudo does, and prints how long it was.
ASKS = f"{sys.executable} -c \"import getpass; print(len(getpass.getpass('Password: ')))\""
FREE = {"approval": "never", "acknowledge_unsafe": True}


class Model:
    """A model with all tools, and what became of its calls."""

    def __init__(self, tools: tuple[Tool, ...], executor: LocalExecutor, log: Path) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.executor = executor
        self.log = log

    async def start(self, cmd: str, **arguments: Any) -> ToolOutput:
        """Launch a program."""
        return await self.tools["exec_command"].call({"cmd": cmd, "yield_time_ms": 30000, **arguments})

    async def type(self, chars: str | None, session_id: int = 1, **arguments: Any) -> ToolOutput:
        """Type to a program, or wait for news of it."""
        given = {"session_id": session_id, "chars": chars, "yield_time_ms": 30000, **arguments}
        return await self.tools["write_stdin"].call(given)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The audit log's lines but for its first."""
        return [json.loads(line) for line in self.log.read_bytes().splitlines()][1:]


Play = Callable[..., Any]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Return a function that runs a coroutine function with a `Model`; `shell` holds the executor's options."""

    def run(scene: Callable[[Model], Awaitable[Any]], shell: dict[str, Any] | None = None, **options: Any) -> Any:
        async def main() -> Any:
            work = tmp_path / "work"
            work.mkdir(exist_ok=True)
            log = tmp_path / "audit"
            given = {"shell": "bash", "workdir": work, "confinement": "off", **(shell or {})}
            with AuditLog(log) as audit:
                async with LocalExecutor(**given) as executor:
                    return await scene(Model(executor.as_tools(audit=audit, **options), executor, log))

        return asyncio.run(main())

    return run


def test_what_there_is(play: Play) -> None:
    """Issue 5, 3: the tools have the names and parameters that models know, and schemas that are strict."""

    async def scene(model: Model) -> None:
        assert {name: list(tool.parameters["properties"]) for name, tool in model.tools.items()} == {
            "run_shell": ["command", "timeout", "workdir"],
            "exec_command": ["cmd", "tty", "workdir", "yield_time_ms", "max_output_tokens", "until"],
            "write_stdin": ["session_id", "chars", "yield_time_ms", "max_output_tokens", "until"],
            "list_processes": [],
            "stop_process": ["session_id"],
            "read_output": ["ref", "offset", "limit", "first_line", "last_line", "pattern", "context", "tail"],
        }
        for tool in model.tools.values():
            schema = tool.parameters
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            assert tool.description

    play(scene)


def test_a_conversation(play: Play) -> None:
    """Issue 5, done when: python3 is launched, is asked for 6*7, is listed, and is stopped."""

    async def scene(model: Model) -> None:
        output = await model.start(f"{sys.executable} -q", tty=True)
        assert "[still running, session_id 1," in output.text
        assert output.text.endswith("; it waits for input]")
        assert "\n42\n" in (await model.type("print(6*7)\n")).text
        listed = await model.tools["list_processes"].call({})
        assert listed.text.startswith("session_id 1: ")
        assert "waits for input" in listed.text
        stopped = await model.tools["stop_process"].call({"session_id": 1})
        assert "[exit code " in stopped.text
        again = await model.type("more")
        assert (again.is_error, again.update is not None and again.update.running) == (False, False)
        assert "nothing was typed" in again.text

    play(scene, **FREE)


def test_starting_asks_like_a_command(play: Play, person: Any, tmp_path: Path) -> None:
    """Issue 5, 3: launching is judged, approved, remembered and recorded like a command, for its directory."""
    approver = person(scope="session")
    policy = RulePolicy(rules=[*READ_ONLY.rules, Rule(prefix=["rm"], decision="deny", reason="never")])

    async def scene(model: Model) -> None:
        assert "the policy denies it" in (await model.start("rm -r x")).text
        assert (await model.start("ls")).update is not None
        assert approver.asked == []
        for _ in range(2):
            await model.start("touch made")
        (request,) = approver.asked
        assert (request.command, request.workdir, request.shell) == ("touch made", str(tmp_path / "work"), "bash")
        await model.tools["run_shell"].call({"command": "touch made"})
        assert len(approver.asked) == 1
        refused, _, _, before, after = model.lines[:5]
        assert (refused["event"], refused["tool"], refused["command"]) == ("refused", "exec_command", "rm -r x")
        assert (before["decided_by"], before["workdir"]) == ("approver Person", str(tmp_path / "work"))
        assert (after["exit_code"], after["process_id"]) == (0, None)

    play(scene, approval="policy", policy=policy, approver=approver)


def test_nobody_to_ask(play: Play) -> None:
    """H3: without an approver nothing is launched and nothing is typed, and the model is told."""

    async def scene(model: Model) -> None:
        output = await model.start("touch made")
        assert output.is_error
        assert "nobody is there to give it" in output.text
        await model.executor.launch("cat", yield_time=10)
        assert "nobody is there to give it" in (await model.type("text\n")).text
        assert (await model.executor.write(1, yield_time=0)).output == ""
        assert model.executor.processes()[0].running

    play(scene)


@pytest.mark.parametrize(("typing", "asked"), [("always", [1, 1, 2]), ("first", [1, 2]), ("never", [])])
def test_typing_asks(play: Play, person: Any, typing: str, asked: list[int]) -> None:
    """Issue 5, 3: what is typed is approved always, the first time for each program, or never."""
    approver = person()

    async def scene(model: Model) -> None:
        for _ in range(2):
            await model.executor.launch("cat", yield_time=10)
        for session_id, text in ((1, "a\n"), (1, "b\n"), (2, "c\n")):
            assert text in (await model.type(text, session_id)).text
        assert [int(request.shell.split()[1].rstrip(":")) for request in approver.asked] == asked

    play(scene, approver=approver, typing=typing)


def test_what_is_shown_of_typing(play: Play, person: Any) -> None:
    """Issue 5, 3: a person sees the exact text, and which program would get it; a refusal types nothing."""
    approver = person(approved=False, reason="not that")

    async def scene(model: Model) -> None:
        await model.executor.launch("exec cat", yield_time=10)
        output = await model.type("rm -r x\x1b[2K\n")
        assert "The reason: not that" in output.text
        (request,) = approver.asked
        assert (request.command, request.shell) == ("rm -r x\x1b[2K\n", "process 1: exec cat")
        assert "\\x1b[2K" in request.display
        assert request.workdir is None
        assert (await model.executor.write(1, yield_time=0)).output == ""
        (line,) = model.lines
        assert (line["event"], line["tool"], line["reader"]) == ("refused", "write_stdin", "process 1: exec cat")

    play(scene, approver=approver)


def test_an_approved_command_is_no_approved_text(play: Play, person: Any) -> None:
    """H7: what was approved as a command, or in another spelling, is asked about again as text for a program."""
    approver = person(scope="session")

    async def scene(model: Model) -> None:
        await model.start("cat")
        await model.type("cat")
        await model.type("'cat'")
        await model.type("cat")
        assert [request.command for request in approver.asked] == ["cat", "cat", "'cat'"]

    play(scene, approver=approver)


def test_waiting_and_interrupting_ask_nobody(play: Play) -> None:
    """Issue 5, 3: polling, listing, Ctrl-C and stopping need no approval, and are recorded."""

    async def scene(model: Model) -> None:
        await model.executor.launch("trap 'echo interrupted' INT; echo set; while :; do read l; done", until="set")
        assert "interrupted" in (await model.type("\x03", until="interrupted")).text
        await model.executor.write(1, "\n", yield_time=0.0)
        assert (await model.type(None)).update is not None
        assert "session_id 1" in (await model.tools["list_processes"].call({})).text
        assert "[exit code" in (await model.tools["stop_process"].call({"session_id": 1})).text
        assert {line["decided_by"] for line in model.lines if line["event"] == "before"} == {"needs no approval"}

    play(scene, approval="always")


def test_a_password_shows_nowhere(play: Play, person: Any, tmp_path: Path) -> None:
    """Issue 5, 3: what is typed while no terminal echoes is in no question, no log, no list and no output."""
    approver = person()

    async def scene(model: Model) -> str:
        texts = [(await model.start(ASKS, tty=True)).text]
        assert "Password: " in texts[0]
        texts.append((await model.type("hunter2\n")).text)
        assert "7\n" in texts[1]
        request = approver.asked[-1]
        assert request.command == "(8 characters, not shown: the program asks for a secret)"
        return "".join([*texts, json.dumps([each.to_dict() for each in approver.asked])])

    seen = play(scene, approver=approver)
    assert "hunter2" not in seen
    assert b"hunter2" not in (tmp_path / "audit").read_bytes()
    assert verify(tmp_path / "audit").ok


def test_what_may_be_seen_of_a_call(play: Play) -> None:
    """Issue 5, 3: who shows or logs calls sees what would run or be typed, and into what; no password, no side effect."""

    async def scene(model: Model) -> None:
        def seen(name: str, **arguments: Any) -> Any:
            asked = model.tools[name].asked(arguments)
            return asked and (asked.command, asked.reader)

        assert seen("run_shell", command="ls") == ("ls", "")
        assert seen("exec_command", cmd="cat") == ("cat", "")
        assert seen("list_processes") == ("", "the list of processes")
        assert seen("write_stdin", session_id=1, chars="x") is None
        await model.start(ASKS, tty=True)
        hidden = ("(8 characters, not shown: the program asks for a secret)", f"process 1: {ASKS}")
        assert seen("write_stdin", session_id=1, chars="hunter2\n") == hidden
        assert "hunter2" not in repr(model.tools["write_stdin"].asked({"session_id": 1, "chars": "hunter2\n"}))
        assert seen("stop_process", session_id=1) == ("", f"process 1: {ASKS}")
        assert model.executor.process(1).running
        await model.executor.close()
        assert seen("stop_process", session_id=1) is None

    play(scene, **FREE)


def test_a_password_that_a_person_replaces(play: Play, tmp_path: Path) -> None:
    """H4: the person may type the password instead of the model; that one shows nowhere either."""

    async def approve(request: ApprovalRequest) -> Decision:
        return Decision(approved=True, command="another one\n" if request.secret else None)

    async def scene(model: Model) -> str:
        await model.start(ASKS, tty=True)
        output = await model.type("placeholder\n", until="exit")
        assert "11\n" in output.text
        assert "changed the command; this ran: (12 characters, not shown" in output.text
        return output.text

    assert "another one" not in play(scene, approver=approve)
    assert b"another one" not in (tmp_path / "audit").read_bytes()


def test_an_approved_password_is_no_other_one(play: Play) -> None:
    """H3, H7: approving a secret clears no other of the same length, neither later on nor in its place."""
    asked = []

    async def approve(request: ApprovalRequest) -> Decision:
        asked.append(request.command)
        return Decision(approved=True, scope="session")

    async def scene(model: Model) -> None:
        await model.executor.launch("stty -echo; while read -r x; do echo $x is; done", tty=True, yield_time=10)
        for secret in ("hunter1\n", "hunter2\n", "hunter2\n"):
            assert f"{secret[:-1]} is" in (await model.type(secret, until="is$")).text
        assert len(asked) == 2
        tool = model.tools["write_stdin"]
        request = await tool.approval_request({"session_id": 1, "chars": "hunter3\n"})
        assert request is not None
        assert "hunter" not in json.dumps(request.to_dict())
        other = await tool.resume(request, True, {"session_id": 1, "chars": "hunter4\n"})
        assert "another command" in other.text

    play(scene, approver=approve)


def test_a_password_that_nobody_asks_for_any_more(play: Play) -> None:
    """sec-approval-what-you-see: a password that was approved too late is not typed where it would be shown."""

    async def scene(model: Model) -> None:
        async def approve(request: ApprovalRequest) -> Decision:
            if "not shown" in request.command:
                await model.executor.write(1, "given up\n", until="^over", yield_time=30)
            return Decision(approved=True)

        model.tools["run_shell"].gate.approval.approver = approve
        await model.start("read -rsp 'Password: ' p; echo; echo over; exec cat", tty=True)
        output = await model.type("hunter2\n")
        assert output.is_error
        assert "does not ask for a secret any more" in output.text
        assert "hunter2" not in (await model.executor.write(1, "x\n", yield_time=10)).output
        assert model.lines[-1]["error"] == "CommandDenied"

    play(scene)


def test_an_edited_text_is_what_is_typed(play: Play, person: Any) -> None:
    """H4: a person may change what is typed, and the model is told."""

    async def scene(model: Model) -> None:
        await model.executor.launch("cat", yield_time=10)
        output = await model.type("model\n")
        assert output.text.startswith("person\n")
        assert "changed the command; this ran: person" in output.text

    play(scene, approver=person(command="person\n"))


def test_what_a_rule_denies_is_not_typed(play: Play) -> None:
    """H6: a rule that denies a command also holds for a line that is typed; what no rule covers is the person's."""
    policy = RulePolicy(rules=[Rule(prefix=["rm"], decision="deny", reason="never")], default="deny")

    async def scene(model: Model) -> None:
        await model.executor.launch("bash --norc", tty=True, yield_time=10)
        assert "`rm -r x`: never" in (await model.type("rm -r x\n")).text
        assert "42" in (await model.type("echo $((6*7))\n", until="^42")).text

    play(scene, policy=policy, **FREE)


def test_what_a_rule_denies_is_not_typed_unseen(play: Play, tmp_path: Path) -> None:
    """H6: a shell whose terminal does not echo looks as if it asked for a password; a rule that denies still holds."""
    policy = RulePolicy(rules=[Rule(prefix=["rm"], decision="deny", reason="never")], default="deny")

    async def scene(model: Model) -> None:
        await model.executor.launch("stty -echo; exec sh", tty=True, yield_time=10)
        (tmp_path / "work" / "kept").touch()
        output = await model.type("rm kept\n")
        assert "denies it. `(not shown)`: never" in output.text
        assert "42" in (await model.type("echo $((6*7))\n", until="42")).text
        assert (tmp_path / "work" / "kept").exists()

    play(scene, policy=policy, **FREE)
    assert b"kept" not in (tmp_path / "audit").read_bytes()


def test_approval_in_two_steps(play: Play) -> None:
    """H3: frameworks that stop for approval get a request, and resume types exactly that, once."""

    async def scene(model: Model) -> None:
        await model.executor.launch("cat", yield_time=10)
        tool = model.tools["write_stdin"]
        arguments = {"session_id": 1, "chars": "text\n", "yield_time_ms": 30000}
        request = await tool.approval_request(arguments)
        assert request is not None
        other = await tool.resume(request, True, {**arguments, "chars": "other\n"})
        assert "another command" in other.text
        request = await tool.approval_request(arguments)
        assert request is not None
        assert (await tool.resume(request.to_dict(), True, arguments)).text.startswith("text\n")
        assert (await tool.resume(request, True, arguments)).is_error
        assert await tool.approval_request({"session_id": 1, "chars": "\x03"}) is None
        assert await tool.approval_request({"session_id": 9, "chars": "x"}) is None

    play(scene)


def test_a_question_at_a_time(play: Play) -> None:
    """A person is asked one question at a time, whichever tools the calls go to; other calls go on meanwhile."""
    questions: list[str] = []

    async def scene(model: Model) -> None:
        answer = asyncio.Event()

        async def approve(request: ApprovalRequest) -> Decision:
            questions.append(request.command)
            await answer.wait()
            return Decision(approved=True)

        model.tools["run_shell"].gate.approval.approver = approve
        await model.executor.launch("cat", yield_time=10)
        command = asyncio.create_task(model.tools["run_shell"].call({"command": "echo run"}))
        typing = asyncio.create_task(model.type("text\n"))
        while not questions:
            await asyncio.sleep(0)
        assert "session_id 1" in (await model.tools["list_processes"].call({})).text
        assert len(questions) == 1
        answer.set()
        assert "run" in (await command).text
        assert "text" in (await typing).text
        assert sorted(questions) == ["echo run", "text\n"]

    play(scene, shell={"process_limits": None})


def test_beside_a_command(play: Play) -> None:
    """Issue 5, 2: launching and typing do not wait for a command that runs."""

    async def scene(model: Model) -> None:
        await model.tools["run_shell"].call({"command": "mkfifo fifo"})
        command = asyncio.create_task(model.tools["run_shell"].call({"command": "cat fifo"}))
        await model.start("cat")
        assert (await model.type("beside\n")).text.startswith("beside\n")
        await model.start("echo over > fifo")
        assert (await command).text.startswith("over\n")

    play(scene, **FREE)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("exec_command", {}, "cmd: is missing"),
        ("exec_command", {"cmd": ["ls"]}, "an argument list is not accepted"),
        ("exec_command", {"cmd": "a\0b"}, "NUL"),
        ("exec_command", {"cmd": "ls", "tty": "maybe"}, "tty: must be true, false or null"),
        ("exec_command", {"cmd": "ls", "shell": "zsh"}, "shell: there is no such argument"),
        ("exec_command", {"cmd": "ls", "yield_time_ms": "soon"}, "must be a number of milliseconds"),
        ("exec_command", {"cmd": "ls", "yield_time_ms": True}, "must be a number of milliseconds"),
        ("exec_command", {"cmd": "ls", "max_output_tokens": 0}, "max_output_tokens must be 1 or more"),
        ("exec_command", {"cmd": "ls", "until": "("}, "until: the pattern is no regular expression"),
        ("exec_command", {"cmd": "ls", "workdir": "sub/zz"}, "work/sub/zz; create it or name another"),
        ("exec_command", {"cmd": "ls", "workdir": "/usr"}, "outside"),
        ("write_stdin", {"session_id": 7}, "process 7 was never launched; there are: process 1 (cat)"),
        ("write_stdin", {"session_id": "one"}, "must be the whole number that exec_command returned"),
        ("write_stdin", {"session_id": 1, "chars": 5}, "chars: must be a string, or null"),
        ("write_stdin", {"session_id": 1, "chars": "x\ud83d"}, "chars contains a lone surrogate"),
        ("write_stdin", {"session_id": 1, "until": "(?=x)"}, "no look-around"),
        ("stop_process", {"session_id": 7}, "there are: process 1 (cat)"),
        ("list_processes", {"all": True}, "there is no such argument"),
        ("read_output", {"ref": "zz"}, "spill_dir"),
        ("read_output", {"ref": "zz", "tail": 5, "pattern": "x"}, "ask for one of"),
        ("read_output", {"ref": "zz", "last_line": 5}, "last_line needs first_line"),
    ],
)
def test_bad_input(play: Play, name: str, arguments: dict[str, Any], says: str) -> None:
    """H4: a wrong call comes back as text that says what the tool takes; nothing happens."""

    async def scene(model: Model) -> None:
        await model.executor.launch("cat", yield_time=10)
        output = await model.tools[name].call(arguments)
        assert output.is_error
        assert says in output.text
        assert len(model.executor.processes()) == 1
        json.dumps(output.to_dict())

    play(scene, shell={"confinement": "root"}, **FREE)


def test_what_is_waited_for_has_time(play: Play) -> None:
    """Issue 5, 2: a call that says what it waits for, and not how long, does not come back after 250 ms."""

    async def scene(model: Model) -> None:
        await model.executor.launch("read l; sleep 0.6; echo done; exec cat", yield_time=0.0)
        output = await model.tools["write_stdin"].call({"session_id": 1, "chars": "\n", "until": "^done$"})
        assert output.update is not None
        assert output.update.matched

    play(scene, **FREE)


@pytest.mark.parametrize(
    ("asked", "chars", "told"),
    [(999_999, "x\n", "from 999999 to the most, 30000"), (999_999, None, "from 999999 to the most, 300000")],
)
def test_yield_times_are_bounded(play: Play, asked: int, chars: str | None, told: str) -> None:
    """Issue 5, 2: a call waits no longer than the bound, and the note says so."""

    async def scene(model: Model) -> None:
        await model.executor.launch("read l; exit 3", yield_time=0.0)
        if chars is None:
            await model.executor.write(1, "\n", yield_time=0.0)
        output = await model.type(chars, until="exit", yield_time_ms=asked)
        assert told in output.text
        assert "[exit code 3" in output.text

    play(scene, **FREE)


def test_output_is_cut_to_tokens(play: Play, tmp_path: Path) -> None:
    """Issue 5, 5: the answer keeps head and tail of `max_output_tokens`, and names how to read the rest."""

    async def scene(model: Model) -> None:
        output = await model.start("seq 3000; exec cat", until="^3000", max_output_tokens=50)
        assert output.text.startswith("1\n2\n")
        assert "tokens omitted" in output.text
        assert "3000\n[still running" in output.text
        assert output.update is not None
        read = await model.tools["read_output"].call({"ref": output.update.output_ref, "first_line": 1500})
        assert read.text.startswith("1500\n")
        found = await model.tools["read_output"].call({"ref": output.update.output_ref, "pattern": "^29.9$"})
        assert "2909:2909" in found.text

    play(scene, shell={"spill_dir": tmp_path / "spill"}, **FREE)


MENU = """
import curses
def main(screen):
    screen.addstr(3, 10, "Pick one:")
    screen.addstr(5, 12, "> first")
    screen.refresh()
    screen.getch()
    screen.addstr(7, 12, "> second")
    screen.refresh()
    screen.getch()
curses.wrapper(main)
"""


def test_a_program_that_draws(play: Play, tmp_path: Path) -> None:
    """Issue 5, 1: of a program that draws on the screen a model sees what a person would see."""
    (tmp_path / "menu.py").write_text(MENU)

    async def scene(model: Model) -> None:
        output = await model.start(f"{sys.executable} {tmp_path}/menu.py", tty=True)
        assert output.text.startswith("[its screen:]\n\n\n\n          Pick one:\n\n            > first\n[still running")
        output = await model.type("j")
        assert "          Pick one:\n\n            > first\n\n            > second\n" in output.text
        ended = await model.type("q", until="exit")
        assert ended.update is not None
        assert (ended.update.exit_code, ended.update.screen) == (0, None)

    play(scene, **FREE)


def test_a_closed_executor(play: Play) -> None:
    """H4: when the executor is closed, the model is told that nothing will run any more."""

    async def scene(model: Model) -> None:
        await model.start("cat")
        await model.executor.close()
        for name, arguments in (
            ("exec_command", {"cmd": "ls"}),
            ("write_stdin", {"session_id": 1}),
            ("list_processes", {}),
            ("stop_process", {"session_id": 1}),
        ):
            output = await model.tools[name].call(arguments)
            assert output.is_error
            assert "closed for good" in output.text

    play(scene, **FREE)


@pytest.mark.parametrize("options", [{"typing": "sometimes", **FREE}, {"approval": "never"}])
def test_impossible_options(options: dict[str, Any]) -> None:
    """H3: what cannot be meant is an error of the one who makes the tools."""
    with pytest.raises(ValueError, match=r"typing must be|acknowledge_unsafe"):
        LocalExecutor(shell="bash").as_tools(**options)
