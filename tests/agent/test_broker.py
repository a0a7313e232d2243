"""The broker and its other side, over the real socket and a real client."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from shellkit.agent.broker import Broker
from shellkit.agent.failures import explain
from shellkit.agent.parent import Parent
from shellkit.agent.terms import AgentRefused, Invitation, Terms
from shellkit.policy.approvals import ApprovalRequest, Decision
from shellkit.testing.loopback import serve
from shellkit.testing.scripted_model import Broken, Failure, Hang, ScriptedModel, message
from shellkit.tool import Callback

TERMS = Terms(model="m", workdir="/w", environment={"A": "1"})
REQUEST = ApprovalRequest.of("1", "rm x", workdir="/w", reason="it removes")

Body = Callable[[Broker], Coroutine[Any, Any, None]]


def with_broker(body: Body, script: Any = (), approver: Any = None, **options: Any) -> ScriptedModel:
    """Run `body` with a broker whose client talks to a scripted model; return the model."""
    model = ScriptedModel(script, api_key="secret")

    async def main(base_url: str) -> None:
        client = AsyncOpenAI(base_url=base_url, api_key="secret", max_retries=options.pop("max_retries", 0))
        async with client, Broker(client, TERMS, approver, **options) as broker:
            await body(broker)

    with serve(model) as base_url:
        asyncio.run(main(base_url))
    return model


async def until(condition: Callable[[], object]) -> None:
    """Let the loop go on until something holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_sub_agent_reaches_the_model_without_the_key() -> None:
    """Issue 4, sub-agents: the parent's client adds the key; the sub-agent's own holds none."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "count") as parent:
            assert (parent.terms, parent.number, parent.depth, parent.may_delegate) == (TERMS, 1, 1, True)
            response = await parent.client.responses.create(model="m", input="hello")
            assert response.output_text == "one"
            completion = await parent.client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hello"}]
            )
            assert completion.choices[0].message.content == "two"
            assert "secret" not in (parent.client.api_key, parent.invitation.id)

    model = with_broker(body, [[message("one")], [message("two")]])
    assert model.requests[0]["input"] == "hello"
    assert model.requests[1]["messages"] == [{"role": "user", "content": "hello"}]
    assert {request["headers"]["authorization"] for request in model.requests} == {"Bearer secret"}


def test_streams_are_passed_on_as_they_come() -> None:
    """Issue 4, sub-agents: a stream is not collected; its first events are there while the model still hangs."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as parent:
            async with await parent.client.responses.create(model="m", input="x", stream=True) as stream:
                assert [event.type async for event in stream][-1] == "response.completed"
            async with await parent.client.responses.create(model="m", input="x", stream=True) as stream:
                assert (await anext(aiter(stream))).type == "response.created"

    with_broker(body, [[message("one two")], Hang([message("never")], after=1)])


def test_a_stream_that_drops_drops_for_the_sub_agent() -> None:
    """Issue 4: a dropped stream is seen as one, not as an answer that is complete."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as parent:
            stream = await parent.client.responses.create(model="m", input="x", stream=True)
            with pytest.raises((httpx2.HTTPError, openai.APIError)):
                async for _ in stream:
                    pass

    with_broker(body, [Broken([message("one two")], after=2)])


def test_errors_of_the_model_come_as_they_are() -> None:
    """Issue 4: the parent's client retries what may be retried; what remains reaches the sub-agent as it is."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as parent:
            assert (await parent.client.responses.create(model="m", input="x")).output_text == "after a retry"
            with pytest.raises(openai.BadRequestError, match="no good"):
                await parent.client.responses.create(model="m", input="x")

    again = Failure(429, "slow down", headers={"retry-after-ms": "1"})
    with_broker(body, [again, [message("after a retry")], Failure(400, "no good")], max_retries=1)


def test_a_key_that_is_refused() -> None:
    """Issue 4.4: the key never reaches the shell, nor does what a server says of it, which may quote it."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as parent:
            with pytest.raises(openai.AuthenticationError) as caught:
                await parent.client.responses.create(model="m", input="x")
            assert "secret" not in str(caught.value)

    with_broker(body, [Failure(401, "Incorrect API key provided: secret")])


@pytest.mark.parametrize(
    ("failure", "told"), [(Failure(401, "no"), "set OPENAI_API_KEY"), (Failure(403, "no"), "ask for access")]
)
def test_whose_key_is_refused(failure: Failure, told: str) -> None:
    """Issue 4.4: a sub-agent has no key, so what is told of one says whose it is and who can mend it."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as parent:
            with pytest.raises(openai.APIStatusError) as caught:
                await parent.client.responses.create(model="m", input="x")
        explained = explain(caught.value, base_url=str(parent.client.base_url), model="m")
        assert explained.misconfigured
        assert told in explained.text
        assert "the user of the first agent must mend it there" in explained.text
        assert "http://127.0.0.1" in explained.text
        assert "http://parent" not in explained.text

    with_broker(body, [failure])


def test_a_model_that_cannot_be_reached() -> None:
    """Issue 4: no connection is an error that the sub-agent's client understands."""

    async def main() -> None:
        client = AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="x", max_retries=0)
        async with client, Broker(client, TERMS, None) as broker, Parent(broker.invitation, "t") as parent:
            with pytest.raises(openai.APIStatusError, match=r"cannot be reached.*user of the first agent") as caught:
                await parent.client.responses.create(model="m", input="x")
            assert caught.value.status_code == 502

    asyncio.run(main())


def test_nothing_else_is_passed_on() -> None:
    """The key serves conversations only: no other part of the API can be reached, and nobody unregistered is served."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as parent:
            for asked in (parent.client.models.list(), parent.client.files.list(), parent.client.responses.delete("r")):
                with pytest.raises(openai.NotFoundError, match="not for sub-agents"):
                    await asked
            client = parent.client.with_options(api_key=broker.invitation.id)
            with pytest.raises(openai.PermissionDeniedError, match="no such sub-agent"):
                await client.responses.create(model="m", input="x")

    assert with_broker(body).requests == []


# -- bounds -----------------------------------------------------------------------------------------------


def test_depth_is_bounded() -> None:
    """Issue 4, sub-agents: depth is bounded in the whole tree."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as child, Parent(child.invitation, "t") as grandchild:
            assert (grandchild.depth, grandchild.may_delegate) == (2, False)
            with pytest.raises(AgentRefused, match="2 deep, and this would be one deeper; do the task yourself"):
                await Parent(grandchild.invitation, "t").__aenter__()

    with_broker(body)


def test_the_number_at_once_is_bounded() -> None:
    """Issue 4, sub-agents: several run side by side, so many and no more, wherever in the tree."""

    async def body(broker: Broker) -> None:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(Parent(broker.invitation, "t"))
            async with Parent(first.invitation, "t"):
                with pytest.raises(AgentRefused, match="wait until one has ended"):
                    await Parent(broker.invitation, "t").__aenter__()
            await until(lambda: broker.running == 1)
            await stack.enter_async_context(Parent(broker.invitation, "t"))
            assert broker.running == 2

    with_broker(body, max_running=2)


def test_the_number_in_all_is_bounded() -> None:
    """Issue 4, sub-agents: count is bounded, those that have ended included."""

    async def body(broker: Broker) -> None:
        for _ in range(2):
            async with Parent(broker.invitation, "t"):
                pass
        with pytest.raises(AgentRefused, match="2 sub-agents have been started"):
            await Parent(broker.invitation, "t").__aenter__()

    with_broker(body, max_total=2)


def test_a_killed_sub_agent_is_noticed() -> None:
    """Issue 4, sub-agents: one that is killed no longer counts, and cannot start others."""
    program = """
import asyncio, sys
from shellkit.agent.parent import Parent
from shellkit.agent.terms import Invitation
async def main():
    async with Parent(Invitation(*sys.argv[1:]), "t") as parent:
        print(parent.invitation.id, flush=True)
        await asyncio.get_running_loop().create_future()
asyncio.run(main())
"""

    async def body(broker: Broker) -> None:
        words = [sys.executable, "-c", program, broker.invitation.socket, broker.invitation.id]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            child = (await asyncio.to_thread(process.stdout.readline)).strip()
            assert broker.running == 1
            process.send_signal(signal.SIGKILL)
        await until(lambda: broker.running == 0)
        with pytest.raises(AgentRefused, match="no such sub-agent"):
            await Parent(Invitation(broker.invitation.socket, child), "t").__aenter__()

    with_broker(body)


def test_one_that_goes_away_ends_its_question_to_the_model() -> None:
    """Issue 4, a killed client: what is asked in its name is given up, and the broker goes on."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as parent:
            asking = asyncio.ensure_future(parent.client.responses.create(model="m", input="x"))
            await until(lambda: arrived)
            asking.cancel()
            await asyncio.wait([asking])
            await until(lambda: len(broker._server._connections) == 1)
            assert (await parent.client.responses.create(model="m", input="x")).output_text == "next"

    arrived: list[Any] = []
    steps = iter([Hang(), [message("next")]])

    def script(asked: dict[str, Any]) -> Any:
        arrived.append(asked)
        return next(steps)

    with_broker(body, script)


# -- terms ------------------------------------------------------------------------------------------------


def test_terms_are_lent_on() -> None:
    """Issue 4, sub-agents: a sub-agent of a stricter sub-agent is as strict as that one."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t", model="other", approve=None, max_tokens=5) as child:
            assert (child.terms.model, child.terms.max_tokens) == ("other", 5)
            async with Parent(child.invitation, "t") as grandchild:
                assert grandchild.terms == child.terms

    with_broker(body)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"approve": "never"}, "may not be laxer"),
        ({"wrong": 1}, "no request for a sub-agent: there is no field 'wrong'"),
        ({"approve": "maybe"}, "no request for a sub-agent: 'approve' must be one of 'ask', 'policy', 'never', and"),
    ],
)
def test_what_is_laxer_or_wrong_is_refused(asked: dict[str, Any], why: str) -> None:
    """Issue 4, sub-agents: a child may not be laxer than its parent; it does not count as started."""

    async def body(broker: Broker) -> None:
        with pytest.raises(AgentRefused, match=why):
            await Parent(broker.invitation, "t", **asked).__aenter__()
        assert broker.running == 0

    with_broker(body)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        *[({"model": wrong}, "model") for wrong in (3, ["m"], {}, True)],
        *[({"api": wrong}, "api") for wrong in (3, "soap", [])],
        *[({"approve": wrong}, "approve") for wrong in (0, {}, "")],
        ({"typing": 1.5}, "typing"),
        ({"policy": 3}, "policy"),
        *[({name: wrong}, name) for name in ("audit", "log", "workdir") for wrong in (3, "", "x", "/\0", "/\ud800")],
        ({"confinement": ["off"]}, "confinement"),
        ({"environment": {"A": "2"}}, "environment"),
        *[({name: wrong}, name) for name in ("max_turns", "max_tokens") for wrong in ("x", 0, -1, 1.5, True, [])],
        ({"task": 3}, "task"),
        ({"self": 3}, "self"),
    ],
)
def test_a_field_of_a_wrong_type(body: dict[str, Any], field: str) -> None:
    """Issue 4, sub-agents: who asks wrongly is told which field is wrong, and no sub-agent is started."""

    async def main(broker: Broker) -> None:
        transport = httpx2.AsyncHTTPTransport(uds=broker.invitation.socket)
        headers = {"Authorization": f"Bearer {broker.invitation.id}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://parent", headers=headers) as client:
            answer = await client.post("/agents", content=json.dumps(body))
        assert answer.status_code == 400
        assert "this is no request for a sub-agent: " in answer.json()["error"]["message"]
        assert f"'{field}'" in answer.json()["error"]["message"]
        assert broker.running == 0

    with_broker(main)


# -- approvals --------------------------------------------------------------------------------------------


def test_approvals_go_to_the_parent() -> None:
    """Issue 4, sub-agents: what a sub-agent would run is asked at the first agent, marked as the sub-agent's."""
    seen: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Decision:
        seen.append(request)
        return Decision(approved=True, reason="fine", command="ls x")

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "tidy\nup\x1b[2J") as child, Parent(child.invitation, "t") as grandchild:
            assert await child(REQUEST) == Decision(approved=True, reason="fine", command="ls x")
            assert (await grandchild(REQUEST)).approved

    with_broker(body, approver=Callback(approve))
    assert [request.command for request in seen] == ["rm x", "rm x"]
    assert seen[0].reason == "sub-agent 1 (tidy up\\x1b[2J) asks: it removes"
    assert seen[1].reason.startswith("sub-agent 2")


def test_nobody_approves() -> None:
    """H3: where the first agent asks nobody, what needs approval is refused."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as child:
            decision = await child(REQUEST)
            assert (decision.approved, decision.reason) == (
                False,
                "nobody is there to approve the commands of sub-agents",
            )

    with_broker(body)


def test_an_approval_that_fails_is_no_approval() -> None:
    """H3: an approver that raises, and a request that was changed, approve nothing."""

    async def fail(_: ApprovalRequest) -> Decision:
        raise RuntimeError("the window is closed")

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as child:
            with pytest.raises(AgentRefused, match="does not answer"):
                await child(REQUEST)
            answer = await child._http.post(
                "/approvals",
                json={**REQUEST.to_dict(), "command": "rm -rf /"},
                headers={"Authorization": f"Bearer {child.invitation.id}"},
            )
            assert answer.status_code == 403

    with_broker(body, approver=fail)


def test_tokens_of_sub_agents_count() -> None:
    """Issue 4, sub-agents: what sub-agents use counts against the budget of the first agent."""
    used: list[tuple[int, int]] = []

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as child, Parent(child.invitation, "t") as grandchild:
            await child.charge(10, 2)
            await grandchild.charge(5, 1)

    with_broker(body, charge=lambda *tokens: used.append(tokens))
    assert used == [(10, 2), (5, 1)]


@pytest.mark.parametrize("used", [{"input_tokens": -5}, {"output_tokens": "3"}, {"input_tokens": None}])
def test_tokens_that_are_none(used: dict[str, Any]) -> None:
    """Issue 4, sub-agents: no process of the shell can give the first agent a larger budget."""
    charged: list[tuple[int, int]] = []

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as child:
            with pytest.raises(AgentRefused, match="must be whole numbers"):
                await child._ask("/usage", used)

    with_broker(body, charge=lambda *tokens: charged.append(tokens))
    assert charged == []


# -- the socket -------------------------------------------------------------------------------------------


def test_the_socket_is_this_users_and_goes() -> None:
    """The directory of the socket lets nobody else in, and is gone afterwards; then a sub-agent is told so."""
    places: list[Invitation] = []

    async def body(broker: Broker) -> None:
        places.append(broker.invitation)
        directory = os.path.dirname(broker.invitation.socket)
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700

    with_broker(body)
    assert not os.path.exists(os.path.dirname(places[0].socket))
    with pytest.raises(AgentRefused, match="has ended"):
        asyncio.run(Parent(places[0], "t").__aenter__())


def test_a_killed_agent_leaves_no_socket(eventually: Callable[..., None]) -> None:
    """G4: where the agent is killed, the directory of its socket goes, too."""
    program = """
import asyncio
from openai import AsyncOpenAI
from shellkit.agent.broker import Broker
from shellkit.agent.terms import Terms
async def main():
    async with Broker(AsyncOpenAI(api_key="x"), Terms(model="m", workdir="/"), None) as broker:
        print(broker.invitation.socket, flush=True)
        await asyncio.get_running_loop().create_future()
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = process.stdout.readline().strip()
        assert os.path.exists(path)
        process.kill()
    eventually(lambda: not os.path.exists(os.path.dirname(path)))


def test_another_version_of_shellkit() -> None:
    """A broker that speaks otherwise is told apart from one that is gone."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n{}\n")
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "socket")
            async with await asyncio.start_unix_server(answer, path):
                with pytest.raises(AgentRefused, match="another version of shellkit"):
                    await Parent(Invitation(path, "id"), "t").__aenter__()

    asyncio.run(main())


def test_a_temporary_directory_too_long_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 4, done when: the demo runs on any machine; unix(7): a socket's path holds 107 bytes."""
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))

    async def body(broker: Broker) -> None:
        assert os.path.dirname(os.path.dirname(broker.invitation.socket)) == "/tmp"
        async with Parent(broker.invitation, "t") as parent:
            assert parent.number == 1

    with_broker(body)
    assert list(long.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no http at all\r\n\r\n",
        b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}",
        b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xff" * 100_000,
    ],
)
def test_whoever_does_not_speak_the_protocol_hurts_nobody(data: bytes) -> None:
    """A connection that says nothing, nonsense or half of something is closed; others are served."""

    async def body(broker: Broker) -> None:
        reader, writer = await asyncio.open_unix_connection(broker.invitation.socket)
        writer.write(data)
        writer.write_eof()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        async with Parent(broker.invitation, "t") as parent:
            assert parent.number == 1

    with_broker(body)


def test_closing_ends_what_is_open() -> None:
    """Closing the broker ends registrations and questions; a sub-agent sees it as an error."""
    arrived: list[Any] = []

    def script(asked: dict[str, Any]) -> Any:
        arrived.append(asked)
        return Hang()

    async def main(base_url: str) -> None:
        async with AsyncOpenAI(base_url=base_url, api_key="x") as client, AsyncExitStack() as stack:
            async with Broker(client, TERMS, None) as broker:
                parent = await stack.enter_async_context(Parent(broker.invitation, "t"))
                asking = asyncio.ensure_future(parent.client.responses.create(model="m", input="x"))
                await until(lambda: arrived)
            with pytest.raises(openai.APIConnectionError):
                await asking
            with pytest.raises(AgentRefused, match="has ended"):
                await parent.charge(1, 1)

    with serve(ScriptedModel(script)) as base_url:
        asyncio.run(main(base_url))


@pytest.mark.parametrize("size", [1 << 18, 1 << 23])
def test_a_client_that_does_not_read_holds_nothing_up(size: int) -> None:
    """G3: the broker closes although a sub-agent that was stopped has not read its answer, whole or in part."""

    async def body(broker: Broker) -> None:
        async with Parent(broker.invitation, "t") as parent:
            head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {parent.invitation.id}\r\n"
            _, writer = await asyncio.open_unix_connection(broker.invitation.socket, limit=1)
            writer.write(f"{head}Content-Length: 13\r\n\r\n".encode() + b'{"model":"m"}')
            await until(lambda: model.requests)
            await parent.client.responses.create(model="m", input="x")
            async with asyncio.timeout(10):
                await broker.__aexit__(None, None, None)
            writer.transport.abort()
        # httpx2 leaves the generators of a stream that was cut short to the loop, one inside the other.
        await until(lambda: gc.collect() == 0 and len(asyncio.all_tasks()) == 1)

    model = ScriptedModel([[message("x" * size)], [message("other")]])

    async def main(base_url: str) -> None:
        async with AsyncOpenAI(base_url=base_url, api_key="x") as client:
            await body(await Broker(client, TERMS, None).__aenter__())

    with serve(model) as base_url:
        asyncio.run(main(base_url))
