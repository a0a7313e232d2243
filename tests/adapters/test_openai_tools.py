"""How a shell is offered to OpenAI's models, checked by the openai package's own models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openai.types.chat import ChatCompletionFunctionTool
from openai.types.responses import (
    ContainerAuto,
    ContainerNetworkPolicyAllowlist,
    ContainerNetworkPolicyDisabled,
    ContainerReference,
    FunctionShellTool,
    FunctionTool,
    LocalEnvironment,
)
from openai.types.responses.tool import LocalShell
from pydantic import BaseModel

from shellkit.adapters.openai_tools import (
    Container,
    DomainSecret,
    NetworkPolicy,
    function_tool,
    hosted_shell_tool,
    local_shell_tool,
    shell_tool,
)
from shellkit.tool import ShellTool


def checked(model: type[BaseModel], value: Any) -> Any:
    """Return a value as the openai package's model of it, which knows every field."""
    made = model.model_validate(value, strict=True)
    assert made.model_dump(mode="json", exclude_unset=True) == value
    assert made.model_extra == {}
    return made


def environment(model: type[BaseModel], value: Any) -> Any:
    """Return the environment of a declared shell, checked."""
    assert checked(FunctionShellTool, value).type == "shell"
    return checked(model, value["environment"])


def test_the_local_tools_are_declared() -> None:
    """Issue 4.1: the `shell` tool for commands that run here, and the legacy one."""
    environment(LocalEnvironment, shell_tool())
    checked(LocalShell, local_shell_tool())


def test_the_tool_is_a_strict_function_of_either_api(tool: ShellTool) -> None:
    """Issue 4.1: any model that calls functions can use the tool; both APIs get the strict schema."""
    plain = checked(FunctionTool, function_tool(tool))
    nested = checked(ChatCompletionFunctionTool, function_tool(tool, "chat"))
    for function in (plain, nested.function):
        assert (function.name, function.description, function.strict) == (tool.name, tool.description, True)
        assert function.parameters == tool.parameters


def test_a_container_is_made_as_told() -> None:
    """Issue 4.1: memory, network, files and skills of the container that a request makes."""
    secret = DomainSecret("example.com", "TOKEN", "s3cret")
    wanted = Container(
        memory_limit="4g",
        network=NetworkPolicy(["example.com"], [secret]),
        file_ids=["file_1"],
        skills=[{"type": "skill_reference", "skill_id": "skill_1"}],
    )
    made = environment(ContainerAuto, hosted_shell_tool(wanted))
    assert (made.memory_limit, made.file_ids) == ("4g", ["file_1"])
    policy = checked(ContainerNetworkPolicyAllowlist, wanted.to_dict()["network_policy"])
    assert [each.value for each in policy.domain_secrets] == ["s3cret"]
    assert "s3cret" not in repr(wanted)


def test_a_container_can_be_named_or_left_to_the_api() -> None:
    """Issue 4.1: an existing container by its id, one without any wishes, and one without a network."""
    assert environment(ContainerReference, hosted_shell_tool("cntr_1")).container_id == "cntr_1"
    assert hosted_shell_tool()["environment"] == {"type": "container_auto"}
    offline: Any = hosted_shell_tool(Container(network=NetworkPolicy()))
    environment(ContainerAuto, offline)
    checked(ContainerNetworkPolicyDisabled, offline["environment"]["network_policy"])


def test_one_text_is_no_list() -> None:
    """House style 5: a domain where domains are wanted is not taken for its letters."""
    with pytest.raises(TypeError, match=r"\['example.com'\]"):
        NetworkPolicy("example.com")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Container(memory_limit="2g"), "memory_limit"),  # type: ignore[arg-type]
        (lambda: NetworkPolicy((), [DomainSecret("a.example", "T", "s")]), "add it there"),
        (lambda: NetworkPolicy(["b.example"], [DomainSecret("a.example", "T", "s")]), "'a.example', which is not in"),
    ],
)
def test_a_wrong_wish_is_a_value_error(make: Callable[[], object], says: str) -> None:
    """House style 5: what the API would refuse is refused where it is written, without the secret."""
    with pytest.raises(ValueError, match=says) as caught:
        make()
    assert "'s'" not in str(caught.value)
