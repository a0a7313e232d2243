"""The loop: each API, form and kind of client; order, limits, and what goes back to the model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shellkit.agent import (
    Agent,
    ApprovalAsked,
    ApprovalGiven,
    CallFinished,
    CallRequested,
    Event,
    Message,
    OutputChunk,
    Stopped,
    TextDelta,
    Usage,
)
from shellkit.policy import READ_ONLY, ApprovalRequest, Decision
from shellkit.testing.scripted_model import function_call, local_shell_call, message, reasoning, shell_call

OpenStage = Any

APIS = pytest.mark.parametrize("api", ["responses", "chat"])


def run_shell(command: str, call_id: str | None = None) -> dict[str, Any]:
    return function_call("run_shell", {"command": command, "timeout": None, "workdir": None}, call_id)


def texts(events: list[Event]) -> list[str]:
    """Return what the model was told of each command."""
    return [event.output.text for event in events if isinstance(event, CallFinished)]


@APIS
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_conversation(stage: OpenStage, api: str, stream: bool, blocking: bool) -> None:
    """Issue 4.2: for each API, streamed or not, with either client, the events tell all, in order."""

    async def main() -> None:
        script = [[message("I look."), run_shell("echo out; exit 3", "c1")], [message("Three.")]]
        async with stage(script, api=api, stream=stream, blocking=blocking) as on:
            events = await on.run("what is it?")
            assert "".join(e.text for e in events if isinstance(e, TextDelta)) == ("I look.Three." if stream else "")
            shown = [event for event in events if not isinstance(event, TextDelta)]
            assert [type(event) for event in shown] == [
                *(Message, Usage, CallRequested, OutputChunk, CallFinished),
                *(Message, Usage, Stopped),
            ]
            requested, chunk, finished = shown[2:5]
            assert isinstance(requested, CallRequested)
            assert (requested.call_id, requested.name, requested.commands) == ("c1", "run_shell", ("echo out; exit 3",))
            assert chunk == OutputChunk(call_id="c1", stream="stdout", text="out\n")
            assert isinstance(finished, CallFinished)
            assert finished.output.result is not None
            assert finished.output.result.exit_code == 3
            assert shown[-1] == Stopped(reason="done", text="Three.")
            assert on.agent.usage == Usage(
                input_tokens=100, output_tokens=20, total_input_tokens=200, total_output_tokens=40
            )
            assert finished.output.text in json.dumps(on.sent(), ensure_ascii=False).replace("\\n", "\n")

    asyncio.run(main())


@APIS
def test_runs_are_one_conversation(stage: OpenStage, api: str) -> None:
    """Issue 4, purpose: one session per conversation; several runs go on with both."""

    async def main() -> None:
        script = [
            *([run_shell("cd /; X=5")], [message("done")]),
            *([run_shell("echo $X in $PWD")], [message("it is 5")]),
        ]
        async with stage(script, api=api) as on:
            await on.ends("set it")
            assert texts(await on.run("read it"))[0].startswith("5 in /\n")
            assert on.agent.text == "it is 5"
            assert "set it" in json.dumps(on.server.model.requests[-1 if api == "chat" else 0])

    asyncio.run(main())


@APIS
def test_several_calls_keep_order_and_ids(stage: OpenStage, api: str) -> None:
    """Issue 4.2: several calls in one turn run one after another, and each output has its call's id."""

    async def main() -> None:
        calls = [run_shell(f"echo {n} >> log; cat log", f"c{n}") for n in (1, 2, 3)]
        async with stage([calls, [message("done")]], api=api) as on:
            events = await on.run()
            assert [e.call_id for e in events if isinstance(e, CallFinished)] == ["c1", "c2", "c3"]
            assert [text.partition("\n[")[0] for text in texts(events)] == ["1", "1\n2", "1\n2\n3"]
            key = "call_id" if api == "responses" else "tool_call_id"
            assert [item[key] for item in on.sent()[-3:]] == ["c1", "c2", "c3"]

    asyncio.run(main())


def test_the_shell_tool_with_a_time_out(stage: OpenStage) -> None:
    """Seed, Responses `shell`: two commands in one call, the first times out, the second runs in the same session."""

    async def main() -> None:
        call = shell_call("X=1; echo half; sleep 100", "echo $X", call_id="c1", timeout_ms=300)
        async with stage([[call], [message("done")]], form="shell", instructions=None) as on:
            events = await on.run()
            assert [event.commands for event in events if isinstance(event, CallRequested)] == [
                ("X=1; echo half; sleep 100", "echo $X")
            ]
            (output,) = on.sent()
            assert output["call_id"] == "c1"
            first, second = output["output"]
            assert (first["stdout"], first["outcome"]) == ("half\n", {"type": "timeout"})
            assert second["stdout"] == "1\n" or "restored" in second["stderr"]
            assert on.server.model.requests[0]["tools"] == [{"type": "shell", "environment": {"type": "local"}}]
            assert "bash" in on.server.model.requests[0]["instructions"]

    asyncio.run(main())


def test_local_shell_lists_files(stage: OpenStage) -> None:
    """Seed, `local_shell`: the model lists the files of the working directory."""

    async def main() -> None:
        async with stage([[local_shell_call(["ls", "a b"])], [message("done")]], form="local_shell") as on:
            (on.workdir / "a b").write_text("")
            events = await on.run()
            assert [event.commands for event in events if isinstance(event, CallRequested)] == [("ls 'a b'",)]
            assert "a b" in texts(events)[0]

    asyncio.run(main())


def test_what_the_server_keeps_is_not_sent_again(stage: OpenStage) -> None:
    """Issue 4.2, `previous_response_id`: a request holds only what is new."""

    async def main() -> None:
        async with stage([[run_shell("true")], [message("a")], [message("b")]]) as on:
            await on.run("one")
            await on.run("two")
            first, second, third = on.server.model.requests
            assert first["input"] == [{"role": "user", "content": "one"}]
            assert [item["type"] for item in second["input"]] == ["function_call_output"]
            assert third["input"] == [{"role": "user", "content": "two"}]
            assert "previous_response_id" not in first
            assert second["previous_response_id"] != third["previous_response_id"]

    asyncio.run(main())


@pytest.mark.parametrize("stream", [True, False])
def test_stateless(stage: OpenStage, stream: bool) -> None:
    """Issue 4.2, stateless input: the server keeps nothing and is sent all, the model's encrypted thoughts included."""

    async def main() -> None:
        script = [[reasoning("sealed"), run_shell("true", "c1")], [message("done")]]
        async with stage(script, stateless=True, stream=stream) as on:
            await on.run()
            first, second = on.server.model.requests
            assert first["store"] is second["store"] is False
            assert first["include"] == ["reasoning.encrypted_content"]
            assert "previous_response_id" not in second
            kinds = [item.get("type", item.get("role")) for item in second["input"]]
            assert kinds == ["user", "reasoning", "function_call", "function_call_output"]
            assert second["input"][1]["encrypted_content"] == "sealed"

    asyncio.run(main())


@APIS
def test_a_turn_limit(stage: OpenStage, api: str) -> None:
    """Issue 4.2: after `max_turns` replies it stops, with every call answered; the next run goes on."""

    async def main() -> None:
        script = [[run_shell("echo 1")], [run_shell("echo 2")], [message("done")]]
        async with stage(script, api=api, max_turns=2) as on:
            assert await on.ends() == Stopped(reason="turns")
            assert await on.ends("go on") == Stopped(reason="done", text="done")

    asyncio.run(main())


@APIS
def test_a_budget_of_tokens(stage: OpenStage, api: str) -> None:
    """Issue 4.2: when the tokens are used up, no request is made any more, and the calls so far are answered."""

    async def main() -> None:
        script = [[run_shell("echo 1")], [run_shell("echo 2")], [message("done")]]
        async with stage(script, api=api, max_tokens=240) as on:
            events = await on.run()
            assert events[-1] == Stopped(reason="tokens")
            assert len(texts(events)) == 2
            assert (await on.ends("go on")).reason == "tokens"
            assert len(on.server.model.requests) == 2

    asyncio.run(main())


def test_tokens_of_others_count(stage: OpenStage) -> None:
    """Issue 4.3: what a sub-agent has used is charged to the budget."""

    async def main() -> None:
        async with stage([[message("done")]], max_tokens=240) as on:
            on.agent.charge(200, 40)
            assert await on.ends() == Stopped(reason="tokens")
            assert on.agent.usage == Usage(total_input_tokens=200, total_output_tokens=40)

    asyncio.run(main())


async def _yes(request: ApprovalRequest) -> Decision:
    return Decision(approved=True)


async def _no(request: ApprovalRequest) -> Decision:
    return Decision(approved=False, reason="not today")


async def _edits(request: ApprovalRequest) -> Decision:
    return Decision(approved=True, command="echo edited")


async def _fails(request: ApprovalRequest) -> Decision:
    raise OSError("the window is closed")


async def _gives_up(request: ApprovalRequest) -> Decision:
    raise asyncio.CancelledError


async def _bool(request: ApprovalRequest) -> Decision:
    return True  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("approver", "told", "runs"),
    [
        (_yes, "asked\n", True),
        (_edits, "edited\n", True),
        (_no, "The reason: not today.", False),
        (_fails, "asking for approval failed (OSError)", False),
        (_gives_up, "asking for approval was broken off", False),
        (_bool, "asking for approval failed (TypeError)", False),
    ],
)
def test_approval_is_shown(stage: OpenStage, approver: Any, told: str, runs: bool) -> None:
    """Issue 4.2: an approval is an event, what was answered too; a refusal goes back to the model, the loop goes on."""

    async def main() -> None:
        script = [[run_shell("echo asked")], [message("done")]]
        async with stage(script, tool={"approval": "always", "approver": approver}) as on:
            events = await on.run()
            asked, given = (e for e in events if isinstance(e, ApprovalAsked | ApprovalGiven))
            assert isinstance(asked, ApprovalAsked)
            assert isinstance(given, ApprovalGiven)
            assert asked.request.command == "echo asked"
            assert given.decision.approved is runs
            assert told in texts(events)[0]
            assert ("exit code 0" in texts(events)[0]) is runs
            assert events[-1] == Stopped(reason="done", text="done")

    asyncio.run(main())


def test_the_approver_is_asked_after_it_was_shown(stage: OpenStage) -> None:
    """Issue 4.2, so that a UI can be built on it: the work waits until an event has been dealt with."""
    order: list[str] = []

    async def approver(request: ApprovalRequest) -> Decision:
        order.append("asked")
        return Decision(approved=True)

    async def main() -> None:
        script = [[run_shell("echo 1")], [message("done")]]
        async with stage(script, tool={"approval": "always", "approver": approver}) as on:
            async for event in on.agent.run("go"):
                await asyncio.sleep(0)
                order.append(type(event).__name__)
        assert order.index("asked") == order.index("ApprovalAsked") + 1

    asyncio.run(main())


def test_nobody_to_ask_and_a_policy(stage: OpenStage) -> None:
    """Issue 4.2: what the policy denies, and what nobody is there to approve, is told to the model."""

    async def main() -> None:
        script = [[run_shell("ls"), run_shell("touch made")], [message("done")]]
        async with stage(script, tool={"approval": "policy", "policy": READ_ONLY}) as on:
            events = await on.run()
            assert not [event for event in events if isinstance(event, ApprovalAsked)]
            assert "exit code 0" in texts(events)[0]
            assert "nobody is there to give it" in texts(events)[1]
            assert not list(on.workdir.iterdir())
            assert events[-1] == Stopped(reason="done", text="done")

    asyncio.run(main())


def test_instructions(stage: OpenStage) -> None:
    """Issue 4.2: the model is told of the shell it has; what the caller says instead is sent as it is."""

    async def main() -> None:
        async with stage([[message("a")]], instructions=None) as on:
            await on.run()
            request = on.server.model.requests[0]
            assert "run_shell" in request["instructions"]
            assert "bash" in request["tools"][0]["description"]
            assert request["tools"][0]["strict"] is True
        async with stage([[message("a")]], api="chat") as on:
            await on.run()
            assert on.server.model.requests[0]["messages"][0] == {"role": "system", "content": "Be brief."}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"api": "completions"}, "'responses' or 'chat'"),
        ({"form": "bash"}, "'function', 'shell'"),
        ({"api": "chat", "form": "shell"}, "form='function'"),
        ({"form": "hosted"}, "takes no tool"),
    ],
)
def test_impossible_combinations(stage: OpenStage, options: dict[str, Any], remedy: str) -> None:
    """House rule, errors name the remedy: what cannot be is refused before anything is sent."""

    async def main() -> None:
        async with stage([], **options):
            pass

    with pytest.raises(ValueError, match=remedy):
        asyncio.run(main())


def test_one_run_at_a_time(stage: OpenStage) -> None:
    """G1: an agent is one conversation; a second run while one is open is refused with the remedy."""

    async def main() -> None:
        async with stage([[message("a")], [message("b")]]) as on:
            first = on.agent.run("one")
            await anext(first)
            with pytest.raises(RuntimeError, match="aclosing"):
                await anext(on.agent.run("two"))
            await first.aclose()
            assert (await on.ends("three")).text == "b"

    asyncio.run(main())


def test_a_slow_reader_loses_output_and_nothing_else(stage: OpenStage) -> None:
    """E1: output that the reader of the events has no time for is left out and counted, never kept without bound."""
    size = 8 << 20

    async def main() -> None:
        command = f"head -c {size} /dev/zero | tr '\\0' x; touch written; echo; sleep 0.1; echo end"
        async with stage([[run_shell(command)], [message("done")]]) as on:
            shown: list[OutputChunk] = []
            async for event in on.agent.run("go"):
                if isinstance(event, OutputChunk):
                    shown.append(event)
                    while not (on.workdir / "written").exists():
                        await asyncio.sleep(0.001)
            assert sum(len(chunk.text) for chunk in shown) < size
            assert sum(chunk.lost for chunk in shown) > 0
            assert event == Stopped(reason="done", text="done")

    asyncio.run(main())


def test_agents_are_made_without_a_loop() -> None:
    """House style: making an agent starts nothing and loads no client of its own."""
    import openai

    from shellkit import LocalExecutor

    with LocalExecutor().sync() as shell:
        tool = shell.executor.as_tool(approval="never", acknowledge_unsafe=True)
        assert Agent(openai.OpenAI(api_key="x"), "m", tool).text == ""


def test_runs_on_several_loops(openai_server: Any) -> None:
    """G2: with a blocking client, each run may be on another event loop; shell and conversation are the same."""
    import openai

    from shellkit import LocalExecutor

    server = openai_server([[run_shell("X=1")], [message("a")], [run_shell("echo $X")], [message("b")]])

    async def run(agent: Agent) -> list[Event]:
        return [event async for event in agent.run("go")]

    with openai.OpenAI(base_url=server.base_url, api_key="x") as client, LocalExecutor(shell="bash").sync() as shell:
        tool = shell.executor.as_tool(approval="never", acknowledge_unsafe=True)
        agent = Agent(client, "m", tool)
        asyncio.run(run(agent))
        events = asyncio.run(run(agent))
    assert texts(events)[0].startswith("1\n")
    assert events[-1] == Stopped(reason="done", text="b")
