"""`shellkit ps`: the programs of this user's agents, sub-agents included."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shellkit.testing.openai_server import OpenAIServer, StartServer
from shellkit.testing.scripted_model import Hang, Step, function_call, message

Shellkit = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def environ(environ: dict[str, str]) -> Iterator[dict[str, str]]:
    """An environment in which no other agents of the developer's are found."""
    with tempfile.TemporaryDirectory() as directory:  # a short name: unix(7) allows 108 bytes
        yield {**environ, "XDG_RUNTIME_DIR": directory, "OPENAI_API_KEY": "x"}


def script(body: dict[str, Any]) -> Step:
    """A model that launches a program, then a sub-agent that does so too; then neither goes on."""
    said = str(body["input"][-1])
    if body["model"] == "child":
        return Hang() if "session_id 1" in said else [function_call("exec_command", {"cmd": "cat", "tty": True})]
    if "function_call_output" not in said:
        return [function_call("exec_command", {"cmd": "sleep 1000", "until": "x", "yield_time_ms": 250})]
    return [function_call("run_shell", {"command": "shellkit agent --model child x", "timeout": 60, "workdir": None})]


def started(start: Start, server: OpenAIServer, eventually: Callable[..., None]) -> subprocess.Popen[bytes]:
    """Start an agent, and return it when its sub-agent's program runs."""
    agent = start("agent", "--base-url", server.base_url, "--model", "m", "--approve", "never", "go")
    eventually(lambda: len(server.model.requests) == 4, seconds=30)
    return agent


def test_programs_are_listed(
    start: Start, shellkit: Shellkit, openai_server: StartServer, eventually: Callable[..., None]
) -> None:
    """Issue 5.7: the live programs of a running agent and of its sub-agents are listed; of one that ended, none."""
    agent = started(start, openai_server(script), eventually)
    listed = shellkit("ps")
    head, *rows = listed.stdout.splitlines()
    assert head.split() == ["AGENT", "SUB", "ID", "PID", "TIME", "STATE", "COMMAND"]
    (mine,) = [row for row in rows if row.startswith(str(agent.pid))]
    (child,) = [row for row in rows if row != mine]
    assert re.fullmatch(r"\d+ +1 +(\d+) +0:00:\d\d +runs +sleep 1000", mine)
    assert re.fullmatch(r"\d+ +1 +1 +(\d+) +0:00:\d\d +waits for input +cat", child)
    assert os.path.exists(f"/proc/{mine.split()[2]}")
    agent.send_signal(signal.SIGTERM)
    agent.communicate(timeout=30)
    listed = shellkit("ps")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "no program runs\n", "")


def test_where_the_temporary_directory_has_a_long_name(
    start: Start,
    shellkit: Shellkit,
    openai_server: StartServer,
    eventually: Callable[..., None],
    environ: dict[str, str],
) -> None:
    """Issue 5.7: without XDG_RUNTIME_DIR, an agent whose sockets have no room below TMPDIR is found all the same."""
    environ["TMPDIR"] = os.path.join(environ.pop("XDG_RUNTIME_DIR"), "x" * 90)
    os.mkdir(environ["TMPDIR"])
    agent = started(start, openai_server(script), eventually)
    listed = shellkit("ps").stdout
    assert re.search(rf"^{agent.pid} .* sleep 1000$", listed, re.MULTILINE)
    assert re.search(r"^\d+ +1 +1 .* cat$", listed, re.MULTILINE)
    agent.send_signal(signal.SIGTERM)
    agent.communicate(timeout=30)
    assert not re.search(rf"^{agent.pid} ", shellkit("ps").stdout, re.MULTILINE)


def test_a_killed_agent(
    start: Start,
    shellkit: Shellkit,
    openai_server: StartServer,
    eventually: Callable[..., None],
    environ: dict[str, str],
) -> None:
    """Issue 5.7: an agent that was killed, as its programs are with it, is found no more, and leaves no socket."""
    agent = started(start, openai_server(script), eventually)
    agent.kill()
    agent.communicate(timeout=30)
    place = os.path.join(environ["XDG_RUNTIME_DIR"], f"shellkit-{os.geteuid()}")
    eventually(lambda: not os.listdir(place), seconds=30)
    assert shellkit("ps").stdout == "no program runs\n"


def test_an_agent_that_is_stopped(
    start: Start, shellkit: Shellkit, openai_server: StartServer, eventually: Callable[..., None]
) -> None:
    """Issue 5.7: one that cannot answer is named, and the others are listed all the same."""
    server = openai_server([Hang()])
    agent = start("agent", "--base-url", server.base_url, "--model", "m", "go")
    eventually(lambda: server.model.requests, seconds=30)
    agent.send_signal(signal.SIGSTOP)
    listed = shellkit("ps")
    assert listed.returncode == 0
    assert f"shellkit: note: agent {agent.pid} does not answer" in listed.stderr
    agent.send_signal(signal.SIGCONT)
    agent.send_signal(signal.SIGTERM)
    agent.communicate(timeout=30)


def open_to_others(environ: dict[str, str]) -> None:
    """Make the directory of the sockets one that others can enter."""
    path = os.path.join(environ["XDG_RUNTIME_DIR"], f"shellkit-{os.geteuid()}")
    os.mkdir(path)
    os.chmod(path, 0o755)


def test_a_directory_that_cannot_be_trusted(shellkit: Shellkit, environ: dict[str, str]) -> None:
    """Bad input: where others may have been, nothing is read; one line says so, and the exit code is 2."""
    open_to_others(environ)
    refused = shellkit("ps")
    assert refused.returncode == 2
    assert "is open to others, or is theirs; remove it" in refused.stderr


def test_an_agent_that_cannot_be_found(shellkit: Shellkit, openai_server: StartServer, environ: dict[str, str]) -> None:
    """Issue 5.7: an agent does its task though it cannot be found; the log says why."""
    open_to_others(environ)
    server = openai_server([[message("done")]])
    done = shellkit("agent", "--base-url", server.base_url, "--model", "m", "--log", "log", "go")
    assert (done.returncode, done.stdout) == (0, "done\n")
    with open(os.path.join(environ["HOME"], "log")) as log:
        assert "`shellkit ps` will not list this agent" in log.read()
