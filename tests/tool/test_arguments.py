"""What models send: malformed arguments of every kind, time-outs of every kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

TAKES = '{"command": "ls -la", "timeout": null, "workdir": null}'
RAN = {"command": "touch a"}

MALFORMED: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "command: is missing"),
    "no object": (None, "must be an object, not null"),
    "a number": (5, "must be an object, not a number"),
    "a list": (["touch a"], "must be an object, not a list"),
    "a list as text": ('["touch a"]', "must be an object, not a list"),
    "a tuple": (("touch", "a"), "must be an object, not tuple"),
    "a bare command": ("touch a", "are not JSON"),
    "a quoted command": ('"touch a"', "must be an object, not a string"),
    "JSON in JSON": (json.dumps(json.dumps(RAN)), "must be an object, not a string"),
    "half of it": ('{"command": "touch a', "are not JSON"),
    "empty": ("", "are not JSON"),
    "no UTF-8": (b"\xff", "are not JSON"),
    "deep": ('{"command":' * 100_000, "are not JSON"),
    "deep lists": ("[" * 100_000, "are not JSON"),
    "another name": ({"cmd": "touch a"}, "command: is missing; cmd: there is no such argument"),
    "one more": ({**RAN, "bogus": 1}, "bogus: there is no such argument"),
    "many more": ({**RAN, **{f"k{number}": 1 for number in range(10_000)}}, "k4: there is no such argument"),
    "a long name": ({**RAN, "k" * 1_000_000: 1}, "there is no such argument"),
    "a name that is none": ({**RAN, 1: 2}, "1: Keys should be strings"),
    "a surrogate as a name": ({**RAN, "\ud800": 1}, "lone surrogate"),
    "an argument list": ({"command": ["touch", "a"]}, "must be one string"),
    "a number as a command": ({"command": 42}, "must be one string"),
    "an object as a command": ({"command": {"cmd": "touch a"}}, "must be one string"),
    "null as a command": ({"command": None}, "must be one string"),
    "a number as a workdir": ({**RAN, "workdir": 5}, "workdir: must be a string"),
    "text as a time-out": ({**RAN, "timeout": "soon"}, "timeout: must be a number of seconds"),
    "a list as a time-out": ({**RAN, "timeout": [1]}, "timeout: must be a number of seconds"),
    "true as a time-out": ({**RAN, "timeout": True}, "timeout: must be a number of seconds"),
    "digits without end": ({**RAN, "timeout": 10**400}, "timeout: must be a number of seconds"),
    "digits JSON refuses": ('{"command": "touch a", "timeout": ' + "9" * 5000 + "}", "are not JSON"),
}
UNFIT: dict[str, tuple[Any, str]] = {
    "NUL": ({"command": "touch a\0b"}, "NUL"),
    "a surrogate": ({"command": "touch \ud800"}, "lone surrogate"),
    "a surrogate in JSON": ('{"command": "touch \\ud800"}', "lone surrogate"),
    "a byte of PEP 383": ({"command": "touch \udc80"}, "lone surrogate"),
    "huge": ({"command": "touch a # " + "x" * 11_000_000}, "write it to a file"),
    "NUL in workdir": ({**RAN, "workdir": "a\0b"}, "NUL"),
    "a surrogate in workdir": ({**RAN, "workdir": "\ud800"}, "lone surrogate"),
    "time-out 0": ({**RAN, "timeout": 0}, "positive number of seconds"),
    "time-out -5": ({**RAN, "timeout": -5}, "positive number of seconds"),
    "time-out NaN": ('{"command": "touch a", "timeout": NaN}', "finite number of seconds"),
    "time-out Infinity": ('{"command": "touch a", "timeout": Infinity}', "finite number of seconds"),
    "time-out 1e400": ('{"command": "touch a", "timeout": 1.0e400}', "finite number of seconds"),
    "time-out 'inf'": ({**RAN, "timeout": "inf"}, "finite number of seconds"),
}


@pytest.mark.parametrize("kind", [*MALFORMED, *UNFIT])
def test_malformed_arguments(free: Any, kind: str) -> None:
    """H4, call-wrong-types: a text that says what the tool takes; nothing ran, the session is usable."""
    raw, expected = (MALFORMED | UNFIT)[kind]
    output = free.call(raw=raw)
    assert (output.is_error, output.result) == (True, None)
    assert expected in output.text
    assert (TAKES in output.text) is (kind in MALFORMED)
    assert len(output.text) < 2000
    json.dumps(output.to_dict(), allow_nan=False, ensure_ascii=False).encode()
    assert free.made == []
    assert free.usable()


@pytest.mark.parametrize(
    "raw",
    [
        {"command": "touch a"},
        {"command": "touch a", "timeout": None, "workdir": None},
        {"command": "touch a", "workdir": ""},
        '{"command": "touch a"}',
        b'{"command": "touch a", "timeout": null}',
        ' {"command": "touch a", "timeout": "30"}\n',
    ],
)
def test_readings(free: Any, raw: Any) -> None:
    """H10, call-wrong-types: left out, null and (for workdir) "" mean the default; a number may be in quotes."""
    free.shell.run("mkdir sub; cd sub")
    output = free.call(raw=raw)
    assert output.result.exit_code == 0
    assert [path.name for path in (free.workdir / "sub").iterdir()] == ["a"]


@pytest.mark.parametrize("command", ["", " \n", "# nothing"])
def test_an_empty_command_is_a_command(free: Any, command: str) -> None:
    """B1: what does nothing does it through the tool, too."""
    assert free.call(command).text.startswith("[no output]\n[exit code 0, ")


@pytest.mark.parametrize("raw", [{"command": "sleep 100"}, {"command": "sleep 100", "timeout": None}])
def test_the_default_time_out(bench: Any, raw: Any) -> None:
    """H10: a time-out that is absent or null is the executor's default."""
    it = bench(shell={"timeout": 0.2}, approval="never", acknowledge_unsafe=True)
    output = it.call(raw=raw)
    assert output.result.timed_out
    assert "reduced" not in output.text


def test_a_short_time_out(free: Any) -> None:
    """to-values: half a second is not rounded to none."""
    output = free.call("sleep 100", timeout=0.2)
    assert (output.is_error, output.result.timed_out, output.result.exit_code) == (False, True, 124)
    assert 0.2 <= output.result.duration < 2.2


def test_a_time_out_over_the_most(bench: Any) -> None:
    """H10, to-operator-ceiling: more than max_timeout is capped; the note says so in the result and in the text."""
    it = bench(max_timeout=0.2, approval="never", acknowledge_unsafe=True)
    output = it.call("sleep 100", timeout=3600)
    assert output.result.timed_out
    assert output.result.notes[-1] == "The time-out was reduced from 3600 s to the most, 0.2 s."
    assert output.text.endswith("\n[note: The time-out was reduced from 3600 s to the most, 0.2 s.]")
    assert it.call("echo hi", timeout=180_000).text.startswith("hi\n")


@pytest.mark.parametrize("default", [None, 3600.0])
def test_the_most_holds_for_the_default(bench: Any, default: float | None) -> None:
    """H10: a default over max_timeout, or none, is the most; nobody asked for more, so there is no note."""
    it = bench(shell={"timeout": default}, max_timeout=0.2, approval="never", acknowledge_unsafe=True)
    output = it.call("sleep 100")
    assert output.result.timed_out
    assert "reduced" not in output.text
