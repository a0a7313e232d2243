"""What a model may send to a tool: the JSON schema, and the check of what it did send. Pydantic makes both.

The schema is strict in the sense of OpenAI's function calling: every property is required (null stands for
"not given"), and no other is accepted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import attrs

from ..errors import InvalidCommand
from ..protocol.command import encode_command
from .base import Wanted

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "SHELL_COMMAND",
    "Arguments",
    "InvalidArguments",
    "Schema",
    "check_command",
    "check_workdir",
    "not_bool",
    "parse",
    "strict",
]


class InvalidArguments(Exception):
    """The model's arguments cannot be used; the message tells the model what the tool takes."""


class Schema:
    """The arguments of one tool.

    Args:
        model: makes the pydantic model. Called late: importing pydantic takes 100 ms, and a program that only runs
            commands needs no schema.
        example: arguments as JSON, for messages.
        wanted: for each name, what it must be, in words for a model.
    """

    def __init__(self, model: Callable[[], type[BaseModel]], example: str, wanted: Mapping[str, str]) -> None:
        self._make_model = model
        self._takes = f"The tool takes an object such as {example}."
        self._wanted = wanted

    @cached_property
    def _model(self) -> type[BaseModel]:
        return self._make_model()

    @cached_property
    def _text(self) -> str:
        return json.dumps(self._model.model_json_schema())  # which takes pydantic a millisecond

    def parameters(self) -> dict[str, Any]:
        """Return the strict JSON schema of the arguments."""
        parameters: dict[str, Any] = json.loads(self._text)  # a fresh one: frameworks write into what they get
        return parameters

    def read(self, arguments: object) -> Any:
        """Return what a model sent as an instance of the model: a JSON object as text, or a mapping.

        Raises:
            InvalidArguments: they are something else, or a field is missing, wrong or unknown.
        """
        given = self.mapping(arguments)
        from pydantic import ValidationError

        try:
            return self._model.model_validate(given)
        except ValidationError as error:
            raise InvalidArguments(self._explain(error)) from None

    def mapping(self, arguments: object) -> Mapping[str, Any]:
        """Return what a model sent as a mapping, its names and values unchecked.

        Raises:
            InvalidArguments: it is none.
        """
        if isinstance(arguments, dict):
            return arguments
        if isinstance(arguments, (str, bytes, bytearray)):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError) as error:
                raise InvalidArguments(f"The arguments are not JSON ({error}). {self._takes}") from None
        if not isinstance(arguments, Mapping):
            kind = _JSON_NAMES.get(type(arguments), type(arguments).__name__)
            raise InvalidArguments(f"The arguments must be an object, not {kind}. {self._takes}")
        return dict(arguments)

    def _explain(self, error: Any) -> str:
        faults = []
        for fault in error.errors(include_url=False, include_input=False)[:5]:
            name = str(fault["loc"][0]) if fault["loc"] else "arguments"
            faults.append(f"{name[:80]}: {self._plain(name, fault)}")
        return f"Wrong arguments. {'; '.join(faults)}. {self._takes}"

    def _plain(self, name: str, fault: Mapping[str, Any]) -> str:
        if fault["type"] == "extra_forbidden":
            return "there is no such argument"
        if fault["type"] == "missing":
            return "is missing"
        if fault["type"] == "string_unicode":
            return "contains a lone surrogate, which is no character"
        return self._wanted.get(name) or str(fault["msg"])


_JSON_NAMES = {
    str: "a string",
    list: "a list",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def strict(schema: dict[str, Any]) -> None:
    """Make pydantic's schema strict; for `json_schema_extra`."""
    schema.pop("title", None)
    for field in schema["properties"].values():
        field.pop("title", None)
        field.pop("default", None)
    schema["required"] = list(schema["properties"])


def not_bool(value: object) -> object:
    """Refuse what pydantic would take for 1 or 0; a validator for numbers."""
    if isinstance(value, bool):
        raise ValueError("is no number")  # noqa: TRY004  (pydantic makes a fault of a ValueError only)
    return value


def check_command(command: str) -> None:
    """Check that a shell can be given the text."""
    try:
        encode_command(command)
    except InvalidCommand as error:
        raise InvalidArguments(f"Not run: {error}.") from None


def check_workdir(workdir: str | None) -> str | None:
    """Return the directory, or None for the current one ("" is how some models spell null)."""
    if workdir is not None and re.search("[\0\ud800-\udfff]", workdir):
        raise InvalidArguments("Not run: workdir contains a NUL or a lone surrogate, which no path can; remove it.")
    return workdir or None


# -- run_shell ---------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Arguments(Wanted):
    """What a model asked for.

    Attributes:
        timeout: seconds, or None for the default.
    """

    timeout: float | None = None


def _shell_command() -> type[BaseModel]:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

    class ShellCommand(BaseModel):
        model_config = ConfigDict(extra="forbid", json_schema_extra=strict)

        command: str = Field(description="The command to run: any shell text, several lines if need be.")
        timeout: Annotated[float | None, BeforeValidator(not_bool)] = Field(
            default=None, description="Seconds after which the command is stopped; null for the default."
        )
        workdir: str | None = Field(
            default=None,
            description="Directory to run this one command in, absolute or from where the session began; "
            "null for the current one.",
        )

    return ShellCommand


SHELL_COMMAND = Schema(
    _shell_command,
    '{"command": "ls -la", "timeout": null, "workdir": null}',
    {
        "command": "must be one string, the text for the shell (an argument list is not accepted)",
        "timeout": "must be a number of seconds, or null",
        "workdir": "must be a string, or null",
    },
)


def parse(arguments: object) -> Arguments:
    """Return what a model sent to `run_shell` as values.

    Raises:
        InvalidArguments: see `Schema.read`.
    """
    command, timeout, workdir = _values(SHELL_COMMAND.mapping(arguments))
    if timeout is not None and not 0 < timeout < math.inf:
        wrong = "positive" if timeout <= 0 else "finite"
        raise InvalidArguments(f"Not run: timeout must be a {wrong} number of seconds, or null for the default.")
    check_command(command)
    return Arguments(command=command, timeout=timeout, workdir=check_workdir(workdir))


def _values(given: Mapping[str, Any]) -> tuple[str, float | None, str | None]:
    if given.keys() == _NAMES:
        command, timeout, workdir = given["command"], given["timeout"], given["workdir"]
        # What models send nearly always; pydantic reads the rest, and takes 25 us when the caches are cold.
        if type(command) is str and command.isascii() and timeout is None and workdir is None:
            return command, timeout, workdir
    read = SHELL_COMMAND.read(given)
    return read.command, read.timeout, read.workdir


_NAMES = frozenset({"command", "timeout", "workdir"})
