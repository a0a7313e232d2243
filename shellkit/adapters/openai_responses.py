"""Calls of OpenAI's models, answered: `shell_call`, `local_shell_call` and function calls in, what to send back out.

Agents' loops call `answer`, which puts every command through the tools' gate, one after another, in its one session;
the converters beside it are pure, for loops that run the commands themselves. Items are the openai package's objects
or plain dicts; nothing here imports that package, and nothing here runs a command but through a tool.
"""

from __future__ import annotations

import json
import re
import reprlib
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from ..output.ansi import clean
from ..policy.grammar import KEYWORDS
from ..tool import ShellTool, Tool, ToolOutput
from ..tool.base import OnOutput

__all__ = [
    "MalformedCall",
    "PassGate",
    "Tools",
    "answer",
    "call_id_of",
    "call_output",
    "called_tool",
    "commands",
    "needs_answer",
    "refusal",
]

#: What a model is given: one tool, or several (`Executor.as_tools`).
Tools: TypeAlias = Tool | Sequence[Tool]

#: Puts one command through the gate: the tool, its arguments and the call's id in, the output out.
PassGate: TypeAlias = Callable[[Tool, Mapping[str, Any] | str, str], Awaitable[ToolOutput]]

#: What a shell says of a command that it found and could not run (POSIX 2.8.2); the API has no word for "refused".
_NOT_RUN = 126
_CALLS = ("shell_call", "local_shell_call", "function_call", "function")
#: Calls of what shellkit offers to no model. A model can make them all the same, as one that was trained on them does,
#: and the API goes on with no conversation in which they have no output.
_FOREIGN = ("custom_tool_call", "apply_patch_call", "mcp_approval_request")
#: Milliseconds; more than any tool allows, and no number that a float cannot hold.
_LONGEST = 10**12


class MalformedCall(Exception):
    """A call asks for nothing that can be run; the message tells the model what to send instead."""


async def answer(
    tools: Tools, item: object, *, pass_gate: PassGate | None = None, on_output: OnOutput | None = None
) -> Any:
    """Run what a call asks for, if it may run, and return what to send back.

    Commands of one call run in order, in the tool's session, each with the call's time-out; one that times out or is
    refused does not keep the next from running. Refusals and malformed calls come back as outputs.

    Args:
        tools: what the model has been given.
        item: a `shell_call`, `local_shell_call` or `function_call` item, or a tool call of Chat Completions; a call
            of a tool that is none of shellkit's (`custom_tool_call`, `apply_patch_call`, `mcp_approval_request`) is
            answered with a refusal.
        pass_gate: puts one command through the gate instead of `Tool.call`, for a loop that shows approvals.
        on_output: as in `Tool.call`; not used with `pass_gate`.

    Returns:
        An input item of the Responses API, or a `tool` message of Chat Completions: a dict, typed so that either
        client takes it.

    Raises:
        ValueError: nothing can be sent back: the call has no id, runs at OpenAI, or is none at all.
        asyncio.CancelledError: the calling task was cancelled.
    """
    call_id = _call_id(item)
    try:
        wanted, tool = commands(item), called_tool(tools, item)
    except MalformedCall as malformed:
        return refusal(item, str(malformed))
    if pass_gate is None:
        pass_gate = partial(_pass, on_output)
    return call_output(item, [await pass_gate(tool, arguments, call_id) for arguments in wanted])


def needs_answer(item: object) -> bool:
    """Return whether an item of a reply is a call that waits for an answer; one in a container of OpenAI's does not."""
    given = _mapping(item)
    ours = given.get("type") in (*_CALLS, *_FOREIGN)
    return ours and _part(given, "environment").get("type") != "container_reference"


def call_id_of(item: object) -> Any:
    """Return what the answer of a call names it by, as the model has it; "" if it has none."""
    given = _mapping(item)
    return given.get("id" if given.get("type") in ("function", "mcp_approval_request") else "call_id") or ""


def called_tool(tools: Tools, item: object) -> Tool:
    """Return the tool that a call is for: a function's by its name, for the API's own calls the `ShellTool`.

    Raises:
        MalformedCall: there is none.
    """
    given = _mapping(item)
    known = [tools] if isinstance(tools, Tool) else tools
    if given["type"] not in ("function_call", "function"):
        found = next((tool for tool in known if isinstance(tool, ShellTool)), None)
        if found is None:
            raise MalformedCall("Not run: there is no shell here; call one of the functions.")
        return found
    name = _function(given).get("name")
    for tool in known:
        if tool.name == name:
            return tool
    others = "the only one is" if len(known) == 1 else "there are"
    names = ", ".join(repr(tool.name) for tool in known)
    raise MalformedCall(f"Not run: there is no tool {reprlib.repr(name)}; {others} {names}.")


def commands(item: object) -> list[Mapping[str, Any] | str]:
    """Return the arguments for each call of the tool that an item asks for.

    Raises:
        MalformedCall: it asks for nothing that can be run.
    """
    given = _mapping(item)
    if given.get("status", "completed") != "completed":
        raise MalformedCall("Not run: the call did not arrive whole; send it again.")
    if given["type"] in ("function_call", "function"):
        return [_function(given).get("arguments") or "{}"]
    if given["type"] in _FOREIGN:
        raise MalformedCall(f"Not run: nothing here answers a {given['type']}; call the tools that you were given.")
    action = _part(given, "action")
    if given["type"] == "shell_call":
        return [_arguments(action, command) for command in _words(action, "commands")]
    if action.get("user"):
        raise MalformedCall("Not run: this shell cannot change the user; leave `user` out.")
    return [_arguments(action, _line(_words(action, "command"), _part(action, "env")))]


def call_output(
    item: object, outputs: Sequence[ToolOutput], *, status: Literal["completed", "incomplete"] = "completed"
) -> dict[str, Any]:
    """Return what answers a call.

    Args:
        item: the call.
        outputs: of its commands, in order.
        status: "incomplete" if the call was broken off.

    Raises:
        ValueError: as in `answer`.
    """
    given, call_id = _mapping(item), _call_id(item)
    if not outputs:
        raise ValueError("a call is answered by at least one output; `refusal` makes one")
    if given["type"] == "function":
        return {"role": "tool", "tool_call_id": call_id, "content": _text(outputs)}
    if given["type"] == "function_call":
        answered: dict[str, Any] = {"type": "function_call_output", "call_id": call_id, "output": _text(outputs)}
    elif given["type"] == "custom_tool_call":
        answered = {"type": "custom_tool_call_output", "call_id": call_id, "output": _text(outputs)}
    elif given["type"] == "apply_patch_call":
        answered = {"type": "apply_patch_call_output", "call_id": call_id, "status": "failed"}
        answered["output"] = _text(outputs)
    elif given["type"] == "mcp_approval_request":
        answered = {"type": "mcp_approval_response", "approval_request_id": call_id, "approve": False}
        answered["reason"] = _text(outputs)
    elif given["type"] == "local_shell_call":
        # The package's type has `id` only, "the ID of the call generated by the model"; the API's guide has `call_id`.
        answered = {"type": "local_shell_call_output", "id": call_id, "call_id": call_id, "status": status}
        answered["output"] = json.dumps(_flat(outputs[0]))
    else:
        answered = {"type": "shell_call_output", "call_id": call_id, "status": status}
        answered["output"] = [_output(output) for output in outputs]
        if (limit := _part(given, "action").get("max_output_length")) is not None:
            answered["max_output_length"] = limit
    if given.get("caller") is not None:
        answered["caller"] = given["caller"]
    return answered


def refusal(item: object, text: str) -> dict[str, Any]:
    """Return what answers a call of which nothing ran.

    Args:
        item: the call.
        text: tells the model why, and what to do instead.

    Raises:
        ValueError: as in `answer`.
    """
    return call_output(item, [ToolOutput(text=text, is_error=True)])


async def _pass(on_output: OnOutput | None, tool: Tool, arguments: Mapping[str, Any] | str, call_id: str) -> ToolOutput:
    return await tool.call(arguments, call_id=call_id, on_output=on_output)


def _mapping(item: object) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)  # a model of pydantic's, as the openai package makes them
    if dump is None:
        raise TypeError(f"an item must be an object of the openai package or a dict, not {type(item).__name__}")
    # The package takes replies as they come, wrong types included; what is wrong is told to the model, not warned of.
    dumped: Mapping[str, Any] = dump(warnings=False)
    return dumped


def _part(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = given.get(name)
    return part if isinstance(part, Mapping) else {}


def _function(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return given if given["type"] == "function_call" else _part(given, "function")  # in Chat Completions it is wrapped


def _call_id(item: object) -> str:
    given = _mapping(item)
    kind = given.get("type")
    if not needs_answer(given):
        why = "OpenAI runs it in its container" if kind in _CALLS else f"only {', '.join(_CALLS)} can be"
        raise ValueError(f"an item of type {kind!r} cannot be answered: {why}")
    call_id = call_id_of(given)
    if not isinstance(call_id, str) or not call_id:
        raise ValueError(f"a {kind} without an id cannot be answered: ask the model again without it")
    return call_id


def _words(action: Mapping[str, Any], name: str) -> Sequence[Any]:
    words = action.get(name)
    if not isinstance(words, Sequence) or isinstance(words, str) or not words:
        raise MalformedCall(f"Not run: the call holds no command; `{name}` must be a list with at least one string.")
    return words


def _arguments(action: Mapping[str, Any], command: object) -> dict[str, Any]:
    limit = action.get("timeout_ms")
    if isinstance(limit, int | float):  # what else it is, the gate refuses
        limit = max(-1, min(limit, _LONGEST)) / 1000
    return {"command": command, "timeout": limit, "workdir": action.get("working_directory")}


def _line(argv: Sequence[Any], env: Mapping[str, Any]) -> str:
    """Return the line that runs a program with arguments and variables, and nothing else.

    The first word is quoted where a shell would read more into it than a name: a keyword, an assignment.
    """
    if wrong := [word for word in [*argv, *env, *env.values()] if not isinstance(word, str)]:
        raise MalformedCall(f"Not run: `command` and `env` hold strings only, not {reprlib.repr(wrong[0])}.")
    if wrong := [name for name in env if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)]:
        raise MalformedCall(f"Not run: {reprlib.repr(wrong[0])} in `env` is no name of a variable.")
    assignments = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    first = shlex.quote(argv[0])
    if first == argv[0] and ("=" in first or first in KEYWORDS):
        first = f"'{first}'"
    return " ".join([*assignments, first, *map(shlex.quote, argv[1:])])


def _text(outputs: Sequence[ToolOutput]) -> str:
    return "\n".join(output.text for output in outputs)


def _output(output: ToolOutput) -> dict[str, Any]:
    """Return one command's output as the API has it; what a model must be told stands at the end of stderr."""
    result = output.result
    if result is None or output.is_error:
        code = None if result is None else result.exit_code
        outcome = {"type": "exit", "exit_code": _NOT_RUN if code is None else code}
        return {"stdout": "", "stderr": output.text, "outcome": outcome}
    stderr = clean(result.stderr)
    if result.remarks:
        stderr += "\n" * (stderr != "" and not stderr.endswith("\n")) + "".join(f"{line}\n" for line in result.remarks)
    code = _NOT_RUN if result.exit_code is None else result.exit_code
    ended = {"type": "timeout"} if result.timed_out else {"type": "exit", "exit_code": code}
    return {"stdout": clean(result.stdout), "stderr": stderr, "outcome": ended}


def _flat(output: ToolOutput) -> dict[str, Any]:
    given = _output(output)
    outcome = given.pop("outcome")
    timed_out = outcome["type"] == "timeout"
    return {**given, "exit_code": 124 if timed_out else outcome["exit_code"], "timed_out": timed_out}
