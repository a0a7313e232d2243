"""The scripted model speaks the OpenAI API as the openai package parses it, whole and streamed, on both servers."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from shellkit.testing import model_chat, model_responses
from shellkit.testing.loopback import serve
from shellkit.testing.openai_server import OpenAIServer, openai_server
from shellkit.testing.scripted_model import (
    Broken,
    Failure,
    Hang,
    ScriptedModel,
    function_call,
    local_shell_call,
    message,
    reasoning,
    shell_call,
    shell_call_output,
)

__all__ = ["openai_server"]  # a fixture

Start = Callable[..., OpenAIServer]


@pytest.fixture(params=["loopback", "pytest-httpserver"])
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """Return a function that serves a script: once by the standard library, once by pytest-httpserver."""
    if request.param != "loopback":
        yield request.getfixturevalue("openai_server")
        return
    with ExitStack() as stack:

        def begin(script: Any, **options: Any) -> OpenAIServer:
            model = ScriptedModel(script, **options)
            return OpenAIServer(stack.enter_context(serve(model)), model)

        yield begin


def client(server: OpenAIServer, **options: Any) -> openai.OpenAI:
    """Return a client of the server."""
    return openai.OpenAI(**{"base_url": server.base_url, "api_key": "any", "max_retries": 0, **options})


EVERYTHING = [
    reasoning("sealed"),
    message("Let me look.\nTwice."),
    function_call("run_shell", {"command": "ls -la", "timeout": None}),
    shell_call("ls", "cat a b", timeout_ms=500, max_output_length=10),
    shell_call("pwd", call_id="c9", container_id="cntr_1"),
    shell_call_output("c9", "/mnt\n"),
    local_shell_call(["ls", "-l"], env={"A": "1"}, working_directory="/tmp"),
]


def test_a_whole_response_is_what_the_package_parses(start: Start) -> None:
    """Issue 4.7: every item of a reply arrives as the package's own type, with ids that differ."""
    with client(start([EVERYTHING])) as api:
        answer = api.responses.create(model="scripted", input="go")
    assert [item.type for item in answer.output] == [item["type"] for item in EVERYTHING]
    assert answer.output_text == "Let me look.\nTwice."
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (100, 20, 120)
    assert len({item.id for item in answer.output}) == len(EVERYTHING)
    for item in answer.output:
        assert item.model_extra == {}


def test_a_streamed_response_is_what_the_package_parses(start: Start) -> None:
    """Issue 4.7: events are typed and numbered, end with the whole response, and hold the text in pieces."""
    with client(start([EVERYTHING])) as api:
        events = list(api.responses.create(model="scripted", input="go", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [type(event).__name__ for event in events if event.type.startswith("response.shell_call_command")][:3] == [
        "ResponseShellCallCommandAddedEvent",
        "ResponseShellCallCommandDeltaEvent",
        "ResponseShellCallCommandDoneEvent",
    ]
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Let me look.\nTwice."
    assert json.loads("".join(e.delta for e in events if e.type == "response.function_call_arguments.delta")) == {
        "command": "ls -la",
        "timeout": None,
    }
    assert events[-1].type == "response.completed"
    assert [item.type for item in events[-1].response.output] == [item["type"] for item in EVERYTHING]


def test_the_packages_own_stream_helper_accepts_it(start: Start) -> None:
    """Issue 4.7: `responses.stream` accumulates the events to the same response."""
    with client(start([EVERYTHING])) as api, api.responses.stream(model="scripted", input="go") as stream:
        for _ in stream:
            pass
        answer = stream.get_final_response()
    assert [item.type for item in answer.output] == [item["type"] for item in EVERYTHING]
    assert answer.output_text == "Let me look.\nTwice."


CHAT = [message("Two at once."), function_call("f", {"a": 1}, "c1"), function_call("g", "{not json", "c2")]


@pytest.mark.parametrize("stream", [False, True])
def test_the_same_items_make_a_chat_completion(start: Start, stream: bool) -> None:
    """Issue 4.7: text and several calls arrive in order, whole or in pieces, with the usage."""
    with client(start([CHAT])) as api:
        ask: dict[str, Any] = {"model": "scripted", "messages": [{"role": "user", "content": "go"}]}
        if stream:
            with api.chat.completions.stream(**ask, stream_options={"include_usage": True}) as events:
                answer = events.get_final_completion()
        else:
            answer = api.chat.completions.create(**ask)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Two at once."
    calls = choice.message.tool_calls or []
    assert [(c.id, c.function.name, c.function.arguments) for c in calls] == [
        ("c1", "f", '{"a": 1}'),
        ("c2", "g", "{not json"),
    ]
    assert answer.usage is not None
    assert answer.usage.total_tokens == 120


def test_an_async_client_sees_a_stream_as_it_comes(start: Start) -> None:
    """Issue 4.7: the first event of a reply is there while the server still holds back the rest."""

    async def main() -> Any:
        server = start([Hang([message("one two")], after=3)])
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="any", max_retries=0) as api:
            stream = await api.responses.create(model="scripted", input="go", stream=True)
            seen = [(await anext(stream)).type for _ in range(3)]
            await stream.close()
            return seen

    assert asyncio.run(main()) == ["response.created", "response.in_progress", "response.output_item.added"]


def test_a_model_that_never_answers_holds_nobody_up(start: Start) -> None:
    """Issue 4.7: a step that hangs is left by cancelling, and the server closes all the same."""

    async def main(server: OpenAIServer) -> None:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="any", max_retries=0) as api:
            asking = asyncio.ensure_future(api.responses.create(model="scripted", input="go"))
            while not server.model.requests:
                await asyncio.sleep(0.001)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(main(start([Hang()])))


@pytest.mark.parametrize("after", [0, 1, 4])
@pytest.mark.parametrize("path", ["responses", "chat"])
def test_a_dropped_stream_is_an_error_of_the_connection(start: Start, path: str, after: int) -> None:
    """Issue 4.7: the client sees that the connection broke, whether before the first event or in the middle."""
    server = start([Broken([message("one two three four five")], after=after)])
    with client(server) as api, pytest.raises(openai.APIConnectionError):
        if path == "chat":
            list(api.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True))
        else:
            list(api.responses.create(model="m", input="x", stream=True))


def test_the_package_retries_a_failure(start: Start) -> None:
    """Issue 4.7: a 429 and a 500 step are retried by the package, with the server's own delay."""
    soon = {"retry-after-ms": "1"}
    server = start(
        [Failure(429, "slow down", "rate_limit_exceeded", soon), Failure(500, headers=soon), [message("ok")]]
    )
    with client(server, max_retries=2) as api:
        assert api.responses.create(model="m", input="x").output_text == "ok"
    assert len(server.model.requests) == 3


REFUSED: list[tuple[str, dict[str, Any], type[openai.APIStatusError], str]] = [
    ("/responses", {"model": "m", "input": "x"}, openai.InternalServerError, "exhausted"),
    ("/responses", {"model": "other", "input": "x"}, openai.NotFoundError, "`other` does not exist"),
    ("/nowhere", {}, openai.NotFoundError, "Invalid URL (POST /v1/nowhere)"),
    (
        "/responses",
        {"model": "m", "input": "x", "previous_response_id": "resp_none"},
        openai.BadRequestError,
        "'resp_none' not found",
    ),
]


@pytest.mark.parametrize(("path", "body", "error", "says"), REFUSED)
def test_what_the_api_refuses_is_refused(
    start: Start, path: str, body: dict[str, Any], error: type[Exception], says: str
) -> None:
    """Issue 4.7: an exhausted script, an unknown model, path or response are errors with a clear message."""
    with client(start([], models=["m"])) as api, pytest.raises(error) as caught:
        api.post(path, body=body, cast_to=object)
    assert says in str(caught.value)


def test_a_wrong_key_is_refused(start: Start) -> None:
    """Issue 4.7: a server with a key lets in that one, in OpenAI's header or in Azure's."""
    server = start([[message("in")], [message("in")]], api_key="right")
    with client(server, api_key="wrong") as api, pytest.raises(openai.AuthenticationError):
        api.responses.create(model="m", input="x")
    with client(server, api_key="right") as api:
        assert api.responses.create(model="m", input="x").output_text == "in"
    azure = server.base_url.removesuffix("/v1")
    with openai.AzureOpenAI(azure_endpoint=azure, api_key="right", api_version="preview") as api:
        assert api.responses.create(model="m", input="x").output_text == "in"
    assert server.model.requests[-1]["path"] == "/openai/responses"


CALL = {"type": "shell_call", "call_id": "a"}
OUTPUT = {"type": "shell_call_output", "call_id": "a"}


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([{"role": "user"}, CALL, OUTPUT], ""),
        ([CALL, {"type": "message"}, OUTPUT, OUTPUT], ""),
        ([CALL], "No tool output found for shell call a."),
        ([OUTPUT, CALL], "No tool output found for shell call a."),
        ([OUTPUT], "No tool call found for shell call output with call_id a."),
        ([CALL, {**OUTPUT, "type": "function_call_output"}], "No tool output found for shell call a."),
        ([{"type": "function_call", "call_id": ""}], "Missing required parameter: 'input[0].call_id'."),
    ],
)
def test_a_conversation_with_an_open_call_is_refused(items: list[dict[str, Any]], says: str) -> None:
    """Issue 4.7: every call must have its output, of its kind, and the reverse."""
    assert model_responses.fault(items) == says


CALLS = {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]}
A, B = {"role": "tool", "tool_call_id": "a"}, {"role": "tool", "tool_call_id": "b"}


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([{"role": "user"}, CALLS, B, A, {"role": "user"}], ""),
        ([CALLS, A, A, B], ""),
        ([CALLS, A], "did not have response messages: b"),
        ([CALLS, A, {"role": "user"}, B], "did not have response messages: b"),
        ([A], "must be a response to a preceding message"),
        ([CALLS, A, B, {"role": "user"}, A], "must be a response to a preceding message"),
    ],
)
def test_a_chat_with_an_open_call_is_refused(messages: list[dict[str, Any]], says: str) -> None:
    """Issue 4.7: the messages that answer calls stand right behind them, one for each."""
    fault = model_chat.fault(messages)
    assert says in fault
    assert bool(says) is bool(fault)


def test_a_conversation_is_remembered_by_its_responses(start: Start) -> None:
    """Issue 4.7: `previous_response_id` stands for what came before, so an open call of it must be answered."""
    server = start([[shell_call("ls")], [message("done")]])
    with client(server) as api:
        first = api.responses.create(model="m", input="x")
        with pytest.raises(openai.BadRequestError, match="No tool output found for shell call call_1"):
            api.responses.create(model="m", input="y", previous_response_id=first.id)
        output: Any = {"type": "shell_call_output", "call_id": "call_1", "output": []}
        second = api.responses.create(model="m", input=[output], previous_response_id=first.id, store=False)
        assert second.output_text == "done"
        with pytest.raises(openai.BadRequestError, match="not found"):  # it was not stored
            api.responses.create(model="m", input="z", previous_response_id=second.id)


def test_one_server_holds_several_conversations(start: Start) -> None:
    """Issue 4.7: a script that is a function answers each request by what it asks."""
    server = start(lambda body: [message(body["input"].upper())])
    with client(server) as api:
        assert [api.responses.create(model="m", input=text).output_text for text in ("a", "b")] == ["A", "B"]


def test_containers_are_made_used_and_deleted(start: Start) -> None:
    """Issue 4.5: the containers API as the package calls it: files in pages, their content, an end."""
    server = start([])
    with client(server) as api:
        made = api.containers.create(name="box", memory_limit="4g", file_ids=["file_9"])
        assert (made.id, made.name, made.status, made.memory_limit) == ("cntr_1", "box", "running", "4g")
        assert made.model_extra == {}
        for number in range(24):
            server.model.containers.add_file(made.id, f"/mnt/data/{number}", b"\x00" * number)
        listed = list(api.containers.files.list(made.id, limit=10))
        assert [file.path for file in listed] == [f"/mnt/data/{name}" for name in ["file_9", *range(24)]]
        assert api.containers.files.content.retrieve(listed[3].id, container_id=made.id).read() == b"\x00\x00"
        assert api.containers.files.content.retrieve(listed[0].id, container_id=made.id).read() == b""
        assert api.containers.files.create(made.id, file_id="f").path == "/mnt/data/f"
        with pytest.raises(openai.BadRequestError, match="no uploads"):
            api.containers.files.create(made.id, file=b"content")
        api.containers.files.delete(listed[0].id, container_id=made.id)
        with pytest.raises(openai.NotFoundError, match="There is nothing at GET /containers/cntr_1/files/"):
            api.containers.files.retrieve(listed[0].id, container_id=made.id)
        assert [each.id for each in api.containers.list()] == ["cntr_1"]
        api.containers.delete(made.id)
        with pytest.raises(openai.NotFoundError, match="'cntr_1' not found"):
            api.containers.retrieve(made.id)


def test_an_expired_container_cannot_be_used(start: Start) -> None:
    """Issue 4.5: it can be looked up, its files are gone, and a request that names it is refused."""
    server = start([[message("in")]])
    with client(server) as api:
        name = api.containers.create(name="box").id
        tools: Any = [{"type": "shell", "environment": {"type": "container_reference", "container_id": name}}]
        assert api.responses.create(model="m", input="x", tools=tools).output_text == "in"
        server.model.containers.expire(name)
        assert api.containers.retrieve(name).status == "expired"
        for use in (
            lambda: api.responses.create(model="m", input="x", tools=tools),
            lambda: list(api.containers.files.list(name)),
        ):
            with pytest.raises(openai.BadRequestError, match="expired"):
                use()


def test_conversations_are_answered_side_by_side(start: Start) -> None:
    """Issue 4.3: two requests are at the script at the same time, as two sub-agents' are."""
    both = threading.Barrier(2, timeout=10)

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        both.wait()
        return [message(body["input"])]

    async def main() -> list[str]:
        server = start(script)
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="any", max_retries=0) as api:
            asked = [api.responses.create(model="m", input=text) for text in ("a", "b")]
            return [answer.output_text for answer in await asyncio.gather(*asked)]

    assert asyncio.run(main()) == ["a", "b"]


def test_a_client_that_goes_away_disturbs_nobody(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    """Issue 4.7: a stream left in its middle, and a connection without a request, leave the server quiet and fit."""
    long = message("word " * 100_000)
    server = start([[long], [message("fine")]])
    address = urlsplit(server.base_url)
    assert address.hostname is not None
    with client(server) as api, socket.create_connection((address.hostname, address.port or 0)):
        stream = api.responses.create(model="m", input="x", stream=True)
        next(iter(stream))
        stream.close()
        assert api.responses.create(model="m", input="x").output_text == "fine"
    assert capfd.readouterr().err == ""


def test_a_stream_can_be_slow(start: Start) -> None:
    """Issue 4.7: with a delay the events come one by one, and a closed model ends the stream."""
    server = start([[message("one two three")]], delay=3600.0)
    with client(server) as api:
        stream = iter(api.responses.create(model="m", input="x", stream=True))
        assert next(stream).type == "response.created"
        server.model.close()
        with pytest.raises(openai.APIConnectionError):
            list(stream)


def test_the_loopback_leaves_idle_clients_alone_and_ends(capfd: pytest.CaptureFixture[str]) -> None:
    """Issue 4.7: a connection is kept for the next request; leaving the context ends it, and the client sees that."""
    model = ScriptedModel([[message("a")], [message("b")]])
    with openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="any", max_retries=0) as api:
        with serve(model) as base_url:
            api.base_url = base_url
            said = [api.responses.create(model="m", input="x").output_text for _ in range(2)]
        with pytest.raises(openai.APIConnectionError):
            api.responses.create(model="m", input="x")
    assert said == ["a", "b"]
    assert capfd.readouterr().err == ""
