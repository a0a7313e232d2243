"""Cancelling: the command ends first, then the turn; the history has no open call and the next run goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest

from shellkit.agent import (
    CallFinished,
    CallRequested,
    Event,
    Message,
    OutputChunk,
    Stopped,
    TextDelta,
)
from shellkit.policy import ApprovalRequest, Decision
from shellkit.testing.scripted_model import Hang, function_call, message, shell_call

APIS = pytest.mark.parametrize("api", ["responses", "chat"])
#: How whoever reads the events may end it.
ENDINGS = ("stop", "aclose", "cancel", "drop")


def run_shell(command: str, call_id: str | None = None) -> dict[str, Any]:
    return function_call("run_shell", {"command": command, "timeout": None, "workdir": None}, call_id)


async def goes_on(on: Any) -> bool:
    """Return whether conversation and session are usable: the server refuses a history with an open call."""
    last = await on.ends("go on")
    assert last == Stopped(reason="done", text="fine"), last
    return await on.usable()


async def ended_at(on: Any, ending: str, number: int) -> list[Event]:
    """Run, and end it while event `number` is being dealt with; return the events that were seen."""
    seen: list[Event] = []

    async def read() -> None:
        async with contextlib.aclosing(on.agent.run("go")) as events:
            async for event in events:
                seen.append(event)
                if len(seen) == number + 1:
                    if ending == "stop":
                        on.agent.stop()
                    elif ending == "aclose":
                        return
                    elif ending == "cancel":
                        reader.cancel()
                        await asyncio.sleep(0)
                    elif ending == "drop":
                        raise LookupError

    reader = asyncio.create_task(read())
    with contextlib.suppress(asyncio.CancelledError, LookupError):
        await reader
    return seen


@pytest.mark.slow
@APIS
@pytest.mark.parametrize("ending", ENDINGS)
def test_at_every_event(stage: Any, api: str, ending: str) -> None:
    """Issue 4.2, cancellation: at whatever event a run is ended, no call stays open and nothing later runs.

    A conversation for each event.
    """

    async def approver(request: ApprovalRequest) -> Decision:
        return Decision(approved=True)

    async def main() -> None:
        gate = {"approval": "always", "approver": approver}
        calls = [message("Both."), run_shell("echo 1; touch a", "c1"), run_shell("echo 2; touch b", "c2")]
        async with stage([calls, [message("fine")]], api=api, tool=gate) as on:
            every = len(await on.run())
        for number in range(every - 1):
            async with stage([calls, [message("fine")], [message("fine")]], api=api, tool=gate) as on:
                for name in ("a", "b"):
                    (on.workdir / name).unlink(missing_ok=True)
                seen = await ended_at(on, ending, number)
                assert len(seen) == number + 1 + (ending == "stop")
                if ending == "stop":
                    assert isinstance(seen[-1], Stopped)
                    assert seen[-1].reason == "cancelled"
                finished = [event.call_id for event in seen if isinstance(event, CallFinished)]
                requested = [event.call_id for event in seen if isinstance(event, CallRequested)]
                assert await goes_on(on)
                for name, call_id in (("a", "c1"), ("b", "c2")):
                    told = on.told(call_id)
                    if call_id in finished:
                        assert (on.workdir / name).exists()
                        assert "exit code 0" in told
                    elif call_id not in requested:
                        assert not (on.workdir / name).exists()
                        assert told in ("", "Not run: the turn was cancelled.")

    asyncio.run(main())


@APIS
@pytest.mark.parametrize("ending", ENDINGS)
def test_while_a_command_runs(stage: Any, api: str, ending: str) -> None:
    """F6: the command has ended when the run has; the model is told so, and what it printed."""

    async def main() -> None:
        calls = [run_shell("touch began; echo half; sleep 100; touch late", "c1"), run_shell("touch other", "c2")]
        async with stage([calls, [message("fine")]], api=api) as on:
            seen: list[Event] = []

            async def read() -> None:
                async with contextlib.aclosing(on.agent.run("go")) as events:
                    async for event in events:
                        seen.append(event)
                        if isinstance(event, OutputChunk) and ending in ("aclose", "drop"):
                            return

            reader = asyncio.create_task(read())
            while not any(isinstance(event, OutputChunk) for event in seen):
                await asyncio.sleep(0.001)
            if ending == "stop":
                on.agent.stop()
            elif ending == "cancel":
                reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            assert (on.workdir / "began").exists()
            assert await goes_on(on)
            told = json.dumps(on.sent())
            assert "half" in told
            assert "the turn was cancelled. What it had changed until then stays changed" in told
            assert "Not run: the turn was cancelled." in told
            assert sorted(path.name for path in on.workdir.iterdir()) == ["began"]

    asyncio.run(main())


@APIS
def test_stopping_at_a_call_that_comes_twice(stage: Any, api: str) -> None:
    """Issue 4, must hold, duplicate call: both have the one output, also when the turn is cancelled between them."""

    async def main() -> None:
        twice = [run_shell("echo x >> log; cat log", "c1")] * 2
        async with stage([twice, [message("fine")]], api=api) as on:
            async for event in on.agent.run("go"):
                if isinstance(event, CallFinished):
                    on.agent.stop()
            assert event == Stopped(reason="cancelled")
            assert await goes_on(on)
            assert on.told("c1").startswith("x\n[exit code 0")
            assert (on.workdir / "log").read_text() == "x\n"

    asyncio.run(main())


@APIS
def test_interrupting_the_command_only(stage: Any, api: str) -> None:
    """Issue 4.4, Ctrl-C: `cancel` ends the running command; the model is told, and the turn goes on."""

    async def main() -> None:
        script = [[run_shell("echo half; sleep 100", "c1"), run_shell("echo other", "c2")], [message("fine")]]
        async with stage(script, api=api) as on:
            assert on.agent.cancel() is False
            told = []
            async for event in on.agent.run("go"):
                if isinstance(event, OutputChunk) and event.text == "half\n":
                    assert on.agent.cancel() is True
                if isinstance(event, CallFinished):
                    told.append(event.output.text)
            assert told[0].startswith("[stdout, its end]\nhalf\n")
            assert "the user interrupted it" in told[0]
            assert told[1].startswith("other\n")
            assert event == Stopped(reason="done", text="fine")
            assert await on.usable()

    asyncio.run(main())


def test_interrupting_twice(stage: Any) -> None:
    """Issue 4.4, Ctrl-C: the command first and the turn second, also while the command is still being ended."""

    async def main() -> None:
        script = [[run_shell("trap '' INT TERM; echo half; while :; do sleep 1; done", "c1")], [message("fine")]]
        async with stage(script) as on:
            async for event in on.agent.run("go"):
                if isinstance(event, OutputChunk) and event.text == "half\n":
                    assert on.agent.cancel() is True
                    assert on.agent.cancel() is False
                    on.agent.stop()
            assert event == Stopped(reason="cancelled")
            assert await goes_on(on)

    asyncio.run(main())


def test_interrupting_one_of_several_commands(stage: Any) -> None:
    """Issue 4.4: of a `shell` call with several commands, the one that runs is interrupted; the next one runs."""

    async def main() -> None:
        script = [[shell_call("echo half; sleep 100", "echo other", call_id="c1")], [message("fine")]]
        async with stage(script, form="shell") as on:
            async for event in on.agent.run("go"):
                if isinstance(event, OutputChunk) and event.text == "half\n":
                    assert on.agent.cancel() is True
            first, second = on.sent()[0]["output"]
            assert "the user interrupted it" in first["stderr"]
            assert first["outcome"]["exit_code"] != 0
            assert second["stdout"] == "other\n"

    asyncio.run(main())


def test_stopping_between_the_commands_of_a_call(stage: Any) -> None:
    """Issue 4.2: commands of a call that had ended keep their outputs when the turn is cancelled."""

    async def main() -> None:
        call = shell_call("echo one", "echo two; sleep 100", "echo three", call_id="c1")
        async with stage([[call], [message("fine")]], form="shell") as on:
            async for event in on.agent.run("go"):
                if isinstance(event, OutputChunk) and event.text == "two\n":
                    on.agent.stop()
            assert event == Stopped(reason="cancelled")
            assert await goes_on(on)
            first, second, third = next(item for item in on.sent() if "output" in item)["output"]
            assert (first["stdout"], first["outcome"]["exit_code"]) == ("one\n", 0)
            assert "two" in second["stderr"]
            assert third["stderr"] == "Not run: the turn was cancelled."

    asyncio.run(main())


@pytest.mark.parametrize("ending", ["interrupt", "stop"])
def test_while_approval_is_waited_for(stage: Any, ending: str) -> None:
    """Issue 4.4: an approval that is waited for is given up, and the command does not run."""
    asked = asyncio.Event()

    async def approver(request: ApprovalRequest) -> Decision:
        asked.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def main() -> None:
        script = [[run_shell("touch made", "c1")], [message("fine")], [message("fine")]]
        async with stage(script, tool={"approval": "always", "approver": approver}) as on:
            run = asyncio.create_task(on.run())
            await asked.wait()
            assert on.agent.cancel() if ending == "interrupt" else on.agent.stop() is None
            events = await run
            if ending == "interrupt":
                assert [e.output.text for e in events if isinstance(e, CallFinished)] == [
                    "Not run: the user interrupted it."
                ]
                assert events[-1] == Stopped(reason="done", text="fine")
            else:
                assert events[-1] == Stopped(reason="cancelled")
                assert await goes_on(on)
                assert "Not run: the turn was cancelled." in json.dumps(on.sent())
            assert not list(on.workdir.iterdir())

    asyncio.run(main())


@APIS
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("ending", ["stop", "cancel"])
def test_while_the_model_is_silent(stage: Any, api: str, stream: bool, after: int, ending: str) -> None:
    """Issue 4.2: a model that never answers can be stopped, before its reply and in the middle."""

    async def main() -> None:
        script = [Hang([message("one two three"), run_shell("touch made")], after=after), [message("fine")]]
        async with stage(script, api=api, stream=stream) as on:
            seen: list[Event] = []

            async def read() -> None:
                async for event in on.agent.run("go"):
                    seen.append(event)

            reader = asyncio.create_task(read())
            while not on.server.model.requests:
                await asyncio.sleep(0.001)
            while stream and after and not any(isinstance(event, TextDelta) for event in seen) and api == "chat":
                await asyncio.sleep(0.001)
            assert on.agent.cancel() is False
            on.agent.stop() if ending == "stop" else reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            assert not any(isinstance(event, Message) for event in seen)
            assert seen[-1:] == ([Stopped(reason="cancelled")] if ending == "stop" else seen[-1:])
            assert await goes_on(on)
            assert not list(on.workdir.iterdir())

    asyncio.run(main())


@pytest.mark.parametrize("stream", [True, False])
def test_a_blocking_client_lets_go(stage: Any, stream: bool) -> None:
    """`agent.client`: with a blocking client the run ends at once, its thread when the server answers."""

    async def main() -> None:
        async with stage([Hang([message("never")], after=1), [message("fine")]], blocking=True, stream=stream) as on:
            run = asyncio.create_task(on.run())
            while not on.server.model.requests:
                await asyncio.sleep(0.001)
            on.agent.stop()
            assert (await run)[-1] == Stopped(reason="cancelled")
            assert await goes_on(on)
            on.server.model.close()

    asyncio.run(main())


@pytest.mark.slow
def test_ending_is_not_hurried(stage: Any) -> None:
    """F6: however often the reader is cancelled, the run is over only when the command is.

    A command that ignores what it is asked has a grace of two seconds.
    """

    async def main() -> None:
        script = [[run_shell("trap '' INT TERM; echo on; sleep 100 & wait; wait; touch late", "c1")], [message("fine")]]
        async with stage(script) as on:
            seen: list[Event] = []

            async def read() -> None:
                async for event in on.agent.run("go"):
                    seen.append(event)

            reader = asyncio.create_task(read())
            while not any(isinstance(event, OutputChunk) for event in seen):
                await asyncio.sleep(0.001)
            for _ in range(20):
                reader.cancel()
                await asyncio.sleep(0.001)
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            assert await goes_on(on)
            assert not (on.workdir / "late").exists()

    asyncio.run(main())


def test_stopping_before_anything_began(stage: Any) -> None:
    """Issue 4.2: stopping an agent that does nothing is nothing; stopping one that has just begun ends it."""

    async def main() -> None:
        async with stage([[message("fine")]]) as on:
            on.agent.stop()
            run = asyncio.create_task(on.run())
            await asyncio.sleep(0)
            on.agent.stop()
            assert await run == [Stopped(reason="cancelled")]
            assert await goes_on(on)

    asyncio.run(main())


def test_events_that_nobody_closes(stage: Any) -> None:
    """F6: leaving the events without closing them ends the run when they are garbage, the command first."""

    async def main() -> None:
        calls = [run_shell("echo on; sleep 100; touch late", "c1")]
        async with stage([calls, [message("fine")]]) as on:
            async for event in on.agent.run("go"):
                if isinstance(event, OutputChunk):
                    break
            while on.agent._feed is not None:
                await asyncio.sleep(0.001)
            assert await goes_on(on)
            assert "the turn was cancelled" in on.told("c1")
            assert not (on.workdir / "late").exists()

    asyncio.run(main())
