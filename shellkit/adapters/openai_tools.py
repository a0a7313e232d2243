"""How a shell is offered to OpenAI's models: the declarations that go into a request's `tools`. Pure.

`openai_responses` answers the calls that the models then make.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, overload

import attrs

from ..tool import Tool

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionFunctionToolParam
    from openai.types.responses import FunctionShellToolParam, FunctionToolParam
    from openai.types.responses.skill_reference_param import SkillReferenceParam
    from openai.types.responses.tool_param import LocalShell

__all__ = [
    "Container",
    "DomainSecret",
    "MemoryLimit",
    "NetworkPolicy",
    "function_tool",
    "hosted_shell_tool",
    "local_shell_tool",
    "shell_tool",
]

MemoryLimit = Literal["1g", "4g", "16g", "64g"]


def _texts(given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"must be a list of texts, not one text: [{given!r}]")
    return tuple(given)


@attrs.frozen
class DomainSecret:
    """A secret that OpenAI puts into a container's requests to one domain.

    Attributes:
        domain: where it may go; one of the allowed ones.
        name: by which it is injected.
        value: the secret itself, which no `repr` shows.
    """

    domain: str
    name: str
    value: str = attrs.field(repr=False)


@attrs.frozen
class NetworkPolicy:
    """What a container may reach.

    Attributes:
        allowed_domains: the only domains; none at all switches the network off.
        secrets: for these domains.
    """

    allowed_domains: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    secrets: Sequence[DomainSecret] = ()

    def __attrs_post_init__(self) -> None:
        if astray := [secret.domain for secret in self.secrets if secret.domain not in self.allowed_domains]:
            raise ValueError(f"a secret is for {astray[0]!r}, which is not in allowed_domains; add it there")

    def to_dict(self) -> dict[str, Any]:
        """Return the API's form."""
        if not self.allowed_domains:
            return {"type": "disabled"}
        policy: dict[str, Any] = {"type": "allowlist", "allowed_domains": list(self.allowed_domains)}
        if self.secrets:
            policy["domain_secrets"] = [attrs.asdict(secret) for secret in self.secrets]
        return policy


@attrs.frozen(kw_only=True)
class Container:
    """What a container of OpenAI's is like, in which a hosted shell runs.

    Attributes:
        memory_limit: "1g", "4g", "16g" or "64g"; None leaves it to the API.
        network: what it may reach; None leaves it to the API, which then follows the organisation's settings.
        file_ids: uploaded files that are copied into it.
        skills: references to skills.
    """

    memory_limit: MemoryLimit | None = attrs.field(
        default=None, validator=attrs.validators.in_((None, *get_args(MemoryLimit)))
    )
    network: NetworkPolicy | None = None
    file_ids: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    skills: Sequence[SkillReferenceParam] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that `client.containers.create` and the tool's `container_auto` have in common."""
        given = {
            "memory_limit": self.memory_limit,
            "network_policy": None if self.network is None else self.network.to_dict(),
            "file_ids": list(self.file_ids),
            "skills": list(self.skills),
        }
        return {name: value for name, value in given.items() if value}


def shell_tool() -> FunctionShellToolParam:
    """Return the `shell` tool of the Responses API, whose commands run here."""
    return {"type": "shell", "environment": {"type": "local"}}


def local_shell_tool() -> LocalShell:
    """Return the legacy `local_shell` tool of the Responses API, for the models that know no other."""
    return {"type": "local_shell"}


def hosted_shell_tool(container: Container | str | None = None) -> FunctionShellToolParam:
    """Return the `shell` tool whose commands run in a container of OpenAI's, where no gate of ours is.

    Args:
        container: the id of one that exists, or what the API shall make for the request.
    """
    if isinstance(container, str):
        return {"type": "shell", "environment": {"type": "container_reference", "container_id": container}}
    made = (container or Container()).to_dict()
    return cast("FunctionShellToolParam", {"type": "shell", "environment": {"type": "container_auto", **made}})


@overload
def function_tool(tool: Tool, api: Literal["responses"] = ...) -> FunctionToolParam: ...


@overload
def function_tool(tool: Tool, api: Literal["chat"]) -> ChatCompletionFunctionToolParam: ...


def function_tool(tool: Tool, api: Literal["responses", "chat"] = "responses") -> Any:
    """Return the tool as a strict function, which any model that calls functions can use.

    Args:
        tool: what the calls will go to; one of `Executor.as_tools`, for instance.
        api: the Responses API or Chat Completions, which nests the same one level deeper.
    """
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters, "strict": True}
    return {"type": "function", **function} if api == "responses" else {"type": "function", "function": function}
