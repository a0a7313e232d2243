"""The seeds' own loops, with our part in them: the real openai package over real HTTP, a real bash behind it."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import openai

from shellkit.adapters.openai_responses import answer, needs_answer
from shellkit.adapters.openai_tools import function_tool, local_shell_tool, shell_tool
from shellkit.testing.openai_server import StartServer, openai_server
from shellkit.testing.scripted_model import function_call, local_shell_call, message, shell_call
from shellkit.tool import ShellTool

__all__ = ["openai_server"]  # a fixture


def test_list_files_with_local_shell(openai_server: StartServer, tool: ShellTool, tmp_path: Path) -> None:
    """Issue 4, seed: the `local_shell` guide's loop, with the synchronous client."""
    (tmp_path / "apple").touch()
    (tmp_path / "pear").touch()
    server = openai_server([[local_shell_call(["ls"])], [message("There are apple and pear.")]])
    with openai.OpenAI(base_url=server.base_url, api_key="any") as client:
        ask = partial(client.responses.create, model="codex-mini-latest", tools=[local_shell_tool()])
        response = ask(input="list files")
        while calls := [item for item in response.output if needs_answer(item)]:
            outputs = [asyncio.run(answer(tool, call)) for call in calls]
            response = ask(previous_response_id=response.id, input=outputs)
    assert response.output_text == "There are apple and pear."
    (sent,) = server.model.requests[1]["input"]
    assert json.loads(sent["output"])["stdout"] == "apple\npear\n"


def test_the_shell_loop_with_two_commands_one_timing_out(openai_server: StartServer, tool: ShellTool) -> None:
    """Issue 4, seed: the `shell` guide's loop, streaming and stateless, with the asynchronous client."""
    server = openai_server([[shell_call("echo begun; sleep 60", "pwd", timeout_ms=300)], [message("One was slow.")]])

    async def main() -> str:
        history: list[Any] = [{"role": "user", "content": "go"}]
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="any") as client:
            while True:
                async with client.responses.stream(
                    model="gpt-5.1", tools=[shell_tool()], input=history, store=False
                ) as stream:
                    response = await stream.get_final_response()
                calls = [item for item in response.output if needs_answer(item)]
                if not calls:
                    return response.output_text
                history += [*response.output, *[await answer(tool, call) for call in calls]]

    assert asyncio.run(main()) == "One was slow."
    user, call, output = server.model.requests[1]["input"]
    assert (user["content"], call["type"], call["call_id"]) == ("go", "shell_call", output["call_id"])
    slow, quick = output["output"]
    assert (slow["stdout"], slow["outcome"]) == ("begun\n", {"type": "timeout"})
    assert quick["outcome"] == {"type": "exit", "exit_code": 0}


def test_chat_with_a_strict_function(openai_server: StartServer, tool: ShellTool) -> None:
    """Issue 4, seed: a loop on Chat Completions, streaming, two calls in one turn."""
    calls = [function_call("run_shell", {"command": f"echo {n}", "timeout": None, "workdir": None}) for n in "ab"]
    server = openai_server([calls, [message("a and b")]])

    async def chat() -> str | None:
        messages: list[Any] = [{"role": "user", "content": "go"}]
        tools = [function_tool(tool, "chat")]
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="any") as client:
            while True:
                async with client.chat.completions.stream(model="any", messages=messages, tools=tools) as stream:
                    reply = (await stream.get_final_completion()).choices[0].message
                if not reply.tool_calls:
                    return reply.content
                messages.append({"role": "assistant", "tool_calls": [call.to_dict() for call in reply.tool_calls]})
                messages += [await answer(tool, call) for call in reply.tool_calls]

    async def main() -> str | None:
        said = await chat()
        await asyncio.sleep(0)  # the package leaves a generator of its stream to the event loop to close
        return said

    assert asyncio.run(main()) == "a and b"
    answers = [each["content"] for each in server.model.requests[1]["messages"][2:]]
    assert [text.splitlines()[0] for text in answers] == ["a", "b"]
