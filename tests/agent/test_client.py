"""Clients of either kind: what is no API, and what a cancelled call leaves."""

from __future__ import annotations

import asyncio
import contextlib
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest

from shellkit.agent.client import BrokenReply, Client


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_page_is_no_api(blocking: bool, stream: bool) -> None:
    """Issue 4, wrong base URL: a web site that answers 200 is told from the API."""
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, html="<html>Welcome</html>"))
    client: Any = (
        openai.OpenAI(api_key="x", http_client=httpx2.Client(transport=transport))
        if blocking
        else openai.AsyncOpenAI(api_key="x", http_client=httpx2.AsyncClient(transport=transport))
    )

    async def main() -> None:
        calling = Client(client)
        with pytest.raises(BrokenReply, match="check the base URL"):
            if stream:
                async for _ in calling.stream(client.responses.create, model="m", input="x"):
                    pass
            else:
                await calling.call(client.responses.create, model="m", input="x")
        client.close() if blocking else await client.close()

    asyncio.run(main())


def test_calls_that_wait_for_a_thread() -> None:
    """`agent.client`: a blocking call that is cancelled before a thread took it is never made."""
    taken, go_on, made = threading.Event(), threading.Event(), []

    def first() -> None:
        taken.set()
        go_on.wait()

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        with openai.OpenAI(api_key="x") as client:
            calling = Client(client)
            running = asyncio.create_task(calling.call(first))
            while not taken.is_set():
                await asyncio.sleep(0.001)
            waiting = asyncio.create_task(calling.call(made.append, object=1))
            await asyncio.sleep(0)
            for task in (waiting, running):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            go_on.set()

    asyncio.run(main())
    assert made == []


def test_what_an_abandoned_call_brings_is_closed() -> None:
    """`agent.client`: a connection that is opened after its caller has gone is closed by the thread."""
    taken, go_on, brought = threading.Event(), threading.Event(), io.BytesIO()

    def late() -> io.BytesIO:
        taken.set()
        go_on.wait()
        return brought

    async def main() -> None:
        with openai.OpenAI(api_key="x") as client:
            running = asyncio.create_task(Client(client).call(late))
            while not taken.is_set():
                await asyncio.sleep(0.001)
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            go_on.set()

    asyncio.run(main())
    assert brought.closed


def test_what_is_no_client() -> None:
    """Bad input: what cannot be asked is refused at once, not when the conversation has begun."""
    with openai.OpenAI(api_key="x") as client:
        for wrong in (client.with_raw_response, client.responses, "x", None):
            with pytest.raises(TypeError, match="must be an openai"):
                Client(wrong)  # type: ignore[arg-type]
