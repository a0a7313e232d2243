"""The broker of an agent: its sub-agents, which have no key, reach the model and the approver through it.

It speaks HTTP on a Unix socket whose path lies in the environment of the agent's shell (`Invitation`). One broker
serves the whole tree of sub-agents, so its bounds hold for the tree. `parent` is the other side. It never gives the
key away, and passes on nothing but the two requests that a conversation consists of.

    POST /agents                  register; the answer's first line holds the terms, and it lasts as long as the agent
    POST /approvals               an approval request; the answer is the decision
    POST /usage                   tokens that the sub-agent has used
    POST /v1/responses, /v1/chat/completions      to the model, streamed or not

Who asks is told by `Authorization: Bearer ID`: for `/agents` the agent in whose shell it happens, else the sub-agent.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import attrs

from ..policy.approvals import ApprovalRequest, Decision, displayed
from ..tool import Approver
from .client import Client
from .failures import EXPLAINED, explain
from .http import IncomingRequest
from .server import PrivateServer
from .terms import AgentRefused, Invitation, Terms

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Broker"]

_log = logging.getLogger("shellkit")

#: The key is refused (what a server says of that may quote it), or may not use the model.
_ABOUT_THE_KEY = (401, 403)
_WHOSE = (
    "key and connection are the first agent's, and this sub-agent has none of its own: the user of the first agent "
    "must mend it there"
)


class _Malformed(AgentRefused):
    """The request is none; the message names the field that is wrong."""


@attrs.frozen
class _Agent:
    """An agent of the tree. The first has depth 0 and number 0."""

    id: str
    number: int
    depth: int
    task: str
    terms: Terms


class Broker:
    """Serves the sub-agents of one agent; an async context manager.

    Args:
        client: reaches the model for all of them; it holds the key.
        terms: what the agent works under.
        approver: who is asked about the commands of sub-agents; None refuses what needs approval.
        charge: called with the tokens of input and output of each reply that a sub-agent gets (`Agent.charge`).
        max_depth: how deep sub-agents may start sub-agents.
        max_running: how many may run at once, in the whole tree.
        max_total: how many may be started in all.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        terms: Terms,
        approver: Approver | None,
        *,
        charge: Callable[[int, int], object] | None = None,
        max_depth: int = 2,
        max_running: int = 4,
        max_total: int = 16,
    ) -> None:
        self._client = client
        self._approver = approver
        self._charge = charge
        self._max_depth = max_depth
        self._max_running = max_running
        self._max_total = max_total
        self._root = _Agent(secrets.token_hex(16), 0, 0, "", terms)
        self._running: dict[str, _Agent] = {}
        self._started = 0
        self._server = PrivateServer(self._answer, "shellkit-agents-")

    @property
    def running(self) -> int:
        """How many sub-agents run."""
        return len(self._running)

    @property
    def invitation(self) -> Invitation:
        """What the shell of the first agent needs."""
        return Invitation(self._server.path, self._root.id)

    async def __aenter__(self) -> Broker:
        await self._server.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.close()

    # -- what is asked for -----------------------------------------------------------------------------

    async def _answer(self, request: IncomingRequest) -> None:
        routes: dict[str, Callable[[IncomingRequest], Awaitable[None]]] = {
            "/agents": self._register,
            "/approvals": self._approve,
            "/usage": self._count,
            "/v1/responses": self._pass_on,
            "/v1/chat/completions": self._pass_on,
        }
        route = routes.get(request.path) if request.method == "POST" else None
        if route is None:
            await _refuse(request, 404, f"{request.method} {request.path} is not for sub-agents")
            return
        try:
            await route(request)
        except AgentRefused as refused:
            await _refuse(request, 400 if isinstance(refused, _Malformed) else 403, str(refused))

    def _asking(self, request: IncomingRequest) -> _Agent:
        agent = self._running.get(request.bearer)
        if agent is None:
            raise AgentRefused("no such sub-agent runs; start one with `shellkit agent TASK`")
        return agent

    async def _register(self, request: IncomingRequest) -> None:
        parent = self._root if request.bearer == self._root.id else self._asking(request)
        asked = _fields(request)
        task = asked.pop("task", "")
        if not isinstance(task, str):
            raise _Malformed("this is no request for a sub-agent: 'task' must be text")
        if parent.depth >= self._max_depth:
            raise AgentRefused(
                f"sub-agents may be {self._max_depth} deep, and this would be one deeper; do the task yourself"
            )
        if len(self._running) >= self._max_running:
            raise AgentRefused(
                f"{self._max_running} sub-agents run already, which is the most; wait until one has ended"
            )
        if self._started >= self._max_total:
            raise AgentRefused(
                f"{self._max_total} sub-agents have been started, which is the most; do the task yourself"
            )
        try:
            terms = parent.terms.lend(**asked)
        except (TypeError, ValueError) as error:
            raise _Malformed(f"this is no request for a sub-agent: {error}") from error
        self._started += 1
        agent = _Agent(secrets.token_hex(16), self._started, parent.depth + 1, task, terms)
        self._running[agent.id] = agent
        _log.info("sub-agent %d started: %s", agent.number, _line(task))
        try:
            await request.start(200, "application/json")
            told = {
                "id": agent.id,
                "number": agent.number,
                "depth": agent.depth,
                "may_delegate": agent.depth < self._max_depth,
                "terms": terms.to_dict(),
            }
            await request.send(json.dumps(told).encode() + b"\n")
            await asyncio.get_running_loop().create_future()  # until the sub-agent goes away
        finally:
            del self._running[agent.id]
            _log.info("sub-agent %d ended", agent.number)

    async def _approve(self, request: IncomingRequest) -> None:
        agent = self._asking(request)
        try:
            asked = ApprovalRequest.from_dict(_fields(request))
        except ValueError as error:
            raise AgentRefused(str(error)) from error
        if self._approver is None:
            decision = Decision(approved=False, reason="nobody is there to approve the commands of sub-agents")
        else:
            why = f"sub-agent {agent.number} ({_line(agent.task)}) asks: {_line(asked.reason)}"
            decision = await self._approver(attrs.evolve(asked, reason=why))
        await request.reply(200, decision.to_dict())

    async def _count(self, request: IncomingRequest) -> None:
        self._asking(request)
        used = _fields(request)
        counts = [used.get(name, 0) for name in ("input_tokens", "output_tokens")]
        if not all(type(count) is int and count >= 0 for count in counts):  # else a command could win budget
            raise _Malformed("'input_tokens' and 'output_tokens' must be whole numbers, 0 or more")
        if self._charge is not None:
            self._charge(*counts)
        await request.reply(200, {})

    async def _pass_on(self, request: IncomingRequest) -> None:
        import openai

        self._asking(request)
        body = _fields(request)
        model = str(body.get("model", ""))
        # The body goes as it came: `extra_body` is laid over what the named arguments make.
        asking: AbstractAsyncContextManager[Any]
        if request.path == "/v1/responses":
            asking = self._client.responses.with_streaming_response.create(model=model, extra_body=body)
        else:
            asking = self._client.chat.completions.with_streaming_response.create(
                model=model, messages=[], extra_body=body
            )
        try:
            async with asking as response:
                await request.start(response.status_code, response.headers.get("content-type", "application/json"))
                async for part in response.iter_bytes():
                    await request.send(part)
                await request.end()
        except openai.OpenAIError as error:  # after the retries of the client
            if isinstance(error, openai.APIStatusError) and error.status_code not in _ABOUT_THE_KEY:
                await request.start(error.status_code, error.response.headers.get("content-type", "application/json"))
                await request.send(error.response.content)
                await request.end()
                return
            failure = explain(error, base_url=Client(self._client).base_url, model=model)
            text = f"{failure.text}; {_WHOSE}" if failure.misconfigured else failure.text
            await _refuse(request, getattr(error, "status_code", 502), text)


def _line(text: str) -> str:
    """Return a text that a model may have chosen as one line that cannot pass for a line of ours."""
    return " ".join(displayed(text, 200).split())


async def _refuse(request: IncomingRequest, status: int, message: str) -> None:
    # In the form of the API's own errors, which the client of the sub-agent knows how to raise.
    await request.reply(status, {"error": {"message": message, "type": EXPLAINED, "code": None, "param": None}})


def _fields(request: IncomingRequest) -> dict[str, Any]:
    try:
        fields = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise _Malformed(f"the request is no JSON: {error}") from error
    if not isinstance(fields, dict):
        raise _Malformed("the request is no JSON object")
    return fields
