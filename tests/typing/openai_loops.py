"""How users put a shell into their own loop on the openai package, for the type checker only: nothing runs it."""

from __future__ import annotations

from typing import Any, assert_type

from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from shellkit.adapters.openai_responses import answer, call_output, needs_answer, refusal
from shellkit.adapters.openai_tools import (
    Container,
    DomainSecret,
    NetworkPolicy,
    function_tool,
    hosted_shell_tool,
    local_shell_tool,
    shell_tool,
)
from shellkit.agent import Agent, Event
from shellkit.testing.loopback import serve
from shellkit.testing.scripted_model import Failure, Hang, ScriptedModel, message, shell_call
from shellkit.tool import ShellTool, Tool, ToolOutput


async def responses(client: AsyncOpenAI, tool: ShellTool) -> str:
    tools = [shell_tool()]
    response = await client.responses.create(model="m", input="go", tools=tools)
    while calls := [item for item in response.output if needs_answer(item)]:
        outputs = [await answer(tool, call, on_output=print) for call in calls]
        response = await client.responses.create(
            model="m", input=outputs, previous_response_id=response.id, tools=[function_tool(tool), local_shell_tool()]
        )
    return response.output_text


async def chat(client: OpenAI, tool: ShellTool) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "go"}]
    reply = client.chat.completions.create(model="m", messages=messages, tools=[function_tool(tool, "chat")])
    for call in reply.choices[0].message.tool_calls or ():
        messages.append(await answer(tool, call))


async def several(client: AsyncOpenAI, tools: tuple[Tool, ...]) -> None:
    agent = Agent(client, "m", tools)
    async for event in agent.run("go"):
        assert_type(event, Event)
    response = await client.responses.create(model="m", input="go", tools=[function_tool(tool) for tool in tools])
    for call in filter(needs_answer, response.output):
        await answer(tools, call)


async def by_hand(item: dict[str, Any], output: ToolOutput) -> None:
    assert_type(call_output(item, [output], status="incomplete"), dict[str, Any])
    assert_type(refusal(item, "not today"), dict[str, Any])


def hosted(client: OpenAI) -> None:
    container = Container(
        memory_limit="4g", network=NetworkPolicy(["a.example"], [DomainSecret("a.example", "T", "s")])
    )
    client.responses.create(model="m", input="go", tools=[hosted_shell_tool(container), hosted_shell_tool("cntr_1")])
    Container(memory_limit="2g")  # type: ignore[arg-type]


def script() -> None:
    model = ScriptedModel([[shell_call("ls", timeout_ms=5), message("done")], Failure(429), Hang()], delay=0.1)
    with serve(model) as base_url:
        assert_type(base_url, str)
    ScriptedModel(lambda body: [message(body["input"])]).close()
