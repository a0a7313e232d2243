"""Calls of OpenAI's models, answered on a real bash; what goes out is checked by the openai package's own models."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageFunctionToolCall
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseCustomToolCall,
    ResponseCustomToolCallOutput,
    ResponseFunctionShellToolCall,
    ResponseFunctionToolCall,
    response_input_item,
)
from openai.types.responses.response_output_item import LocalShellCall, McpApprovalRequest
from pydantic import BaseModel

from shellkit import BlockingExecutor
from shellkit.adapters import openai_responses
from shellkit.adapters.openai_responses import answer, call_output, needs_answer, refusal
from shellkit.policy import Decision, RulePolicy
from shellkit.policy.rules import Rule
from shellkit.result import ShellResult
from shellkit.testing import scripted_model as made
from shellkit.tool import Callback, ShellTool, ToolOutput

Make = Callable[..., ShellTool]

MODELS: dict[str, type[BaseModel]] = {
    "shell_call_output": response_input_item.ShellCallOutput,
    "local_shell_call_output": response_input_item.LocalShellCallOutput,
    "function_call_output": response_input_item.FunctionCallOutput,
    "custom_tool_call_output": ResponseCustomToolCallOutput,
    "apply_patch_call_output": response_input_item.ApplyPatchCallOutput,
    "mcp_approval_response": response_input_item.McpApprovalResponse,
}


def checked(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item that goes out, if the openai package's model of it has every field and no other."""
    if item.get("role") == "tool":
        assert item.keys() == {"role", "tool_call_id", "content"}
        return item
    model = MODELS[item["type"]].model_validate(item, strict=True)
    assert model.model_extra == ({"call_id": item["call_id"]} if item["type"].startswith("local") else {})
    for output in getattr(model, "output", []):
        if isinstance(output, BaseModel):
            assert output.model_extra == {}
            assert output.outcome.model_extra == {}  # type: ignore[attr-defined]
    assert json.loads(json.dumps(item)) == item
    return item


def ask(tool: ShellTool, item: object, **options: Any) -> dict[str, Any]:
    """Answer a call."""
    return checked(asyncio.run(answer(tool, item, **options)))


def shell_call(*commands: Any, **options: Any) -> dict[str, Any]:
    """Return a `shell_call` as the API sends it."""
    return {**made.shell_call(*commands, **options), "id": "sh_1", "call_id": "call_1"}


def local_shell_call(argv: Any, **options: Any) -> dict[str, Any]:
    """Return a `local_shell_call` as the API sends it."""
    return {**made.local_shell_call(argv, **options), "id": "lsh_1", "call_id": "call_1"}


def function_call(arguments: Any, name: str = "run_shell") -> dict[str, Any]:
    """Return a `function_call` as the API sends it."""
    return {**made.function_call(name, arguments), "id": "fc_1", "call_id": "call_1"}


def chat_call(arguments: str, name: str = "run_shell") -> dict[str, Any]:
    """Return a tool call as Chat Completions sends it."""
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def exited(code: int, stdout: str = "", stderr: str = "") -> dict[str, Any]:
    """Return the output of a command that ended by itself."""
    return {"stdout": stdout, "stderr": stderr, "outcome": {"type": "exit", "exit_code": code}}


# -- shell_call -------------------------------------------------------------------------------------------


def test_the_commands_of_a_call_run_in_order_in_one_session(tool: ShellTool) -> None:
    """Issue 4.1: state goes from command to command and from call to call, and each has its own output."""
    first = ask(tool, shell_call("cd /; export A=1", "echo $A $PWD; echo low >&2; (exit 3)"))
    assert first == {
        "type": "shell_call_output",
        "call_id": "call_1",
        "status": "completed",
        "output": [exited(0), exited(3, "1 /\n", "low\n")],
    }
    assert ask(tool, shell_call("echo $A"))["output"] == [exited(0, "1\n")]


def test_a_time_out_is_an_outcome_and_the_rest_still_runs(tool: ShellTool) -> None:
    """Issue 4.1: a command over `timeout_ms` keeps its partial output; the next ones run."""
    first, second = ask(tool, shell_call("echo part; sleep 60", "echo next", timeout_ms=300))["output"]
    assert (first["stdout"], first["outcome"]) == ("part\n", {"type": "timeout"})
    assert "[note: " in first["stderr"]
    assert second == exited(0, "next\n")


def test_the_models_time_out_is_capped(make_tool: Make) -> None:
    """Issue 4.1: more than the tool's own limit is reduced to it, and the model is told."""
    tool = make_tool(max_timeout=0.2)
    (only,) = ask(tool, shell_call("sleep 60", timeout_ms=3_600_000))["output"]
    assert only["outcome"] == {"type": "timeout"}
    assert "reduced from 3600 s to the most, 0.2 s" in only["stderr"]
    assert "to the most, 0.2 s" in ask(tool, shell_call("true", timeout_ms=10**400))["output"][0]["stderr"]


def test_what_the_call_says_of_itself_comes_back(tool: ShellTool) -> None:
    """Issue 4.1: `max_output_length` and `caller` are echoed."""
    program = {"type": "program", "caller_id": "prog_1"}
    given = ask(tool, {**shell_call("true", max_output_length=7), "caller": program})
    assert (given["max_output_length"], given["caller"]) == (7, program)


def test_a_job_in_the_background_is_told_of(tool: ShellTool, sleeps: Callable[[], str]) -> None:
    """Issue 4.1: what a model must know beside the output stands at the end of stderr, a line each."""
    (only,) = ask(tool, shell_call(f"printf low >&2; sleep {sleeps()} &"))["output"]
    low, remark, end = only["stderr"].split("\n")
    assert (low, remark.startswith("[still running in the background: pid "), end) == ("low", True, "")


def test_colours_are_taken_out(tool: ShellTool) -> None:
    """Contract E6: a model sees clean text on either stream."""
    (only,) = ask(tool, shell_call(r"printf '\033[31mred\033[0m\n'; printf '1%%\r2%%\n' >&2"))["output"]
    assert only == exited(0, "red\n", "2%\n")


def test_a_refusal_is_an_output(make_tool: Make, tmp_path: Path) -> None:
    """Issue 4.2: what the policy denies or a person refuses is exit code 126 with the reason, and the rest runs."""
    policy = RulePolicy(
        rules=[
            Rule(prefix=["touch"], decision="deny", reason="no new files"),
            Rule(prefix=["echo"], decision="allow"),
        ]
    )
    no = Callback(lambda request: Decision(approved=False, reason="not today"))
    tool = make_tool(policy=policy, approval="policy", approver=no)
    denied, refused, fine = ask(tool, shell_call("touch a", "mkdir b", "echo fine"))["output"]
    assert (denied["stdout"], denied["outcome"]) == ("", {"type": "exit", "exit_code": 126})
    assert "no new files" in denied["stderr"]
    assert (refused["stdout"], refused["outcome"]) == ("", {"type": "exit", "exit_code": 126})
    assert "not today" in refused["stderr"]
    assert fine == exited(0, "fine\n")
    assert list(tmp_path.iterdir()) == []


def test_output_is_seen_as_it_comes(tool: ShellTool) -> None:
    """Issue 4.2: chunks of every command of a call reach `on_output`."""
    seen: list[tuple[str, str]] = []
    ask(tool, shell_call("echo a", "echo b >&2"), on_output=lambda stream, text: seen.append((stream, text)))
    assert seen == [("stdout", "a\n"), ("stderr", "b\n")]


def test_a_loop_can_pass_the_gate_itself(tool: ShellTool) -> None:
    """Issue 4.2: a loop that shows approvals gets each command with the call's id, and gives its output."""
    passed: list[tuple[object, str]] = []

    async def pass_gate(tool: object, arguments: object, call_id: str) -> ToolOutput:
        passed.append((arguments, call_id))
        return ToolOutput(text="no", is_error=True)

    given = ask(tool, shell_call("a", "b", timeout_ms=1500), pass_gate=pass_gate)
    assert given["output"] == [exited(126, "", "no"), exited(126, "", "no")]
    assert passed == [({"command": each, "timeout": 1.5, "workdir": None}, "call_1") for each in "ab"]


def test_what_nobody_can_know_is_no_success() -> None:
    """Contract A: a result without an exit code, or of a shell that was closed meanwhile, is not 0."""
    unknown = ToolOutput(text="x", result=ShellResult(command="x", stdout="half"))
    closed = ToolOutput(text="half\n[closed]", result=ShellResult(command="x", exit_code=137), is_error=True)
    given = checked(call_output(shell_call("x", "y"), [unknown, closed], status="incomplete"))
    assert given["output"] == [exited(126, "half"), exited(137, "", "half\n[closed]")]
    assert given["status"] == "incomplete"


def test_a_shell_that_is_closed_says_so(open_shell: Callable[..., BlockingExecutor]) -> None:
    """Contract H4: a shell that will run nothing any more is an output that tells the model, not an exception."""
    shell = open_shell()
    tool = shell.executor.as_tool(approval="never", acknowledge_unsafe=True)
    shell.close()
    (only,) = ask(tool, shell_call("touch made"))["output"]
    assert only["outcome"] == {"type": "exit", "exit_code": 126}
    assert "closed for good" in only["stderr"]


# -- local_shell_call -------------------------------------------------------------------------------------


def flat(item: dict[str, Any]) -> dict[str, Any]:
    """Return the output of a `local_shell_call_output`, and check the rest."""
    assert (item["type"], item["id"], item["call_id"]) == ("local_shell_call_output", "call_1", "call_1")
    output: dict[str, Any] = json.loads(item["output"])
    assert output.keys() == {"stdout", "stderr", "exit_code", "timed_out"}
    return output


@pytest.mark.parametrize(
    ("argv", "options", "stdout"),
    [
        (["printf", "%s|", "a b", "$HOME", "it's", "*", "a;b", "", "=x"], {}, "a b|$HOME|it's|*|a;b||=x|"),
        (["bash", "-c", 'echo "$A-$B"'], {"env": {"A": "x y", "B": "$(false)'"}}, "x y-$(false)'\n"),
        (["pwd"], {"working_directory": "/"}, "/\n"),
        (["cat", "sub/file"], {}, "content"),
        (["pwd"], {"user": "", "working_directory": ""}, None),
    ],
)
def test_a_program_runs_with_exactly_its_arguments(
    tool: ShellTool, tmp_path: Path, argv: list[str], options: dict[str, Any], stdout: str | None
) -> None:
    """Issue 4.1: argv, env and working directory of a `local_shell_call` reach the program as they are."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_text("content")
    wanted = f"{tmp_path}\n" if stdout is None else stdout
    output = flat(ask(tool, local_shell_call(argv, **options)))
    assert output == {"stdout": wanted, "stderr": "", "exit_code": 0, "timed_out": False}


@pytest.mark.parametrize("name", ["if", "until", "{", "!", "[[", "A=1", "function", "PATH=/x"])
def test_the_first_word_is_a_programs_name_and_nothing_else(tool: ShellTool, name: str) -> None:
    """Issue 4.1: a keyword or an assignment in place of a program is not found, as with exec."""
    output = flat(ask(tool, local_shell_call([name, "true"])))
    assert (output["exit_code"], "not found" in output["stderr"] or "No such" in output["stderr"]) == (127, True)


@given(
    argv=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=3)
)
def test_any_argument_survives_the_quoting(argv: list[str]) -> None:
    """Issue 4.1: whatever the words of argv hold, the shell hands them on unchanged."""
    line = openai_responses._line(["printf", r"%s\0", *argv], {"A": argv[0]})
    done = subprocess.run(["bash", "-c", line.encode()], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == argv


def test_a_local_shell_call_times_out(tool: ShellTool) -> None:
    """Issue 4.1: partial output is kept, and the exit code is that of a time-out."""
    output = flat(ask(tool, local_shell_call(["bash", "-c", "echo part; sleep 60"], timeout_ms=300)))
    assert (output["stdout"], output["exit_code"], output["timed_out"]) == ("part\n", 124, True)


# -- functions --------------------------------------------------------------------------------------------


def test_a_function_call_gets_the_tools_text(tool: ShellTool) -> None:
    """Issue 4.1: the function form returns the text for a model, under the call's id."""
    given = ask(tool, function_call('{"command": "echo hi", "timeout": null, "workdir": "/"}'))
    assert (given["type"], given["call_id"]) == ("function_call_output", "call_1")
    assert given["output"].startswith("hi\n[exit code 0, ")


def test_a_call_of_chat_gets_a_message(tool: ShellTool) -> None:
    """Issue 4.1: Chat Completions' calls are answered by a message of the role `tool`."""
    given = ask(tool, chat_call('{"command": "echo hi", "timeout": null, "workdir": null}'))
    assert (given["role"], given["tool_call_id"]) == ("tool", "call_1")
    assert given["content"].startswith("hi\n[exit code 0, ")


@pytest.mark.parametrize(
    ("model", "item"),
    [
        (ResponseFunctionShellToolCall, shell_call("echo hi", timeout_ms=5000, max_output_length=9)),
        (LocalShellCall, local_shell_call(["echo", "hi"], env={"A": "1"})),
        (ResponseFunctionToolCall, {**function_call({"command": "echo hi"}), "caller": {"type": "direct"}}),
        (ChatCompletionMessageFunctionToolCall, chat_call('{"command": "echo hi"}')),
    ],
)
def test_the_packages_objects_are_taken_like_dicts(tool: ShellTool, model: Any, item: dict[str, Any]) -> None:
    """Issue 4.1: a typed item of the openai package and the same as a dict are answered alike."""
    parsed = model.model_validate(item)
    assert needs_answer(parsed)
    assert needs_answer(item)
    answers = [ask(tool, each) for each in (parsed, item)]
    assert "hi" in json.dumps(answers[0])
    assert [each.keys() for each in answers] == [answers[0].keys()] * 2
    assert [each.get("caller") for each in answers] == [item.get("caller")] * 2


# -- what cannot be run -----------------------------------------------------------------------------------

MALFORMED = [
    (shell_call(), "the call holds no command; `commands` must be a list"),
    ({**shell_call("x"), "action": None}, "the call holds no command"),
    ({**shell_call("x"), "action": {"commands": "touch made"}}, "the call holds no command"),
    ({**shell_call("x"), "action": {"commands": [["touch", "made"]]}}, "must be one string"),
    (shell_call("touch made", timeout_ms=0), "timeout must be a positive number"),
    (shell_call("touch made", timeout_ms=-5), "timeout must be a positive number"),
    (shell_call("touch made", timeout_ms=-(10**400)), "timeout must be a positive number"),
    ({**shell_call("x"), "action": {"commands": ["touch made"], "timeout_ms": "soon"}}, "must be a number of seconds"),
    ({**shell_call("x"), "action": ["touch made"]}, "the call holds no command"),
    ({**shell_call("touch made"), "status": "incomplete"}, "did not arrive whole"),
    ({**shell_call("touch made"), "status": "in_progress"}, "did not arrive whole"),
    (local_shell_call([]), "the call holds no command; `command` must be a list"),
    ({**local_shell_call(["x"]), "action": {"command": "touch made"}}, "the call holds no command"),
    (local_shell_call(["touch", 1]), "hold strings only, not 1"),
    (local_shell_call(["touch", "made"], env={"A": 1}), "hold strings only, not 1"),
    (local_shell_call(["touch", "made"], env={"A;touch made;B": "x"}), "is no name of a variable"),
    (local_shell_call(["touch", "made"], user="root"), "cannot change the user; leave `user` out"),
    (local_shell_call(["touch", "made"], working_directory=5), "workdir: must be a string"),
    (function_call("{not json"), "The arguments are not JSON"),
    (function_call(""), "command: is missing"),
    (function_call('{"command": "touch made", "cwd": "/"}'), "there is no such argument"),
    (function_call('{"command": "touch made"}', "exec"), "there is no tool 'exec'; the only one is 'run_shell'"),
    ({**function_call('{"command": "touch made"}'), "status": "incomplete"}, "did not arrive whole"),
    (chat_call("{not json"), "The arguments are not JSON"),
    (chat_call('{"command": "touch made"}', "exec"), "there is no tool 'exec'"),
    ({"id": "call_1", "type": "function"}, "there is no tool None"),
    ({"id": "call_1", "type": "function", "function": "run_shell"}, "there is no tool None"),
]


#: Calls of tools that shellkit offers to nobody.
CUSTOM = {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": "run_shell", "input": "touch made"}
PATCH = {
    "type": "apply_patch_call",
    "id": "apc_1",
    "call_id": "call_1",
    "status": "completed",
    "operation": {"type": "create_file", "path": "made", "diff": "+x"},
    "caller": {"type": "direct"},
}
MCP = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "x", "server_label": "y", "arguments": "{}"}
MALFORMED += [
    (CUSTOM, "nothing here answers a custom_tool_call; call the tools that you were given"),
    (PATCH, "nothing here answers a apply_patch_call"),
    (MCP, "nothing here answers a mcp_approval_request"),
]

PACKAGE: dict[str, type[openai.BaseModel]] = {
    "custom_tool_call": ResponseCustomToolCall,
    "apply_patch_call": ResponseApplyPatchToolCall,
    "mcp_approval_request": McpApprovalRequest,
    "shell_call": ResponseFunctionShellToolCall,
    "local_shell_call": LocalShellCall,
    "function_call": ResponseFunctionToolCall,
    "function": ChatCompletionMessageFunctionToolCall,
}


@pytest.mark.parametrize(("item", "says"), MALFORMED)
def test_a_malformed_call_is_answered_with_what_is_wrong(
    tool: ShellTool, tmp_path: Path, item: dict[str, Any], says: str
) -> None:
    """Issue 4, must hold: nothing runs, the model is told what to send instead, and the session is usable."""
    given = ask(tool, item)
    assert says in json.dumps(given).replace(r"\"", '"')
    assert ask(tool, PACKAGE[item["type"]].construct(**item)) == given  # as the package makes it of a reply
    if given.get("type") == "shell_call_output":
        assert [each["outcome"]["exit_code"] for each in given["output"]] == [126]
    assert list(tmp_path.iterdir()) == []
    assert ask(tool, shell_call("echo fine"))["output"] == [exited(0, "fine\n")]


UNANSWERABLE = [
    ({**shell_call("touch made"), "call_id": ""}, "a shell_call without an id cannot be answered"),
    ({k: v for k, v in shell_call("touch made").items() if k != "call_id"}, "a shell_call without an id"),
    ({**local_shell_call(["touch", "made"]), "call_id": None}, "a local_shell_call without an id"),
    ({**function_call("{}"), "call_id": None}, "a function_call without an id"),
    ({**chat_call("{}"), "id": None}, "a function without an id"),
    ({**CUSTOM, "call_id": None}, "a custom_tool_call without an id"),
    ({**MCP, "id": ""}, "a mcp_approval_request without an id"),
    ({"type": "computer_call", "call_id": "c", "id": "cu_1"}, "an item of type 'computer_call' cannot be answered"),
    (shell_call("touch made", container_id="cntr_1"), "OpenAI runs it in its container"),
    (made.message("hello"), "an item of type 'message' cannot be answered: only shell_call, "),
    ({}, "an item of type None cannot be answered"),
    ({"type": ["shell_call"]}, "cannot be answered"),
]


@pytest.mark.parametrize(("item", "says"), UNANSWERABLE)
def test_a_call_without_an_answer_is_an_error(tool: ShellTool, tmp_path: Path, item: dict[str, Any], says: str) -> None:
    """Issue 4, must hold: what the API has no answer for is a `ValueError` that names it, and nothing runs."""
    for attempt in (
        lambda: asyncio.run(answer(tool, item)),
        lambda: refusal(item, "no"),
        lambda: call_output(item, []),
    ):
        with pytest.raises(ValueError, match=says.replace("(", r"\(")):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_no_outputs_answer_nothing() -> None:
    """House style 5: a call without an output would be refused by the API; the error says what makes one."""
    with pytest.raises(ValueError, match="`refusal` makes one"):
        call_output(shell_call("x"), [])


def test_only_calls_for_us_need_an_answer() -> None:
    """Issue 4.5: what runs in a container of OpenAI's is none of ours, and neither is a message."""
    items = [shell_call("x"), shell_call("x", container_id="c"), made.message("x"), made.shell_call_output("x"), {}]
    assert [needs_answer(item) for item in items] == [True, False, False, False, False]
    with pytest.raises(TypeError, match="not str"):
        needs_answer("shell_call")


@pytest.mark.parametrize(
    "item",
    [shell_call("x"), local_shell_call(["x"]), function_call("{}"), chat_call("{}"), CUSTOM, PATCH, MCP],
    ids=lambda i: i["type"],
)
def test_any_call_can_be_refused(item: dict[str, Any]) -> None:
    """Issue 4.2: a loop that does not run a call has an answer for it, of its kind."""
    given = checked(refusal(item, "The user stopped this."))
    assert "The user stopped this." in json.dumps(given)
    assert given.get("approve", False) is False
    assert given.get("status", "completed") == ("failed" if item is PATCH else "completed")


def test_a_cancelled_answer_ends_the_command(tool: ShellTool, sleeps: Any, eventually: Callable[..., None]) -> None:
    """Contract F6: cancelling passes through, the rest of the call does not run, and the session goes on."""
    length = sleeps()

    async def main() -> None:
        begun = asyncio.Event()
        call = shell_call(f"echo begun; sleep {shlex.quote(length)}", "echo never")
        answering = asyncio.ensure_future(answer(tool, call, on_output=lambda *_: begun.set()))
        await begun.wait()
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering

    asyncio.run(main())
    eventually(lambda: not sleeps.left())
    assert ask(tool, shell_call("echo fine"))["output"] == [exited(0, "fine\n")]
