"""What the tool tells a model about itself: the description and the strict schema."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

import pytest
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, ConfigDict, Field

from shellkit.policy import READ_ONLY

FREE = {"approval": "never", "acknowledge_unsafe": True}


class Equivalent(BaseModel):
    """The arguments as one would write them for OpenAI's own function."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(description="...")
    timeout: float | None = Field(description="...")
    workdir: str | None = Field(description="...")


def _plain(schema: Any) -> Any:
    """Return a schema without its titles, and with its descriptions blanked."""
    if isinstance(schema, dict):
        kept = {key: _plain(value) for key, value in schema.items() if key != "title"}
        return {key: "..." if key == "description" and isinstance(value, str) else value for key, value in kept.items()}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema


def test_the_schema_is_strict(free: Any) -> None:
    """H1: the schema is what OpenAI's own function makes of the same arguments."""
    expected = _plain(to_strict_json_schema(Equivalent))
    del expected["description"]  # the docstring
    assert _plain(free.tool.parameters) == expected


def test_the_schema_says_what_is_meant(free: Any) -> None:
    """H1, to-values: each argument is described, the time-out with its unit; changing the copy changes nothing."""
    schema = free.tool.parameters
    properties = schema["properties"]
    assert "Seconds" in properties["timeout"]["description"]
    assert all(each["description"].endswith(".") for each in properties.values())
    json.dumps(schema)
    properties.clear()
    assert list(free.tool.parameters["properties"]) == ["command", "timeout", "workdir"]


def test_the_description_is_of_the_shell_that_runs(free: Any) -> None:
    """H1: system, shell with its version, idioms, directory and whether it persists, time-out, limit, approval."""
    asyncio.run(free.tool.probe())
    version = subprocess.run(["bash", "-c", "echo ${BASH_VERSION%%(*}"], capture_output=True, text=True).stdout.strip()
    text = free.tool.description
    for fact in (
        f"Commands run in bash {version}",
        f"Working directory: {free.workdir}",
        "so does cd",
        "stdin is empty",
        "A command is stopped after 30 s, or `timeout` seconds (at most 600).",
        "Output over 65536 bytes a stream",
        "Commands run without a question.",
        "Nothing is isolated",
    ):
        assert fact in text


@pytest.mark.parametrize(
    ("shell", "options", "fact"),
    [
        ({"mode": "stateless"}, FREE, "Each command runs in a fresh shell"),
        ({"timeout": None}, FREE, "stopped after 600 s, or `timeout` seconds (at most 600)."),
        ({"timeout": 5, "max_output_bytes": 100}, FREE, "stopped after 5 s"),
        ({"max_output_bytes": 100}, FREE, "Output over 100 bytes"),
        ({}, {"max_timeout": 7}, "stopped after 7 s, or `timeout` seconds (at most 7)."),
        ({}, {}, "A person approves every command"),
        ({}, {"approval": "policy", "policy": READ_ONLY}, "A policy decides which commands run"),
        ({}, {"description": "Mine."}, "Mine."),
    ],
)
def test_the_description_follows_the_options(bench: Any, shell: Any, options: Any, fact: str) -> None:
    """H1: what is set is what the model reads; a description of one's own replaces all of it."""
    text = bench(shell=shell, **options).tool.description
    assert fact in text
    assert ("description" in options) == (text == fact)


def test_describing_needs_no_shell(bench: Any) -> None:
    """H1: the description is there before the shell has been asked, and a shell that is gone costs no exception."""
    it = bench()
    it.shell.close()
    before = it.tool.description
    environment = asyncio.run(it.tool.probe())
    assert (environment.answered, it.tool.description) == (False, before)
    assert before.startswith("Run a command in a shell")


def test_the_name(bench: Any) -> None:
    """H1: the tool is called run_shell unless it is named otherwise, and so is its line in the audit log."""
    assert bench().tool.name == "run_shell"
    it = bench(name="build_box")
    it.call("ls")
    assert (it.tool.name, it.lines[0]["tool"]) == ("build_box", "build_box")
