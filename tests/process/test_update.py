"""What a program has done, as a value: its text for a model, and its JSON (issue 5, 2)."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from shellkit import ProcessInfo, ProcessUpdate


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"process_id": 3, "output": "a\r\n"}, "a\n[still running, session_id 3, 1.50 s so far]"),
        (
            {"process_id": 3, "output": "\x1b[1m>>> ", "waits_for_input": True},
            ">>> \n[still running, session_id 3, 1.50 s so far; it waits for input]",
        ),
        (
            {"process_id": 3, "output": "\x1b[1;1Hmenu", "screen": "menu\n~"},
            "[its screen:]\nmenu\n~\n[still running, session_id 3, 1.50 s so far]",
        ),
        ({"exit_code": 0}, "[no new output]\n[exit code 0, ran 1.50 s]"),
        ({"exit_code": 143, "output": "a"}, "a\n[exit code 143, ran 1.50 s]"),
        ({"output": "a"}, "a\n[exit code unknown, ran 1.50 s]"),
        ({"exit_code": 0, "notes": ("b", "c")}, "[no new output]\n[exit code 0, ran 1.50 s]\n[note: b]\n[note: c]"),
        ({"exit_code": 0, "output": "a", "output_ref": "r"}, "a\n[exit code 0, ran 1.50 s]"),
        (
            {"exit_code": 0, "output": "a", "omitted": 9, "output_ref": "r"},
            "a\n[exit code 0, ran 1.50 s]\n[all of its output: read_output, ref r]",
        ),
    ],
)
def test_what_a_model_reads(fields: dict[str, Any], text: str) -> None:
    """Codex, structured result: the text says exactly one of: it runs on, and by which number; how it ended."""
    update = ProcessUpdate(command="x", runtime=1.5, **fields)
    assert update.for_model() == text
    assert update.running is ("process_id" in fields)


def test_it_is_cut_to_tokens() -> None:
    """Issue 5, 5: head and tail are kept, and how to read the rest is said if it can be read."""
    update = ProcessUpdate(command="x", exit_code=0, output="a" * 1000, output_ref="r")
    text = update.for_model(max_tokens=20)
    assert "tokens omitted" in text
    assert text.startswith("aaa")
    assert "read_output, ref r" in text
    assert len(update.for_model(max_tokens=5, count_tokens=len)) < len(text)


def test_it_goes_into_json() -> None:
    """Contract A: every field is a plain value."""
    update = ProcessUpdate(command="x", process_id=1, output="\ufffd", notes=("n",))
    assert json.loads(json.dumps(update.to_dict(), allow_nan=False))["notes"] == ["n"]
    assert set(update.to_dict()) == {field.name for field in attrs.fields(ProcessUpdate)}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "session_id 7: make -j [running, 2.0 s]"),
        ({"waits_for_input": True}, "session_id 7: make -j [waits for input, 2.0 s]"),
        ({"running": False, "exit_code": 2}, "session_id 7: make -j [ended with exit code 2, 2.0 s]"),
        ({"running": False}, "session_id 7: make -j [ended, 2.0 s]"),
    ],
)
def test_what_a_list_says(fields: dict[str, Any], text: str) -> None:
    """Issue 5, 3: one line for each program, whatever its command looks like."""
    assert ProcessInfo(process_id=7, command="make\n  -j", runtime=2.0, **fields).for_model() == text
    long = ProcessInfo(process_id=7, command="x" * 1000, **fields).for_model()
    assert len(long) < 300
