"""What the client's exceptions mean: one line, the remedy in it, the key never."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest

from shellkit.agent.client import BrokenReply, Client, explain

REQUEST = httpx2.Request("POST", "http://server/v1/responses")


def status_error(status: int, message: str = "said so", code: str | None = None) -> Exception:
    body = {"error": {"message": message, "code": code}}
    response = httpx2.Response(status, request=REQUEST, content=json.dumps(body))
    return openai.OpenAI(api_key="x")._make_status_error_from_response(response)


@pytest.mark.parametrize(
    ("error", "told", "misconfigured"),
    [
        (status_error(401, "Incorrect API key provided: sk-secret"), "set OPENAI_API_KEY", True),
        (status_error(403), "ask for access", True),
        (status_error(404), "has no model 'gpt', or not this API (said so)", True),
        (status_error(405), "check the model's name and the base URL", True),
        (status_error(400, "no such model", "model_not_found"), "has no model 'gpt'", True),
        (status_error(400, "too long", "context_length_exceeded"), "begin a new one", False),
        (status_error(400), "answers 400 (said so); change what is asked", False),
        (status_error(429), "wait, then try again", False),
        (status_error(503, "<html>\n<body>Oops"), "answers 503 (a page of HTML); try again later", False),
        (openai.APITimeoutError(REQUEST), "did not answer in time", False),
        (openai.APIConnectionError(request=REQUEST), "broke before the reply was whole", False),
        (openai.APIError("on\ntwo lines", REQUEST, body=None), "failed (on two lines); try again", False),
        (openai.OpenAIError("x" * 2000), "xxx...", False),
        (BrokenReply("it holds nothing"), "it holds nothing", False),
        (BrokenReply("no API", misconfigured=True), "no API", True),
        (json.JSONDecodeError("Expecting value", "", 0), "JSONDecodeError", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_explained(error: Exception, told: str, misconfigured: bool) -> None:
    """Issue 4, bad input: each failure is one line that names the remedy."""
    failure = explain(error, base_url="http://server/v1/", model="gpt")
    assert told in failure.text
    assert failure.misconfigured is misconfigured
    assert "http://server/v1/" in failure.text
    assert "\n" not in failure.text
    assert "sk-secret" not in failure.text
    assert len(failure.text) < 800


@pytest.mark.parametrize("key", ["sk-secret\r", "sk-secret\n", " sk-secret", "sk-secret\u201d"])
def test_a_key_that_is_no_header(key: str) -> None:
    """Issue 4.4, the key is never printed: h11 quotes a header that it refuses, as of a file with CRLF line ends."""

    async def main() -> None:
        async with openai.AsyncOpenAI(api_key=key, base_url="http://127.0.0.1:1/v1", max_retries=0) as client:
            with pytest.raises(Exception) as caught:
                await client.responses.create(model="m", input="x")
            failure = explain(caught.value, base_url="http://127.0.0.1:1/v1/", model="m")
            assert "sk-secret" not in failure.text
            assert failure.misconfigured

    asyncio.run(main())


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
