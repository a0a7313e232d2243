"""What a model may send to the tool: the JSON schema, and the check of what it did send. Pydantic makes both.

The schema is strict in the sense of OpenAI's function calling: every property is required (null stands for
"not given"), and no other is accepted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs

from ..errors import InvalidCommand
from ..protocol.command import encode_command
from .base import Wanted

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Arguments", "InvalidArguments", "parameters", "parse"]


class InvalidArguments(Exception):
    """The model's arguments cannot be used; the message tells the model what the tool takes."""


@attrs.frozen(kw_only=True)
class Arguments(Wanted):
    """What a model asked for.

    Attributes:
        timeout: seconds, or None for the default.
    """

    timeout: float | None = None


@cache
def _model() -> type[BaseModel]:
    # Imported late: pydantic takes 100 ms, and a program that only runs commands needs no schema.
    from pydantic import BaseModel, ConfigDict, Field

    class ShellCommand(BaseModel):
        model_config = ConfigDict(extra="forbid", json_schema_extra=_strict)

        command: str = Field(description="The command to run: any shell text, several lines if need be.")
        timeout: float | None = Field(
            default=None, description="Seconds after which the command is stopped; null for the default."
        )
        workdir: str | None = Field(
            default=None,
            description="Directory to run this one command in, absolute or from where the session began; "
            "null for the current one.",
        )

    return ShellCommand


def _strict(schema: dict[str, Any]) -> None:
    schema.pop("title", None)
    for field in schema["properties"].values():
        field.pop("title", None)
        field.pop("default", None)
    schema["required"] = list(schema["properties"])


def parameters() -> dict[str, Any]:
    """Return the strict JSON schema of the tool's arguments."""
    return _model().model_json_schema()


def parse(arguments: object) -> Arguments:
    """Return what a model sent as values: a JSON object as text, or a mapping.

    Raises:
        InvalidArguments: they are something else, or a field is missing, wrong or unknown.
    """
    from pydantic import ValidationError

    try:
        given: Any = _model().model_validate(_mapping(arguments))
    except ValidationError as error:
        raise InvalidArguments(_explain(error)) from None
    command, timeout, workdir = given.command, given.timeout, given.workdir
    if timeout is not None and not 0 < timeout < math.inf:
        wrong = "positive" if timeout <= 0 else "finite"
        raise InvalidArguments(f"Not run: timeout must be a {wrong} number of seconds, or null for the default.")
    try:
        encode_command(command)
    except InvalidCommand as error:
        raise InvalidArguments(f"Not run: {error}.") from None
    if workdir is not None and re.search("[\0\ud800-\udfff]", workdir):
        raise InvalidArguments("Not run: workdir contains a NUL or a lone surrogate, which no path can; remove it.")
    return Arguments(command=command, timeout=timeout, workdir=workdir or None)  # "" is how some models spell null


def _mapping(arguments: object) -> Mapping[str, Any]:
    if isinstance(arguments, (str, bytes, bytearray)):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise InvalidArguments(f"The arguments are not JSON ({error}). {_TAKES}") from None
    if not isinstance(arguments, Mapping):
        kind = _JSON_NAMES.get(type(arguments), type(arguments).__name__)
        raise InvalidArguments(f"The arguments must be an object, not {kind}. {_TAKES}")
    if isinstance(arguments.get("timeout"), bool):
        raise InvalidArguments(f"Wrong arguments. timeout: {_NO_TIMEOUT}. {_TAKES}")  # pydantic takes true for 1
    return arguments if isinstance(arguments, dict) else dict(arguments)


_JSON_NAMES = {
    str: "a string",
    list: "a list",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}
_NO_TIMEOUT = "must be a number of seconds, or null"


_TAKES = 'The tool takes an object such as {"command": "ls -la", "timeout": null, "workdir": null}.'


def _explain(error: Any) -> str:
    faults = []
    for fault in error.errors(include_url=False, include_input=False)[:5]:
        name = ".".join(str(part) for part in fault["loc"]) or "arguments"
        faults.append(f"{name[:80]}: {_plain(name, fault)}")
    return f"Wrong arguments. {'; '.join(faults)}. {_TAKES}"


def _plain(name: str, fault: Mapping[str, Any]) -> str:
    if fault["type"] == "extra_forbidden":
        return "there is no such argument"
    if fault["type"] == "missing":
        return "is missing"
    if fault["type"] == "string_unicode":
        return "contains a lone surrogate, which is no character"
    if name == "timeout":
        return _NO_TIMEOUT
    if name == "command":
        return "must be one string, the text for the shell (an argument list is not accepted)"
    if name == "workdir":
        return "must be a string, or null"
    return str(fault["msg"])
