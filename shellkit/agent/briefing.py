"""What a model is told before the conversation begins: instructions made from the environment, and its tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ..adapters.openai_responses import Tools
from ..adapters.openai_tools import function_tool, hosted_shell_tool, local_shell_tool, shell_tool
from ..tool import ShellTool, Tool

__all__ = ["Api", "Form", "declarations", "default_instructions", "shell_of"]

Api = Literal["responses", "chat"]
Form = Literal["function", "shell", "local_shell", "hosted"]

_ROLE = (
    "You do tasks by running commands in a shell, through the tool `{name}`. Look before you change something, and "
    "check afterwards that it worked. A non-zero exit code, a time-out or a refusal comes back as output: act on it, "
    "and do not send what was refused again in other words. When the task is done, or cannot go on without the user, "
    "say so in a short message and call no tool."
)


_PROGRAMS = (
    "What ends by itself is for `{name}`. What runs on, or asks questions, is a program: a server, a watcher, a REPL, "
    "a build of many minutes. Start it with `exec_command`, talk to it with `write_stdin`, and go on with other work "
    "meanwhile. Wait for a line or for the end by `until`, with a long yield_time_ms; never look again and again. "
    "Stop what is no longer needed. Of an output that was cut, `read_output` has the rest."
)


async def default_instructions(tools: Tools | None, form: Form = "function") -> str:
    """Return the instructions that an `Agent` uses when it is given none; asks the shell what it is, once.

    Args:
        tools: as for `Agent`.
        form: as for `Agent`. A function carries a description of the shell itself, the API's own tools do not.
    """
    if tools is None:
        return _ROLE.format(name="shell")
    shell = shell_of(tools)
    await shell.probe()
    if form != "function":
        return f"{_ROLE.format(name='shell')}\n\n{shell.description}"
    text = _ROLE.format(name=shell.name)
    several = not isinstance(tools, Tool) and len(tools) > 1
    return f"{text}\n\n{_PROGRAMS.format(name=shell.name)}" if several else text


def shell_of(tools: Tools) -> ShellTool:
    """Return the tool that runs commands.

    Raises:
        ValueError: there is none.
    """
    for tool in [tools] if isinstance(tools, Tool) else tools:
        if isinstance(tool, ShellTool):
            return tool
    raise ValueError("the tools must hold one that runs commands: executor.as_tool(), or all of executor.as_tools()")


def declarations(tools: Sequence[Tool[Any, Any]], form: Form, api: Api, container_id: str | None) -> list[Any]:
    """Return the `tools` of a request."""
    if form == "hosted":
        return [hosted_shell_tool(container_id)]
    if form == "shell":
        return [shell_tool()]
    if form == "local_shell":
        return [local_shell_tool()]
    return [function_tool(tool, api=api) for tool in tools]
