"""Sub-agents as a model starts them: `shellkit agent TASK` in the shell of another one, each a process of its own."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shellkit.testing.openai_server import OpenAIServer, StartServer
from shellkit.testing.scripted_model import Failure, Hang, Item, Step, function_call, message

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]

KEY = "sk-very-secret-0123456789"


def run(command: str, timeout: float | None = None) -> list[Item]:
    """Return the step of a model that wants a command to run."""
    return [function_call("run_shell", {"command": command, "timeout": timeout, "workdir": None})]


def parts(body: dict[str, Any]) -> tuple[str, str]:
    """Return what the user says and what the last call came to, as far as a request holds them."""
    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    said = "".join(str(item["content"]) for item in items if item.get("role") == "user")
    outputs = [str(item["output"]) for item in items if item.get("type") == "function_call_output"]
    return said, outputs[-1] if outputs else ""


def parent_of(*steps: list[Item], child: Callable[[str, str], Step]) -> Callable[[dict[str, Any]], Step]:
    """Return the script of a first agent that does the steps; its sub-agents have the model "child"."""
    left = [*steps, [message("all done")]]
    return lambda body: left.pop(0) if body["model"] == "m" else child(*parts(body))


def start(shellkit: Shellkit, server: OpenAIServer, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the first agent; its model is called "m"."""
    words = ["agent", "--base-url", server.base_url, "--model", "m", "--approve", "never", *more, "go"]
    return shellkit(*words, env={"OPENAI_API_KEY": KEY})


def outputs(server: OpenAIServer) -> list[str]:
    """Return what the calls of the first agent came to."""
    return [output for body in server.model.requests if body["model"] == "m" and (output := parts(body)[1])]


def test_a_key_that_only_the_first_agent_can_mend(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4.4: a sub-agent whose model is refused says that the key is the first agent's."""

    def child(said: str, output: str) -> Step:
        return Failure(401, f"Incorrect API key provided: {KEY}")

    server = openai_server(parent_of(run("shellkit agent --model child count; echo $?"), child=child))
    assert start(shellkit, server).returncode == 0
    (told,) = outputs(server)
    assert "does not accept the API key" in told
    assert "the user of the first agent must mend it there" in told
    assert KEY not in told
    assert told.startswith("2\n")


def test_two_sub_agents_count_side_by_side(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 4, the seed's task: two sub-agents count files at once, and the parent writes their sum to results.txt."""
    for name, count in (("left", 3), ("right", 4)):
        (tmp_path / name).mkdir()
        for number in range(count):
            (tmp_path / name / str(number)).touch()
    both = threading.Barrier(2)

    def script(body: dict[str, Any]) -> Step:
        said, output = parts(body)
        if said == "go":
            return run(
                "shellkit agent 'count left' > a & shellkit agent 'count right' > b & wait\n"
                "echo $(($(cat a) + $(cat b))) > results.txt; cat results.txt",
                timeout=120,
            )
        if said:
            both.wait(30)  # neither goes on before the other has asked
            return run(f"ls {said.removeprefix('count ')} | wc -l")
        return [message(f"{output.split()[0]}" if output.split()[0] in "34" else "The sum is 7.")]

    server = openai_server(script)
    done = start(shellkit, server)
    assert (done.stdout, done.stderr, done.returncode) == ("The sum is 7.\n", "", 0)
    assert (tmp_path / "results.txt").read_text() == "7\n"
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("3\n", "4\n")
    assert len(server.model.requests) == 6
    assert {request["headers"]["authorization"] for request in server.model.requests} == {f"Bearer {KEY}"}


def test_a_sub_agent_starts_where_the_shell_stands(
    shellkit: Shellkit, openai_server: StartServer, tmp_path: Path
) -> None:
    """Issue 4, sub-agents: a copy of directory and environment; with --fresh those that the parent started with."""
    (tmp_path / "sub").mkdir()

    def child(said: str, output: str) -> Step:
        return run("echo $PWD ${A-unset}") if said else [message(output.splitlines()[0])]

    steps = (
        run("export A=1; cd sub; shellkit agent --model child look"),
        run("shellkit agent --model child --fresh look"),
    )
    server = openai_server(parent_of(*steps, child=child))
    assert start(shellkit, server).stdout == "all done\n"
    assert [output.splitlines()[0] for output in outputs(server)] == [f"{tmp_path}/sub 1", f"{tmp_path} unset"]


def test_a_directory_that_is_no_utf_8(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 4.3: the parent's working directory goes to a sub-agent, whatever bytes are in its name."""
    (tmp_path / "\udcff").mkdir()

    def child(task: str, output: str) -> Step:
        return [message(f"sub says: {output.split()[0]}")] if output else run('basename "$PWD" | od -An -tx1')

    server = openai_server(parent_of(run("cd ./*/ && shellkit agent --model child 'where?'", timeout=60), child=child))
    done = start(shellkit, server)
    assert (done.stdout, done.returncode) == ("all done\n", 0)
    assert outputs(server)[0].startswith("sub says: ff\n")


def test_depth_and_what_is_said_of_it(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4, sub-agents: depth is bounded, and the one that may not start others is not told to."""

    def child(said: str, output: str) -> Step:
        return run(f"shellkit agent --model child {said}x") if said else [message(output)]

    server = openai_server(parent_of(run("shellkit agent --model child x"), child=child))
    assert start(shellkit, server).stdout == "all done\n"
    assert "sub-agents may be 2 deep" in outputs(server)[0]
    assert "[exit code 2" in outputs(server)[0]
    told = {parts(body)[0]: "shellkit agent 'TASK'" in body["instructions"] for body in server.model.requests}
    assert (told["go"], told["x"], told["xx"]) == (True, True, False)


def test_a_sub_agent_is_not_laxer(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 4 and H6: below a parent with a policy its policy holds, in the version that the parent has read."""
    rule = "[[rule]]\nprefix = ['touch', 'x']\ndecision = 'deny'\n"
    (tmp_path / "p.toml").write_text(f"[policy]\ndefault = 'allow'\nwrites = true\n{rule}")

    def child(said: str, output: str) -> Step:
        return run("touch x") if said else [message(output)]

    steps = (
        run("shellkit agent --model child --approve never a"),
        run("shellkit agent --model child --policy p.toml --base-url http://x/v1 a"),
        run("printf '' > p.toml; shellkit agent --model child a"),
    )
    server = openai_server(parent_of(*steps, child=child))
    start(shellkit, server, "--approve", "policy", "--policy", "p.toml", "--audit", "log", "--log", "agents.log")
    laxer, other_server, denied = outputs(server)
    assert "a sub-agent may not be laxer than its parent, which has --approve policy" in laxer
    assert "leave --base-url out" in other_server
    assert "the policy denies it" in denied
    assert not (tmp_path / "x").exists()
    records = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert len({record["session"] for record in records if record["event"] in ("before", "refused")}) == 2
    assert "sub-agent 1 INFO" in (tmp_path / "agents.log").read_text()


def test_without_an_approver_a_sub_agent_is_refused(shellkit: Shellkit, openai_server: StartServer) -> None:
    """H3: the sub-agent's question goes up to the first agent, which has nobody to ask; both models are told."""

    def child(said: str, output: str) -> Step:
        return run("touch x") if said else [message(output)]

    server = openai_server(parent_of(run("shellkit agent --model child --approve ask a"), child=child))
    start(shellkit, server)
    assert "it needs approval, and there is no terminal to ask at" in outputs(server)[0]


def test_tokens_of_sub_agents_count(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4, a budget of tokens: what a sub-agent uses counts against that of the first agent."""

    def child(said: str, output: str) -> Step:
        return [message("done")]

    script = parent_of(run("shellkit agent --model child a"), run("true"), child=child)
    done = start(shellkit, openai_server(script, tokens=(40, 10)), "--max-tokens", "95")
    assert "limit of tokens" in done.stderr
    assert done.returncode == 1


def test_a_sub_agent_that_fails_says_why(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4: what goes wrong in a sub-agent reaches the model of its parent as one line and an exit code."""

    def child(said: str, output: str) -> Step:
        return Failure(400, "too clever by half")

    server = openai_server(parent_of(run("shellkit agent --model child a"), child=child))
    start(shellkit, server)
    assert "too clever by half" in outputs(server)[0]
    assert "[exit code 1" in outputs(server)[0]


def test_a_time_out_and_a_sub_agent(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 5.4: at the time-out of its command a sub-agent runs on beside others; it can be stopped."""

    def child(said: str, output: str) -> Step:
        return Hang() if said == "hang" else [message("next")]

    server = openai_server(
        parent_of(
            run("shellkit agent --model child hang", timeout=5),
            run("shellkit agent --model child b"),
            [function_call("stop_process", {"session_id": 1})],
            [function_call("list_processes", {})],
            child=child,
        )
    )
    done = start(shellkit, server)
    assert done.stdout == "all done\n"
    late, after, stopped, listed = outputs(server)
    assert "session_id 1" in late
    assert after.startswith("next\n")
    assert "exit code" in stopped
    assert "running" not in listed
