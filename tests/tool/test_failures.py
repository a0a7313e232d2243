"""What goes wrong below the gate comes back as text; only cancellation is raised (contract H4)."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from shellkit.policy import ApprovalRequest, Decision, Judgement, Verdict

FREE = {"approval": "never", "acknowledge_unsafe": True}


def test_a_missing_binary(bench: Any, tmp_path: Path) -> None:
    """H4, call-shell-not-found: a shell that has gone is text that names it; back again, the same tool works."""
    bash = tmp_path / "bash"
    shutil.copy("/bin/bash", bash)
    it = bench(shell={"shell": str(bash)}, **FREE)
    bash.rename(tmp_path / "away")
    output = it.call("echo hi")
    assert (output.is_error, output.result) == (True, None)
    assert output.text.startswith("Not run: ")
    assert str(bash) in output.text
    assert [(line["event"], line.get("error")) for line in it.lines] == [("before", None), ("after", "SpawnError")]
    (tmp_path / "away").rename(bash)
    assert it.call("echo hi").text.startswith("hi\n")


def test_a_closed_executor(free: Any) -> None:
    """H4: a closed executor is text that says that no command will run."""
    free.shell.close()
    output = free.call("echo hi")
    assert (output.is_error, output.result) == (True, None)
    assert "closed for good" in output.text


def test_an_executor_closed_meanwhile(free: Any) -> None:
    """H4, G3: what had been printed reaches the model, with the reason why there is no more."""

    async def close() -> Any:
        call = asyncio.ensure_future(free.tool.call({"command": "echo partial; touch began; sleep 100"}))
        while "began" not in free.made:
            await asyncio.wait({call}, timeout=0.01)
        await free.shell.executor.close()
        return await call

    output = asyncio.run(close())
    assert output.is_error
    assert output.text.startswith("partial\n")
    assert "closed while the command ran" in output.text
    assert free.lines[-1]["error"] == "ExecutorClosed"


@pytest.mark.parametrize("command", ["kill -9 $$", "exec true", "exit 7"])
def test_a_dead_shell(free: Any, command: str) -> None:
    """H4, D2: a command that ends its shell is a result, and the next call has a shell."""
    output = free.call(command)
    assert (output.is_error, output.result.shell_state == "alive") == (False, False)
    assert free.call("echo fine").text.startswith("fine\n")


@pytest.mark.parametrize("command", ["printf '\\377\\0\\033[0m\\357\\277\\276\\n'; exit 300", "kill -9 $$", "false"])
def test_every_output_is_json(free: Any, command: str) -> None:
    """call-result-serialisable: whatever the bytes and the exit code, the output can be stored and sent."""
    output = free.call(command)
    values = json.loads(json.dumps(output.to_dict(), allow_nan=False, ensure_ascii=False).encode())
    assert 0 <= values["result"]["exit_code"] <= 255
    assert values["text"] == output.text


def test_a_directory_that_is_no_text(free: Any) -> None:
    """call-result-serialisable: a working directory of bytes that are no UTF-8 hurts neither text nor approval."""
    odd = os.fsencode(free.workdir) + b"/\xff"
    os.mkdir(odd)
    output = free.call("cd $'\\xff'; pwd")
    output.text.encode()
    json.dumps(output.to_dict(), allow_nan=False, ensure_ascii=False).encode()
    assert free.call("echo fine").text.startswith("fine\n")


class _Broken:
    def judge(self, command: str, *, dialect: str = "bash") -> Judgement:
        raise KeyError(command)


def test_a_policy_that_raises(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    """H4: a broken policy lets nothing through, is logged, and raises nothing into the agent's loop."""
    it = bench(approval="policy", policy=_Broken())
    output = it.call("touch a")
    assert (output.is_error, it.made) == (True, [])
    assert "KeyError" in output.text
    assert asyncio.run(it.tool.approval_request({"command": "touch a"})) is None
    assert "the shell tool failed" in caplog.text


class _Silent:
    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    def judge(self, command: str, *, dialect: str = "bash") -> Judgement:
        return Judgement(verdict=self.verdict)


def test_a_policy_without_reasons(bench: Any) -> None:
    """H4: what a policy of one's own decides without saying why is told as just that, to the model and the person."""
    it = bench(approval="policy", policy=_Silent(Verdict.DENY))
    assert it.call("touch a").text == (
        "Not run: the policy denies it. It gives no reason; do it another way, or ask the user."
    )
    it = bench(approval="policy", policy=_Silent(Verdict.ASK))
    asked = asyncio.run(it.tool.approval_request({"command": "touch a"}))
    assert asked.reason == "the policy asks about it"


def test_a_failure_leaves_the_gate_usable(bench: Any) -> None:
    """H4: after each kind of failure the next call gets its turn."""
    answers = iter([RuntimeError("broken"), Decision(approved=False), Decision(approved=True)])

    async def approve(request: ApprovalRequest) -> Decision:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    it = bench(approver=approve)
    assert [it.call("touch a").is_error for _ in range(3)] == [True, True, False]
    assert it.made == ["a"]


def test_a_failed_command_is_no_failed_call(free: Any) -> None:
    """H4: a non-zero exit code is a result of the command, not an error of the call."""
    output = free.call("false")
    assert (output.is_error, output.result.exit_code) == (False, 1)
