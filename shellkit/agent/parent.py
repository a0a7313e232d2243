"""A sub-agent's line to the agent that started it: its terms, its model, its approver. `broker` is the other side.

The sub-agent is registered as long as the line is open, so that its death is noticed. It holds no key: what
stands in for one is worth nothing outside of the socket.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, aclosing, contextmanager
from importlib import import_module
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..policy.approvals import ApprovalRequest, Decision
from .terms import AgentRefused, Invitation, Terms

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["Parent"]

#: The host is the socket; the name only fills its place in a URL.
_BASE = "http://parent"


class Parent:
    """An async context manager. It is an approver, too: it asks the approver of the first agent.

    Args:
        invitation: what the environment held.
        task: what the sub-agent is to do, shown to whoever approves its commands.
        asked: what it asks for beyond its parent's terms: arguments of `Terms.lend`.

    Attributes:
        terms: what it works under.
        number: which of the tree's sub-agents it is, counted from 1.
        depth: how deep it is in the tree; a sub-agent of the first agent has 1.
        may_delegate: whether it may start sub-agents itself.
        client: reaches the model.
        invitation: what its own shell needs.
    """

    terms: Terms
    number: int
    depth: int
    may_delegate: bool
    client: AsyncOpenAI
    invitation: Invitation

    def __init__(self, invitation: Invitation, task: str, **asked: Any) -> None:
        self._came_with = invitation
        self._asked = {"task": task, **{name: value for name, value in asked.items() if value is not None}}
        self._stack = AsyncExitStack()
        self._http: httpx2.AsyncClient

    async def __aenter__(self) -> Parent:
        """Register.

        Raises:
            AgentRefused: the broker has refused, or does not answer. `charge` and asking raise it, too.
        """
        from openai import AsyncOpenAI

        httpx = _httpx()
        async with AsyncExitStack() as stack:
            # No certificates: they are looked for in the environment, which may name some that are not there.
            transport = httpx.AsyncHTTPTransport(uds=self._came_with.socket, verify=False)
            # No limit: a person may take long to answer. And no proxy: the socket is here.
            self._http = httpx.AsyncClient(transport=transport, base_url=_BASE, timeout=None, trust_env=False)
            await stack.enter_async_context(self._http)
            told = await self._register(stack)
            try:
                self.terms = Terms(**told["terms"])
                self.number, self.depth, self.may_delegate = told["number"], told["depth"], told["may_delegate"]
                self.invitation = Invitation(self._came_with.socket, told["id"])
            except (KeyError, TypeError, ValueError) as error:
                raise AgentRefused(
                    "the agent that started this shell is another version of shellkit; put that one's first in PATH"
                ) from error
            # The parent's client has retried already.
            self.client = AsyncOpenAI(
                base_url=f"{_BASE}/v1", api_key=self.invitation.id, http_client=self._http, max_retries=0
            )
            self._stack = stack.pop_all()
        return self

    async def _register(self, stack: AsyncExitStack) -> dict[str, Any]:
        """Return the first line of an answer that lasts as long as the stack."""
        with self._reached():
            request = self._http.stream(
                "POST", "/agents", content=_body(self._asked), headers=_bearer(self._came_with.id)
            )
            response = await stack.enter_async_context(request)
            lines = cast("AsyncGenerator[str]", response.aiter_lines())  # which it is; the hint says less
            await stack.enter_async_context(aclosing(lines))
            return _told(response, await anext(lines, ""))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Ask the approver of the first agent. Raising is a refusal, as for every approver."""
        return Decision.from_dict(await self._ask("/approvals", request.to_dict()))

    async def charge(self, input_tokens: int, output_tokens: int) -> None:
        """Tell the first agent what has been used of its budget."""
        await self._ask("/usage", {"input_tokens": input_tokens, "output_tokens": output_tokens})

    async def _ask(self, path: str, value: dict[str, Any]) -> dict[str, Any]:
        with self._reached():
            response = await self._http.post(path, content=_body(value), headers=_bearer(self.invitation.id))
            return _told(response, response.text)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (_httpx().HTTPError, ValueError) as error:
            raise AgentRefused(
                f"the agent that started this shell does not answer at {self._came_with.socket}; it has ended, so "
                "start an agent of its own with SHELLKIT_AGENT unset"
            ) from error


def _httpx() -> ModuleType:
    """Return the HTTP library of the openai package that is installed: httpx2 since its version 3."""
    from openai import VERSION

    return import_module("httpx2" if int(VERSION.split(".")[0]) >= 3 else "httpx")


def _body(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()  # ASCII: a path that is no UTF-8 gets across, too


def _bearer(agent: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {agent}"}


def _told(response: httpx2.Response, text: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(text)
    if response.status_code != 200:
        raise AgentRefused(told["error"]["message"])
    return told
