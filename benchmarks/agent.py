"""What the agent's loop adds to a turn: a request to a scripted model on loopback, and `true` in the shell.

The yardstick is the same request by the bare client and the same command by `run`, one after the other.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, get_args

import openai

from shellkit import LocalExecutor
from shellkit.adapters.openai_tools import function_tool
from shellkit.agent import Agent, CallFinished, Stopped
from shellkit.agent.briefing import Api
from shellkit.testing.loopback import serve
from shellkit.testing.scripted_model import Item, ScriptedModel, function_call, message

from .measure import Row, Times, alternate_async, report

_CALLS = 40
_CALL = {"command": "true", "timeout": None, "workdir": None}


def _script(body: dict[str, Any]) -> list[Item]:
    """Ask for a command first, and have done when its output comes."""
    said = body["input"] if "input" in body else body["messages"]
    if said[-1].get("type") == "function_call_output" or said[-1].get("role") == "tool":
        return [message("done")]
    return [function_call("run_shell", _CALL)]


async def _measure(api: Api, stream: bool) -> Times:
    with serve(ScriptedModel(_script)) as base_url:
        async with (
            openai.AsyncOpenAI(base_url=base_url, api_key="none") as client,
            LocalExecutor(shell="bash") as shell,
        ):
            tool = shell.as_tool(approval="never", acknowledge_unsafe=True)
            await tool.probe()

            async def agent() -> None:
                # A new conversation each time: in Chat a request grows with its history, and so would both sides.
                talk = Agent(client, "scripted", tool, api=api, stream=stream, instructions="Be brief.")
                last = [event async for event in talk.run("go") if isinstance(event, CallFinished | Stopped)]
                assert len(last) == 2, last

            options: dict[str, Any] = {"model": "scripted", "stream": stream, "tools": [function_tool(tool, api=api)]}
            bare = _bare_chat(client, options) if api == "chat" else _bare_responses(client, options)

            async def yardstick() -> None:
                await bare(False)
                await shell.run("true")
                await bare(True)

            return await alternate_async({"agent": agent, "bare": yardstick}, calls=_CALLS)


def _bare_responses(client: openai.AsyncOpenAI, options: dict[str, Any]) -> Callable[[bool], Awaitable[None]]:
    async def ask(answered: bool) -> None:
        given: Any = {"role": "user", "content": "go"}
        before: dict[str, Any] = {}
        if answered:
            given = {"type": "function_call_output", "call_id": previous[1], "output": "[no output]"}
            before = {"previous_response_id": previous[0]}
        reply: Any = await client.responses.create(input=[given], instructions="Be brief.", **options, **before)
        if options["stream"]:
            *_, last = [event async for event in reply]
            reply = last.response
        previous[:] = [reply.id, getattr(reply.output[0], "call_id", "")]

    previous: list[str] = []
    return ask


def _bare_chat(client: openai.AsyncOpenAI, options: dict[str, Any]) -> Callable[[bool], Awaitable[None]]:
    async def ask(answered: bool) -> None:
        messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}]
        if answered:
            call = {"id": "c", "type": "function", "function": {"name": "run_shell", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": "c", "content": "[no output]"})
        reply: Any = await client.chat.completions.create(messages=messages, **options)
        if options["stream"]:
            async for _ in reply:
                pass

    return ask


def main() -> bool:
    """Measure and report."""
    rows = []
    for api in get_args(Api):
        for stream in (True, False):
            times = asyncio.run(_measure(api, stream))
            rows.append(
                Row(
                    what=f"agent: a task of two replies and `true`, {api}, {'streamed' if stream else 'whole'}",
                    yardstick="the bare client's requests and run() of the same command",
                    value=times.ratio("agent", "bare"),
                    bound=2.0,
                    aim=1.3,
                    detail=f"agent {times.median('agent') * 1e3:.2f} ms, bare {times.median('bare') * 1e3:.2f} ms: "
                    f"{times.difference('agent', 'bare') / 2 * 1e6:.0f} us a turn; "
                    f"rounds {times.spread('agent', 'bare')} x",
                )
            )
    return report("agent", rows)


if __name__ == "__main__":
    sys.exit(not main())
