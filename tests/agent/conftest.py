"""An agent on a real bash, and a scripted model that it talks to over HTTP by the real client."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import attrs
import openai
import pytest

from shellkit import LocalExecutor
from shellkit.agent import Agent, Event, Stopped
from shellkit.testing.openai_server import OpenAIServer, StartServer, openai_server

__all__ = ["openai_server"]


@attrs.frozen
class Stage:
    """What a test of the agent plays on."""

    agent: Agent
    server: OpenAIServer
    shell: LocalExecutor
    workdir: Path

    async def run(self, task: str = "go") -> list[Event]:
        """Return all events of a run."""
        return [event async for event in self.agent.run(task)]

    async def ends(self, task: str = "go") -> Stopped:
        """Return the last event of a run."""
        last = (await self.run(task))[-1]
        assert isinstance(last, Stopped)
        return last

    async def usable(self) -> bool:
        """Whether the session goes on: the programmer's own door, which no gate guards."""
        return (await self.shell.run("echo fine")).stdout == "fine\n"

    def sent(self, number: int = -1) -> list[dict[str, Any]]:
        """Return what a request told the model: `input`, or `messages` without the system's."""
        request = self.server.model.requests[number]
        return request["input"] if "input" in request else request["messages"][1:]

    def told(self, call_id: str) -> str:
        """Return what the model was sent as the output of a call; "" if nothing."""
        sent = [item for number in range(len(self.server.model.requests)) for item in self.sent(number)]
        outputs = [
            item.get("output", item.get("content"))
            for item in sent
            if call_id in (item.get("call_id"), item.get("tool_call_id")) and ("output" in item or "content" in item)
        ]
        assert all(output == outputs[0] for output in outputs), "an output has changed"
        return str(outputs[0]) if outputs else ""


OpenStage = Callable[..., contextlib.AbstractAsyncContextManager[Stage]]


@pytest.fixture
def stage(openai_server: StartServer, tmp_path: Path) -> OpenStage:
    """Return a function that sets an agent up; `tool` holds options of the tool, the rest are the agent's.

    With `several` the model has all tools, those for programs too.
    """

    @contextlib.asynccontextmanager
    async def opened(
        script: Any,
        *,
        blocking: bool = False,
        retries: int = 0,
        tool: dict[str, Any] | None = None,
        several: bool = False,
        serve: dict[str, Any] | None = None,
        **options: Any,
    ) -> AsyncIterator[Stage]:
        server = openai_server(script, **(serve or {}))
        kind = openai.OpenAI if blocking else openai.AsyncOpenAI
        client: Any = kind(base_url=server.base_url, api_key="sk-secret", max_retries=retries)
        workdir = tmp_path / "work"
        workdir.mkdir(exist_ok=True)
        try:
            async with LocalExecutor(shell="bash", workdir=workdir, confinement="off") as shell:
                make: Any = shell.as_tools if several else shell.as_tool
                tools = make(**{"approval": "never", "acknowledge_unsafe": True, **(tool or {})})
                yield Stage(
                    Agent(client, "scripted", tools, **{"instructions": "Be brief.", **options}), server, shell, workdir
                )
        finally:
            client.close() if blocking else await client.close()

    return opened
