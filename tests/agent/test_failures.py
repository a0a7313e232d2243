"""Replies that no model should send, and servers that fail: each ends in a clear state, and the conversation goes on."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import openai
import pytest

from shellkit import LocalExecutor
from shellkit.agent import Agent, CallFinished, CallRequested, Message, Stopped
from shellkit.testing.scripted_model import Broken, Failure, function_call, message, shell_call

BOTH = pytest.mark.parametrize(("api", "stream"), [(a, s) for a in ("responses", "chat") for s in (True, False)])


def run_shell(command: str, call_id: str | None = None) -> dict[str, Any]:
    return function_call("run_shell", {"command": command, "timeout": None, "workdir": None}, call_id)


async def goes_on(on: Any) -> bool:
    """Return whether conversation and session are usable: the server refuses a history with an open call."""
    last = await on.ends("go on")
    assert last == Stopped(reason="done", text="fine"), last
    return await on.usable()


@BOTH
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (function_call("run_shell", '{"command": "echo 1'), "not JSON"),
        (function_call("run_shell", ""), "command: is missing"),
        (function_call("run_shell", "[]"), "must be an object"),
        (function_call("run_shell", {"command": ""}), "exit code 0"),
        (function_call("run_shell", {"cmd": "ls"}), "there is no such argument"),
        (function_call("bash", {"command": "echo ran"}), "run_shell"),
        (function_call("", {"command": "echo ran"}), "run_shell"),
    ],
)
def test_malformed_functions(stage: Any, api: str, stream: bool, call: dict[str, Any], told: str) -> None:
    """Issue 4, must hold: malformed arguments and unknown tools are told to the model, and the loop goes on."""

    async def main() -> None:
        async with stage([[call], [message("I see")], [message("fine")]], api=api, stream=stream) as on:
            events = await on.run()
            assert [type(event) for event in events if isinstance(event, CallRequested | CallFinished)] == [
                CallRequested,
                CallFinished,
            ]
            finished = next(event for event in events if isinstance(event, CallFinished))
            assert told in finished.output.text
            assert told in json.dumps(on.sent()[-1])
            assert events[-1] == Stopped(reason="done", text="I see")
            assert await goes_on(on)

    asyncio.run(main())


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"action": {"commands": []}}, "command"),
        ({"action": {"commands": "ls"}}, "command"),
        ({"status": "incomplete", "action": {"commands": ["echo ran > log"]}}, "did not arrive whole"),
    ],
)
def test_malformed_shell_calls(stage: Any, stream: bool, change: dict[str, Any], told: str) -> None:
    """Issue 4, must hold: an empty command list, and a call that was cut off, run nothing."""

    async def main() -> None:
        script = [[{**shell_call("true"), **change}], [message("I see")], [message("fine")]]
        async with stage(script, form="shell", stream=stream) as on:
            events = await on.run()
            assert events[-1] == Stopped(reason="done", text="I see")
            assert not (on.workdir / "log").exists()
            finished = next(event for event in events if isinstance(event, CallFinished))
            assert told in finished.output.text
            assert await goes_on(on)

    asyncio.run(main())


@BOTH
def test_a_call_without_an_id(stage: Any, api: str, stream: bool) -> None:
    """Issue 4, must hold: nothing could answer it, so nothing of the reply runs and the turn ends with an error."""

    async def main() -> None:
        script = [[run_shell("touch a", "c1"), run_shell("touch b", "")], [message("fine")]]
        async with stage(script, api=api, stream=stream) as on:
            last = await on.ends()
            assert last.reason == "error"
            assert "has no id" in last.error
            assert not list(on.workdir.iterdir())
            assert await goes_on(on)

    asyncio.run(main())


@BOTH
def test_a_call_that_comes_twice(stage: Any, api: str, stream: bool) -> None:
    """Issue 4, must hold: the same call with the same id runs once; each gets the output."""

    async def main() -> None:
        twice = [run_shell("echo x >> log; cat log", "c1"), run_shell("echo x >> log; cat log", "c1")]
        async with stage([twice, [message("seen")], [message("fine")]], api=api, stream=stream) as on:
            events = await on.run()
            assert len([event for event in events if isinstance(event, CallFinished)]) == 1
            assert (on.workdir / "log").read_text() == "x\n"
            assert on.sent()[-1] == on.sent()[-2]
            assert events[-1] == Stopped(reason="done", text="seen")
            assert await goes_on(on)

    asyncio.run(main())


def test_a_call_that_comes_again_later(stage: Any) -> None:
    """Issue 4, must hold: the Responses API makes ids itself, so the same call in a later turn is the same call."""

    async def main() -> None:
        call = run_shell("echo x >> log; cat log", "c1")
        async with stage([[call], [call], [message("seen")], [message("fine")]]) as on:
            assert await on.ends() == Stopped(reason="done", text="seen")
            assert (on.workdir / "log").read_text() == "x\n"
            assert await goes_on(on)

    asyncio.run(main())


def test_ids_that_are_counted_anew(stage: Any) -> None:
    """Some Chat servers count ids anew in each reply: the same id later is another call, and gets its own output."""

    async def main() -> None:
        call = run_shell("echo x >> log; cat log", "call_0")
        async with stage([[call], [call], [message("seen")], [message("fine")]], api="chat") as on:
            events = await on.run()
            told = [event.output.text for event in events if isinstance(event, CallFinished)]
            assert [text.partition("\n[")[0] for text in told] == ["x", "x\nx"]
            assert await goes_on(on)

    asyncio.run(main())


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize(
    ("api", "stream", "after"),
    [
        (api, stream, after)
        for api in ("responses", "chat")
        for stream in (True, False)
        for after in range(8 if stream else 2)
    ],
)
def test_a_dropped_connection(stage: Any, api: str, stream: bool, blocking: bool, after: int) -> None:
    """Issue 4, must hold: a reply that breaks off is not acted on, wherever it breaks; the next run goes on."""

    async def main() -> None:
        broken = Broken([message("I do."), run_shell("touch made")], after=after)
        async with stage([broken, [message("fine")]], api=api, stream=stream, blocking=blocking) as on:
            last = await on.ends()
            assert last.reason == "error"
            assert "try again" in last.error
            assert not last.misconfigured
            assert not list(on.workdir.iterdir())
            assert await goes_on(on)

    asyncio.run(main())


@BOTH
def test_retries_are_the_clients(stage: Any, api: str, stream: bool) -> None:
    """Issue 4.2: rate limits and server errors are retried by the SDK, and the turn goes on."""

    async def main() -> None:
        soon = {"retry-after-ms": "1"}
        script = [Failure(429, headers=soon), Failure(500, headers=soon), [run_shell("true")]]
        script += [Failure(503, headers=soon), [message("fine")]]  # type: ignore[list-item]
        async with stage(script, api=api, stream=stream, retries=2) as on:
            assert await on.ends() == Stopped(reason="done", text="fine")
            assert len(on.server.model.requests) == 5

    asyncio.run(main())


@BOTH
@pytest.mark.parametrize(
    ("failure", "told", "misconfigured"),
    [
        (Failure(401, "Incorrect API key provided: sk-secret"), "OPENAI_API_KEY", True),
        (Failure(403, "not for you"), "not for you", True),
        (Failure(404, "The model does not exist"), "check the model's name and the base URL", True),
        (Failure(429, "Rate limit reached"), "wait, then try again", False),
        (Failure(400, "Too long"), "answers 400", False),
        (Failure(500, "Oops\non two lines"), "Oops on two lines", False),
    ],
)
def test_failures_end_with_what_was_done(
    stage: Any, api: str, stream: bool, failure: Failure, told: str, misconfigured: bool
) -> None:
    """Issue 4.2: what the SDK gives up on ends the turn with one line that names the remedy, and never the key."""

    async def main() -> None:
        script = [[message("First."), run_shell("echo kept > file")], failure, [message("fine")]]
        async with stage(script, api=api, stream=stream) as on:
            events = await on.run()
            last = events[-1]
            assert isinstance(last, Stopped)
            assert (last.reason, last.text, last.misconfigured) == ("error", "First.", misconfigured)
            assert told in last.error
            assert "\n" not in last.error
            assert "sk-secret" not in last.error
            assert [event.text for event in events if isinstance(event, Message)] == ["First."]
            assert (on.workdir / "file").read_text() == "kept\n"
            assert await goes_on(on)

    asyncio.run(main())


@pytest.mark.parametrize("blocking", [True, False])
def test_nobody_listens(blocking: bool) -> None:
    """Issue 4, bad input: a base URL where no server is."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def main() -> None:
        kind = openai.OpenAI if blocking else openai.AsyncOpenAI
        client: Any = kind(base_url=f"http://127.0.0.1:{port}/v1", api_key="x", max_retries=0)
        async with LocalExecutor(shell="bash") as shell:
            tool = shell.as_tool(approval="never", acknowledge_unsafe=True)
            last = [event async for event in Agent(client, "m", tool).run("go")][-1]
        client.close() if blocking else await client.close()
        assert isinstance(last, Stopped)
        assert last.misconfigured
        assert f"http://127.0.0.1:{port}/v1" in last.error
        assert "check the base URL" in last.error

    asyncio.run(main())


def test_a_closed_client(stage: Any) -> None:
    """Issue 4, must hold, a killed client: the turn ends with an error, the session is usable."""

    async def main() -> None:
        async with stage([[message("never")]]) as on:
            await on.agent._model._client.client.close()
            last = await on.ends()
            assert last.reason == "error"
            assert await on.usable()

    asyncio.run(main())


def test_a_shell_that_is_gone(stage: Any) -> None:
    """H4: a closed executor is told to the model as text, and the loop goes on."""

    async def main() -> None:
        async with stage([[run_shell("true")], [message("I stop.")]]) as on:
            await on.agent._tools[0].probe()
            await on.shell.close()
            events = await on.run()
            finished = next(event for event in events if isinstance(event, CallFinished))
            assert "closed for good" in finished.output.text
            assert events[-1] == Stopped(reason="done", text="I stop.")

    asyncio.run(main())


@BOTH
def test_half_a_pair(stage: Any, api: str, stream: bool) -> None:
    """Issue 4, must hold: half a UTF-16 pair, which JSON can hold and no request, does not break all that follows."""

    async def main() -> None:
        call = function_call("run_shell", '{"command": "echo \ud800"}')
        async with stage(
            [[message("a\ud800b"), call], [message("seen")], [message("fine")]], api=api, stream=stream
        ) as on:
            assert await on.ends("go\udcff") == Stopped(reason="done", text="seen")
            assert await goes_on(on)

    asyncio.run(main())
