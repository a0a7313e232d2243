"""What the client's exceptions mean: one line, the remedy in it, the key never."""

from __future__ import annotations

import asyncio
import json

import httpx2
import openai
import pytest

from shellkit.agent.client import BrokenReply
from shellkit.agent.failures import explain

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
