"""What a model is told before the conversation begins: instructions made from the environment, and its tools."""

from __future__ import annotations

from typing import Any, Literal

from ..adapters.openai_tools import function_tool, hosted_shell_tool, local_shell_tool, shell_tool
from ..tool import ShellTool

__all__ = ["Api", "Form", "declarations", "default_instructions"]

Api = Literal["responses", "chat"]
Form = Literal["function", "shell", "local_shell", "hosted"]

_ROLE = (
    "You do tasks by running commands in a shell, through the tool `{name}`. Look before you change something, and "
    "check afterwards that it worked. A non-zero exit code, a time-out or a refusal comes back as output: act on it, "
    "and do not send what was refused again in other words. When the task is done, or cannot go on without the user, "
    "say so in a short message and call no tool."
)


async def default_instructions(tool: ShellTool | None, form: Form = "function") -> str:
    """Return the instructions that an `Agent` uses when it is given none; asks the shell what it is, once.

    Args:
        tool: the tool, or None for form="hosted".
        form: as for `Agent`. A function carries a description of the shell itself, the API's own tools do not.
    """
    if tool is None:
        return _ROLE.format(name="shell")
    await tool.probe()
    if form == "function":
        return _ROLE.format(name=tool.name)
    return f"{_ROLE.format(name='shell')}\n\n{tool.description}"


def declarations(tool: ShellTool | None, form: Form, api: Api, container_id: str | None) -> list[Any]:
    """Return the `tools` of a request."""
    if tool is None:
        return [hosted_shell_tool(container_id)]
    if form == "shell":
        return [shell_tool()]
    if form == "local_shell":
        return [local_shell_tool()]
    return [function_tool(tool, api=api)]
