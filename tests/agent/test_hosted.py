"""The hosted shell: its container is made, kept, made again; its files are read; nothing runs here."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import openai
import pytest

from shellkit.adapters.openai_tools import Container, NetworkPolicy
from shellkit.agent import (
    Agent,
    CallFinished,
    CallRequested,
    Event,
    HostedFile,
    HostedShell,
    OutputChunk,
    Stopped,
    Transcript,
)
from shellkit.testing.openai_server import OpenAIServer
from shellkit.testing.scripted_model import message, shell_call, shell_call_output

BOTH = pytest.mark.parametrize(("stream", "blocking"), [(s, b) for s in (True, False) for b in (True, False)])


@attrs.frozen
class Hosted:
    """An agent whose commands run elsewhere."""

    agent: Agent
    shell: HostedShell
    server: OpenAIServer
    client: Any

    async def run(self, task: str = "go") -> list[Event]:
        return [event async for event in self.agent.run(task)]

    @property
    def paths(self) -> list[str]:
        """What the server was asked, in order."""
        return [f"{request['method']} {request['path'].removeprefix('/v1')}" for request in self.server.model.requests]


@pytest.fixture
def hosted(openai_server: Any) -> Any:
    """Return a function that sets an agent with a hosted shell up."""

    @contextlib.asynccontextmanager
    async def opened(
        script: Any, *, blocking: bool = False, stream: bool = True, **options: Any
    ) -> AsyncIterator[Hosted]:
        server = openai_server(script)
        kind = openai.OpenAI if blocking else openai.AsyncOpenAI
        client: Any = kind(base_url=server.base_url, api_key="x", max_retries=0)
        try:
            async with HostedShell(client, **options) as shell:
                agent = Agent(client, "m", None, form="hosted", hosted=shell, stream=stream)
                yield Hosted(agent, shell, server, client)
        finally:
            client.close() if blocking else await client.close()

    return opened


def ran(command: str, stdout: str, container: str = "cntr_1", **outcome: Any) -> list[dict[str, Any]]:
    """Return the items of a command that the server has run."""
    return [shell_call(command, call_id="c1", container_id=container), shell_call_output("c1", stdout, **outcome)]


@BOTH
def test_a_conversation(hosted: Any, stream: bool, blocking: bool) -> None:
    """Issue 4.5: the container is made once, used by every request, and deleted at the end; its events are like ours."""

    async def main() -> None:
        script = [[*ran("ls /mnt/data", "a.txt\n", exit_code=3), message("One.")], [message("Yes.")]]
        async with hosted(script, stream=stream, blocking=blocking) as on:
            events = await on.run()
            requested = [event for event in events if isinstance(event, CallRequested)]
            finished = [event for event in events if isinstance(event, CallFinished)]
            assert [(event.name, event.commands) for event in requested] == [("shell", ("ls /mnt/data",))]
            assert finished[0].output.result.stdout == "a.txt\n"
            assert finished[0].output.result.exit_code == 3
            assert events[-1] == Stopped(reason="done", text="One.")
            await on.run()
            assert [path for path in on.paths if not path.startswith("GET")] == [
                "POST /containers",
                *("POST /responses", "POST /responses"),
            ]
            for request in on.server.model.requests:
                if request["path"].endswith("/responses"):
                    environment = {"type": "container_reference", "container_id": "cntr_1"}
                    assert request["tools"] == [{"type": "shell", "environment": environment}]
        assert on.paths[-1] == "DELETE /containers/cntr_1"

    asyncio.run(main())


def test_what_the_container_is_like(hosted: Any) -> None:
    """Issue 4.1 and 4.5: memory, network and life time are the server's to know; a container of one's own is kept."""

    async def main() -> None:
        wanted = Container(memory_limit="4g", network=NetworkPolicy(["example.org"]))
        async with hosted([[message("a")]], container=wanted, minutes=5, name="mine") as on:
            await on.run()
            made = on.server.model.requests[0]
            assert (made["name"], made["memory_limit"]) == ("mine", "4g")
            assert made["network_policy"] == {"type": "allowlist", "allowed_domains": ["example.org"]}
            assert made["expires_after"] == {"anchor": "last_active_at", "minutes": 5}
            async with HostedShell(on.client, container_id="cntr_1") as other:
                assert await other.ensure() is False
            assert not [path for path in on.paths if path.startswith("DELETE")]

    asyncio.run(main())


@pytest.mark.parametrize("when", ["between runs", "in a run"])
@BOTH
def test_an_expired_container(hosted: Any, when: str, stream: bool, blocking: bool) -> None:
    """Issue 4.5: an expired container is made again, the model is told that its files are gone, and the turn goes on."""

    async def main() -> None:
        script: list[Any] = [[message("a")], [*ran("ls", "", "cntr_2"), message("b")]]
        async with hosted(script, stream=stream, blocking=blocking) as on:
            await on.run()
            containers = on.server.model.containers
            if when == "between runs":
                containers.expire("cntr_1")
                events = await on.run()
            else:
                ensure, looked = on.shell.ensure, []

                async def expires_then() -> bool:
                    lost = await ensure()
                    if not looked:
                        containers.expire("cntr_1")
                    looked.append(lost)
                    return bool(lost)

                on.shell.ensure = expires_then
                events = await on.run()
                assert looked == [False, True]
            assert events[-1] == Stopped(reason="done", text="b")
            assert on.shell.container_id == "cntr_2"
            last = on.server.model.requests[-1]
            assert last["tools"][0]["environment"]["container_id"] == "cntr_2"
            assert "the container is a new one" in json.dumps(last["input"])

    asyncio.run(main())


@pytest.mark.parametrize("blocking", [True, False])
def test_files(hosted: Any, blocking: bool) -> None:
    """Issue 4.5: files are listed and downloaded through the SDK's containers API."""

    async def main() -> None:
        async with hosted([[message("a")]], blocking=blocking) as on:
            assert await on.shell.files() == []
            await on.run()
            content = bytes(range(256)) * 100
            for number in range(45):
                on.server.model.containers.add_file("cntr_1", f"/mnt/data/{number}.bin", content)
            files = await on.shell.files()
            assert [file.path for file in files] == [f"/mnt/data/{number}.bin" for number in range(45)]
            assert isinstance(files[0], HostedFile)
            assert files[0].size == len(content)
            assert await on.shell.read(files[7]) == content
            assert await on.shell.read(files[7].id) == content

    asyncio.run(main())


def test_going_on_in_a_new_container(openai_server: Any, tmp_path: Path) -> None:
    """Issue 4.4 and 4.5: a conversation that is resumed has a new container, and the model is told."""
    server = openai_server([[*ran("touch a", ""), message("a")], [message("b")]])

    async def main() -> None:
        for task, told in (("first", False), ("second", True)):
            async with openai.AsyncOpenAI(base_url=server.base_url, api_key="x", max_retries=0) as client:
                with Transcript(tmp_path / "talk") as transcript:
                    async with HostedShell(client) as shell:
                        agent = Agent(client, "m", None, form="hosted", hosted=shell, transcript=transcript)
                        *_, last = [event async for event in agent.run(task)]
            assert isinstance(last, Stopped)
            assert last.reason == "done"
            asked = next(each for each in reversed(server.model.requests) if each["path"].endswith("/responses"))
            assert ("the container is a new one" in json.dumps(asked["input"])) is told

    asyncio.run(main())


def test_output_while_it_runs(hosted: Any) -> None:
    """Issue 4.2, output chunk: what the server's container prints is shown as it comes."""

    async def main() -> None:
        async with hosted([[*ran("ls", "a.txt\n"), message("One.")]]) as on:
            chunks = [event for event in await on.run() if isinstance(event, OutputChunk)]
            assert [(chunk.call_id, chunk.stream) for chunk in chunks[:1]] == [("c1", "stdout")]
            assert "".join(chunk.text for chunk in chunks) == "a.txt\n"

    asyncio.run(main())


def test_a_server_without_containers(openai_server: Any) -> None:
    """Issue 4, bad input: what cannot be had is one line with the remedy."""
    server = openai_server([])

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.base_url}/nothing", api_key="x", max_retries=0) as client:
            events = [event async for event in Agent(client, "m", None, form="hosted").run("go")]
            assert len(events) == 1
            assert isinstance(events[0], Stopped)
            assert events[0].misconfigured
            assert "check the model's name and the base URL" in events[0].error

    asyncio.run(main())
