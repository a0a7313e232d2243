"""The Responses API's history: what is sent when the server has lost it, and what it cannot take back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from shellkit import LocalExecutor
from shellkit.agent import Agent, CallFinished, CallRequested, Stopped, Transcript
from shellkit.testing.scripted_model import function_call, message, reasoning


def run_shell(command: str, call_id: str | None = None) -> dict[str, Any]:
    return function_call("run_shell", {"command": command, "timeout": None, "workdir": None}, call_id)


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_forgets(stage: Any, stream: bool) -> None:
    """Issue 4.2, `previous_response_id`: when the server has no such response any more, it is sent all, and so on."""

    async def main() -> None:
        script = [[message("one"), run_shell("echo 1", "c1")], [message("two")], [message("three")], [message("four")]]
        async with stage(script, stream=stream) as on:
            await on.run("first")
            on.server.model._stored.clear()
            assert await on.ends("second") == Stopped(reason="done", text="three")
            refused, repeated = on.server.model.requests[-2:]
            assert "previous_response_id" in refused
            assert "previous_response_id" not in repeated
            sent = json.dumps(repeated["input"])
            assert [
                sent.index(known) for known in ("first", "one", "echo 1", "exit code 0", "two", "second")
            ] == sorted(sent.index(known) for known in ("first", "one", "echo 1", "exit code 0", "two", "second"))
            await on.run("third")
            assert on.server.model.requests[-1]["store"] is False
            assert len(on.server.model.requests) == 5

    asyncio.run(main())


def test_thoughts_that_were_not_given_out(stage: Any, tmp_path: Path) -> None:
    """Issue 4.4, --resume: thoughts of which there is only the id are left out, with the ids of what followed them."""

    async def main() -> None:
        with Transcript(tmp_path / "talk") as transcript:
            script = [[reasoning(), message("I look."), run_shell("echo 1", "c1")], [message("Done.")]]
            async with stage(script, transcript=transcript) as on:
                await on.run("first")
        with Transcript(tmp_path / "talk") as transcript:
            assert "reasoning" in json.dumps(transcript.items)
            async with stage([[message("fine")]], transcript=transcript) as on:
                assert await on.ends("second") == Stopped(reason="done", text="fine")
                (request,) = on.server.model.requests
                assert "reasoning" not in json.dumps(request["input"])
                assert not [item for item in request["input"] if "id" in item]
                assert on.told("c1").startswith("1\n")

    asyncio.run(main())


def test_items_go_back_as_input(stage: Any) -> None:
    """The SDK's types of input items: what the server adds to an item, or leaves empty, is not sent back."""

    async def main() -> None:
        call = {**run_shell("echo 1", "c1"), "created_by": "someone", "namespace": None}
        async with stage([[call], [message("done")]], stateless=True) as on:
            await on.run()
            sent = next(item for item in on.sent() if item.get("type") == "function_call")
            assert set(sent) == {"type", "id", "call_id", "name", "arguments", "status"}

    asyncio.run(main())


def test_a_refusal_is_what_the_model_says(stage: Any) -> None:
    """Responses API, refusal part: the model's own refusal is its message."""

    async def main() -> None:
        refusal = {**message(""), "content": [{"type": "refusal", "refusal": "I won't."}]}
        async with stage([[refusal]], stream=False) as on:
            assert await on.ends() == Stopped(reason="done", text="I won't.")

    asyncio.run(main())


CUSTOM = {"type": "custom_tool_call", "id": "i1", "call_id": "c1", "name": "exec", "input": "touch made"}
PATCH = {"type": "apply_patch_call", "id": "i1", "call_id": "c1", "status": "completed", "operation": {"path": "made"}}
MCP = {"type": "mcp_approval_request", "id": "c1", "name": "x", "server_label": "y", "arguments": "{}"}


@pytest.mark.parametrize("item", [CUSTOM, PATCH, MCP], ids=lambda item: item["type"])
@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_what_nobody_declared(stage: Any, item: dict[str, Any], stateless: bool, stream: bool) -> None:
    """Issue 4, bad input: the model is told that there is no such tool, as the API demands, and goes on."""

    async def main() -> None:
        script = [[item, run_shell("echo 1", "c2")], [message("so be it")], [message("again")]]
        async with stage(script, stateless=stateless, stream=stream) as on:
            events = await on.run()
            assert events[-1] == Stopped(reason="done", text="so be it")
            asked: CallRequested = next(event for event in events if isinstance(event, CallRequested))
            finished: CallFinished = next(event for event in events if isinstance(event, CallFinished))
            assert (asked.call_id, asked.name) == ("c1", item.get("name", "apply_patch"))
            assert "nothing here answers a" in finished.output.text
            told = next(each for each in on.sent() if "c1" in (each.get("call_id"), each.get("approval_request_id")))
            assert "call the tools that you were given" in json.dumps(on.sent())
            assert told["type"] != item["type"] or stateless
            assert on.told("c2").startswith("1\n")
            assert await on.ends("more") == Stopped(reason="done", text="again")
            assert list(on.workdir.iterdir()) == []

    asyncio.run(main())


@pytest.mark.parametrize("item", [CUSTOM, PATCH, MCP], ids=lambda item: item["type"])
def test_a_resumed_call_of_what_nobody_declared(stage: Any, item: dict[str, Any], tmp_path: Path) -> None:
    """Issue 4.4, --resume: such a call that was left open is answered before the conversation goes on."""

    async def main() -> None:
        with Transcript(tmp_path / "talk") as transcript:
            transcript.begin("responses")
            transcript.append([{"role": "user", "content": "go"}, {**item, "id": "c1"}])
        with Transcript(tmp_path / "talk") as transcript:
            async with stage([[message("fine")]], transcript=transcript) as on:
                assert await on.ends("second") == Stopped(reason="done", text="fine")
                assert "nothing here answers" in json.dumps(on.sent())

    asyncio.run(main())


@pytest.mark.parametrize(
    "item",
    [
        {"type": "computer_call", "id": "cu", "call_id": "c", "status": "completed", "pending_safety_checks": []},
        {"type": "tool_search_call", "id": "t", "call_id": "c", "execution": "client", "arguments": {}},
        {"type": "call_of_the_future", "id": "f", "call_id": "c"},
    ],
    ids=lambda item: item["type"],
)
def test_a_call_that_nothing_can_answer(stage: Any, item: dict[str, Any]) -> None:
    """Issue 4, bad input: it never looks like the end of the task, and the conversation can be gone on with."""

    async def main() -> None:
        async with stage([[message("I click."), item], [message("better")]]) as on:
            stopped = await on.ends()
            assert stopped.reason == "error"
            assert f"the model makes a {item['type']}, which nothing here can answer" in stopped.error
            assert await on.ends("do it in the shell") == Stopped(reason="done", text="better")

    asyncio.run(main())


def test_what_the_server_does_itself(stage: Any) -> None:
    """Responses API: items that wait for no output of ours are no calls."""
    items = [
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "mcp_call", "id": "m", "name": "x", "server_label": "y", "arguments": "{}", "output": "1"},
        {"type": "tool_search_call", "id": "t", "call_id": None, "execution": "server", "arguments": {}},
        {"type": "program", "id": "p", "call_id": "p1", "code": "1", "fingerprint": "x"},
        {"type": "program_output", "id": "q", "call_id": "p1", "result": "1", "status": "completed"},
        {"type": "compaction", "id": "k", "encrypted_content": "x"},
    ]

    async def main() -> None:
        async with stage([[reasoning(), *items, message("found")]]) as on:
            assert await on.ends() == Stopped(reason="done", text="found")

    asyncio.run(main())


def answered(*events: dict[str, Any]) -> Stopped:
    """Return how a run ends whose only reply are these events."""
    frames = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    page = httpx2.Response(200, text=frames, headers={"content-type": "text/event-stream"})

    async def main() -> Stopped:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda request: page))
        async with openai.AsyncOpenAI(api_key="x", http_client=http) as client, LocalExecutor() as shell:
            stopped = [event async for event in Agent(client, "m", shell.as_tool(), instructions="x").run("go")][-1]
        assert isinstance(stopped, Stopped)
        return stopped

    return asyncio.run(main())


def test_an_error_within_the_stream() -> None:
    """Issue 4, must hold: what the server says of its failure is told, also when the answer has begun."""
    delta = {"type": "response.output_text.delta", "delta": None}
    stopped = answered(delta, {"type": "error", "code": "x", "message": "too many\nrequests", "param": None})
    assert (stopped.reason, stopped.misconfigured) == ("error", False)
    assert "the model failed: too many requests; try again" in stopped.error


def test_a_reply_that_the_server_cancelled() -> None:
    """Issue 4, must hold: such a reply is not the end of the task."""
    response = {"id": "r", "status": "cancelled", "output": [], "incomplete_details": None, "usage": None}
    stopped = answered({"type": "response.completed", "response": response})
    assert stopped.reason == "error"
    assert "cut off (cancelled)" in stopped.error
