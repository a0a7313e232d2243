"""What a model may send to the tools for programs: their schemas, and their arguments as values.

Names and units are those that models know from Codex (`cmd`, `session_id`, `chars`, `yield_time_ms`); `until` is ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import attrs

from ..output.search import LinePattern
from ..sessions.spill.page import PageRequest
from .base import Wanted
from .schema import InvalidArguments, Schema, check_command, check_workdir, not_bool, strict

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "EXEC_COMMAND",
    "LIST_PROCESSES",
    "READ_OUTPUT",
    "STOP_PROCESS",
    "WRITE_STDIN",
    "Launch",
    "Look",
    "Page",
    "parse_launch",
    "parse_look",
    "parse_page",
]

#: Seconds that a call may wait, least and most, as in Codex: shorter ones burn turns, longer ones hang the loop.
_LAUNCH_YIELD = (0.25, 30.0)
_POLL_YIELD = (5.0, 300.0)
_DEFAULT_LAUNCH_YIELD = 10.0
#: Who says what to wait for wants it waited for.
_DEFAULT_UNTIL_YIELD = 30.0
_DEFAULT_TOKENS = 10_000


@attrs.frozen(kw_only=True)
class Look(Wanted):
    """How long to wait for news of a program, and how much of them to tell.

    Attributes:
        process_id: the program; 0 for one that is about to be launched.
        yield_time: seconds to wait at most, within the bounds.
        shortened_from: seconds that the model asked for, if it was too much.
        until: "exit", a regular expression, or None.
        max_tokens: tokens of output to tell.
    """

    process_id: int = 0
    yield_time: float
    shortened_from: float | None = None
    until: str | None = None
    max_tokens: int = _DEFAULT_TOKENS


@attrs.frozen(kw_only=True)
class Launch(Look):
    """A program to launch.

    Attributes:
        tty: whether it gets a terminal.
    """

    tty: bool = False


def _yield_field(default: str) -> Any:
    from pydantic import Field

    return Field(
        default=None,
        description=f"Milliseconds to wait for output before the call returns; the program runs on. {default}",
    )


def _tokens_field() -> Any:
    from pydantic import Field

    return Field(
        default=None,
        description="How much output to return; the beginning and the end are kept. "
        f"Null for {_DEFAULT_TOKENS:,} tokens.",
    )


def _until_field() -> Any:
    from pydantic import Field

    return Field(
        default=None,
        description="What to wait for, up to yield_time_ms: 'exit' (the end of the program), or a regular expression "
        "that a line of its new output matches, such as 'Listening on'. Null returns as soon as the program ends or "
        "waits for input.",
    )


def _exec_command() -> type[BaseModel]:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

    class ExecCommand(BaseModel):
        model_config = ConfigDict(extra="forbid", json_schema_extra=strict)

        cmd: str = Field(description="The command to run, as text for the shell.")
        tty: bool | None = Field(
            default=None,
            description="True gives it a terminal (REPLs, editors, password prompts, full-screen programs); "
            "null or false gives it pipes.",
        )
        workdir: str | None = Field(
            default=None, description="Directory to start in; null for where the shell of run_shell stands."
        )
        yield_time_ms: Annotated[float | None, BeforeValidator(not_bool)] = _yield_field(
            "250 to 30000; null for 10000, or 30000 with until."
        )
        max_output_tokens: Annotated[int | None, BeforeValidator(not_bool)] = _tokens_field()
        until: str | None = _until_field()

    return ExecCommand


def _write_stdin() -> type[BaseModel]:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

    class WriteStdin(BaseModel):
        model_config = ConfigDict(extra="forbid", json_schema_extra=strict)

        session_id: Annotated[int, BeforeValidator(not_bool)] = Field(description="Which program, from exec_command.")
        chars: str | None = Field(
            default=None,
            description="What to type, exactly: end a line with \\n; \\u0003 is Ctrl-C, \\u0004 Ctrl-D. Null or empty "
            "types nothing and only waits for news.",
        )
        yield_time_ms: Annotated[float | None, BeforeValidator(not_bool)] = _yield_field(
            "250 to 30000 with chars, null for 250; 5000 to 300000 without, null for 5000; null with until for 30000."
        )
        max_output_tokens: Annotated[int | None, BeforeValidator(not_bool)] = _tokens_field()
        until: str | None = _until_field()

    return WriteStdin


def _list_processes() -> type[BaseModel]:
    from pydantic import BaseModel, ConfigDict

    class ListProcesses(BaseModel):
        model_config = ConfigDict(extra="forbid", json_schema_extra=strict)

    return ListProcesses


def _stop_process() -> type[BaseModel]:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

    class StopProcess(BaseModel):
        model_config = ConfigDict(extra="forbid", json_schema_extra=strict)

        session_id: Annotated[int, BeforeValidator(not_bool)] = Field(description="Which program, from exec_command.")

    return StopProcess


def _read_output() -> type[BaseModel]:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

    number = Annotated[int | None, BeforeValidator(not_bool)]

    class ReadOutput(BaseModel):
        model_config = ConfigDict(extra="forbid", json_schema_extra=strict)

        ref: str = Field(description="Which output: the ref that an answer has named.")
        offset: number = Field(default=None, description="Byte to begin at; with pattern, where to begin to search.")
        limit: number = Field(default=None, description="Bytes to return; null for 16384.")
        first_line: number = Field(default=None, description="Line to begin at, counted from 1.")
        last_line: number = Field(default=None, description="Line to end at; null for the first one alone.")
        pattern: str | None = Field(
            default=None, description="Show only the lines that match this regular expression, with their numbers."
        )
        context: number = Field(default=None, description="Lines to show before and after each match; null for 0.")
        tail: number = Field(default=None, description="Show this many lines from the end.")

    return ReadOutput


_COMMON: Mapping[str, str] = {
    "yield_time_ms": "must be a number of milliseconds, or null",
    "max_output_tokens": "must be a whole number, or null",
    "until": "must be 'exit', a regular expression, or null",
    "session_id": "must be the whole number that exec_command returned",
}

EXEC_COMMAND = Schema(
    _exec_command,
    '{"cmd": "python3", "tty": true, "workdir": null, "yield_time_ms": null, "max_output_tokens": null, "until": null}',
    {
        **_COMMON,
        "cmd": "must be one string, the text for the shell (an argument list is not accepted)",
        "tty": "must be true, false or null",
        "workdir": "must be a string, or null",
    },
)
WRITE_STDIN = Schema(
    _write_stdin,
    '{"session_id": 1, "chars": "print(6*7)\\n", "yield_time_ms": null, "max_output_tokens": null, "until": null}',
    {**_COMMON, "chars": "must be a string, or null"},
)
LIST_PROCESSES = Schema(_list_processes, "{}", {})
STOP_PROCESS = Schema(_stop_process, '{"session_id": 1}', _COMMON)
_NUMBER = "must be a whole number, or null"
READ_OUTPUT = Schema(
    _read_output,
    '{"ref": "...", "offset": null, "limit": null, "first_line": null, "last_line": null, "pattern": "error", '
    '"context": 2, "tail": null}',
    {
        "ref": "must be the text that an answer has named",
        "pattern": "must be a regular expression, or null",
        **dict.fromkeys(("offset", "limit", "first_line", "last_line", "context", "tail"), _NUMBER),
    },
)


def parse_launch(arguments: object, here: str) -> Launch:
    """Return what a model sent to `exec_command`.

    Args:
        arguments: what it sent.
        here: where the shell stands.

    Raises:
        InvalidArguments: see `Schema.read`.
    """
    given = EXEC_COMMAND.read(arguments)
    check_command(given.cmd)
    # The directory is settled now: what is approved for a directory must not start in another one.
    workdir = check_workdir(given.workdir) or here
    waiting = _waiting(given, _DEFAULT_LAUNCH_YIELD, _LAUNCH_YIELD)
    return Launch(command=given.cmd, workdir=workdir, tty=bool(given.tty), **waiting)


def parse_look(given: Any) -> dict[str, Any]:
    """Return how long to wait for what, of checked arguments of `write_stdin`.

    Raises:
        InvalidArguments: there is something that cannot be typed or waited for.
    """
    if given.chars and re.search("[\ud800-\udfff]", given.chars):
        raise InvalidArguments("Not run: chars contains a lone surrogate, which is no character; remove it.")
    bounds = _LAUNCH_YIELD if given.chars else _POLL_YIELD
    return {"process_id": given.session_id, **_waiting(given, bounds[0], bounds)}


@attrs.frozen(kw_only=True)
class Page(Wanted):
    """A part of an output.

    Attributes:
        ref: which output.
        part: which part, as arguments of `read_output`.
    """

    ref: str
    part: Mapping[str, Any]


def parse_page(arguments: object, granted: str) -> Page:
    """Return what a model sent to `read_output`."""
    given = READ_OUTPUT.read(arguments)
    first, last = given.first_line, given.last_line
    if first is None and last is not None:
        raise InvalidArguments("Not run: last_line needs first_line.")
    part = {
        "offset": given.offset,
        "limit": given.limit,
        "lines": None if first is None else (first, first if last is None else last),
        "pattern": given.pattern or None,
        "context": given.context or 0,
        "tail": given.tail,
    }
    try:
        PageRequest.of(**part)
    except (TypeError, ValueError) as error:
        raise InvalidArguments(f"Not run: {error}.") from None
    return Page(command="", reader=f"the output {given.ref[:80]}", granted=granted, ref=given.ref, part=part)


def _waiting(given: Any, default: float, bounds: tuple[float, float]) -> dict[str, Any]:
    if given.until:
        default = _DEFAULT_UNTIL_YIELD
    wanted = default if given.yield_time_ms is None else given.yield_time_ms / 1000
    if math.isnan(wanted):
        raise InvalidArguments("Not run: yield_time_ms must be a number of milliseconds, or null.")
    if given.until and given.until != "exit":
        try:
            LinePattern(given.until)
        except ValueError as error:
            raise InvalidArguments(f"Not run: until: {error}.") from None
    if given.max_output_tokens is not None and given.max_output_tokens < 1:
        raise InvalidArguments("Not run: max_output_tokens must be 1 or more, or null.")
    least, most = bounds
    return {
        "yield_time": min(max(wanted, least), most),
        "shortened_from": wanted if wanted > most else None,
        "until": given.until or None,
        "max_tokens": given.max_output_tokens or _DEFAULT_TOKENS,
    }
