"""An agent whose model talks to programs: which tool a call goes to, what is shown and asked, what never shows."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

import pytest

from shellkit import LocalExecutor
from shellkit.agent import Agent, ApprovalAsked, CallFinished, CallRequested, Stopped, default_instructions
from shellkit.policy import ApprovalRequest, Decision
from shellkit.testing.scripted_model import function_call, message

APIS = pytest.mark.parametrize("api", ["responses", "chat"])
PASSWORD = "open sesame"
ASKS = f'{sys.executable} -c "import getpass; print(len(getpass.getpass()))"'


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return function_call(name, arguments, call_id)


def last_output(body: dict[str, Any]) -> str:
    """Return what the model was told last, in either API."""
    history = body.get("input") or body.get("messages")
    assert isinstance(history, list)
    return str(history[-1].get("output", history[-1].get("content")))


@APIS
def test_a_web_server(stage: Any, api: str) -> None:
    """Issue 5, done when: a web server is started, its ready line comes with one call, it is curled, and stopped."""
    server = f"{sys.executable} -u -m http.server 0 --bind 127.0.0.1"
    ports: list[str] = []

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        said = last_output(body)
        if said == "go":
            return [call("exec_command", "c1", cmd=server, until=r"Serving HTTP on", yield_time_ms=30_000)]
        if "Serving" in said:
            ports.extend(re.findall(r"port (\d+)", said))
            url = f"http://127.0.0.1:{ports[0]}/page.txt"
            get = f"import urllib.request; print(urllib.request.urlopen('{url}').read().decode())"
            return [call("run_shell", "c2", command=f'{sys.executable} -c "{get}"', timeout=None, workdir=None)]
        if "hello" in said:
            return [call("stop_process", "c3", session_id=1), call("list_processes", "c4")]
        return [message("It served hello.")]

    async def main() -> None:
        async with stage(script, api=api, several=True) as on:
            (on.workdir / "page.txt").write_text("hello\n")
            events = await on.run()
            assert events[-1] == Stopped(reason="done", text="It served hello.")
            requested = [event for event in events if isinstance(event, CallRequested)]
            assert [(event.name, event.reader) for event in requested] == [
                ("exec_command", ""),
                ("run_shell", ""),
                ("stop_process", f"process 1: {server}"),
                ("list_processes", "the list of processes"),
            ]
            assert requested[0].commands == (server,)
            assert "still running, session_id 1" in on.told("c1")
            assert "GET /page.txt" in on.told("c3")
            assert "ended" in on.told("c4")
            assert not on.shell.process(1).running

    asyncio.run(main())


def test_what_is_typed_is_shown_and_a_password_is_not(stage: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Issue 5.3: events show what is typed into which program, and no event and no log a password."""

    async def main() -> None:
        script = [
            [call("exec_command", "c1", cmd="cat; " + ASKS, tty=True)],
            [call("write_stdin", "c2", session_id=1, chars="visible\n\x04", until="[Pp]assword", yield_time_ms=30_000)],
            [call("write_stdin", "c3", session_id=1, chars=f"{PASSWORD}\n", until="exit", yield_time_ms=30_000)],
            [call("write_stdin", "c4", session_id=1, chars=f"{PASSWORD}\n")],
            [message("done")],
        ]
        asked: list[ApprovalRequest] = []

        async def approver(request: ApprovalRequest) -> Decision:
            asked.append(request)
            return Decision(approved=True, command=f"{PASSWORD}!\n" if request.secret else None)

        async with stage(script, several=True, tool={"approval": "always", "approver": approver}) as on:
            events = await on.run()
            assert str(len(PASSWORD) + 1) in on.told("c3")
            typed = [event for event in events if isinstance(event, CallRequested) and event.name == "write_stdin"]
            assert [event.commands[0] for event in typed] == [
                "visible\n\x04",
                f"({len(PASSWORD) + 1} characters, not shown: the program asks for a secret)",
                f"({len(PASSWORD) + 1} characters, not shown: the program has ended)",
            ]
            assert all(event.reader.startswith("process 1: cat; ") for event in typed)
            assert [event.request for event in events if isinstance(event, ApprovalAsked)] == asked
            assert [request.shell.partition(":")[0] for request in asked] == ["bash", "process 1", "process 1"]
            assert PASSWORD not in repr(events)
            assert PASSWORD not in caplog.text

    caplog.set_level("DEBUG", logger="shellkit")
    asyncio.run(main())


@APIS
def test_interrupted_while_it_waits(stage: Any, api: str) -> None:
    """Issue 5.2: yield is no time-out; an interrupted wait ends the call, and the program runs on."""

    async def main() -> None:
        script = [
            [call("exec_command", "c1", cmd="echo up; sleep 1000", until="up")],
            [call("write_stdin", "c2", session_id=1, until="exit", yield_time_ms=300_000)],
            [message("fine")],
        ]
        async with stage(script, api=api, several=True) as on:
            ended = []
            async for event in on.agent.run("go"):
                if isinstance(event, CallRequested) and event.call_id == "c2":
                    on_its_way = asyncio.get_running_loop().create_task(interrupt(on))
                if isinstance(event, CallFinished):
                    ended.append(event.output)
            await on_its_way
            assert ended[1].text == (
                "[Broken off: the user interrupted it. That ended the call, not the program: list_processes shows "
                "what runs.]"
            )
            assert on.shell.process(1).running
            assert on.agent.text == "fine"

    async def interrupt(on: Any) -> None:
        while on.shell.process(1).idle != 0.0:  # until the call waits
            await asyncio.sleep(0.001)
        assert on.agent.cancel()

    asyncio.run(main())


@APIS
def test_a_tool_that_is_not_there(stage: Any, api: str) -> None:
    """Issue 4, bad input: an unknown tool's name comes back with the names that there are."""

    async def main() -> None:
        async with stage([[call("bash", "c1", command="ls")], [message("ok")]], api=api, several=True) as on:
            await on.ends()
            assert on.told("c1") == (
                "Not run: there is no tool 'bash'; there are 'run_shell', 'exec_command', 'write_stdin', "
                "'list_processes', 'stop_process', 'read_output'."
            )

    asyncio.run(main())


def test_what_the_model_is_given(stage: Any) -> None:
    """Issue 5.3: each tool is declared as a strict function, and the instructions say when to use which."""

    async def main() -> None:
        async with stage([[message("ok")]], several=True, instructions=None) as on:
            await on.ends()
            request = on.server.model.requests[0]
            assert [(tool["name"], tool["strict"]) for tool in request["tools"]] == [
                ("run_shell", True),
                ("exec_command", True),
                ("write_stdin", True),
                ("list_processes", True),
                ("stop_process", True),
                ("read_output", True),
            ]
            assert "`exec_command`" in request["instructions"]
        async with LocalExecutor() as shell:
            assert "exec_command" not in await default_instructions(shell.as_tool())

    asyncio.run(main())


def test_impossible_tools() -> None:
    """Bad input: several tools in a form that has one, and tools without a shell, are refused with the remedy."""

    async def main() -> None:
        async with LocalExecutor() as shell:
            several = shell.as_tools()
            client: Any = None
            with pytest.raises(ValueError, match=r"one tool of the API's; give executor\.as_tool\(\)"):
                Agent(client, "m", several, form="shell")
            with pytest.raises(ValueError, match="must hold one that runs commands"):
                Agent(client, "m", several[1:])
            with pytest.raises(ValueError, match="every other form needs one"):
                Agent(client, "m", [])

    asyncio.run(main())
