"""Calls that come at once, and calls that are cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shellkit.policy import READ_ONLY, ApprovalRequest, Decision, Rule, RulePolicy

POLICY = RulePolicy(rules=[*READ_ONLY.rules, Rule(prefix=["touch"], decision="allow")])


def test_calls_keep_their_order(bench: Any) -> None:
    """G1: calls run one at a time, in order of arrival."""
    it = bench(approval="never", acknowledge_unsafe=True)

    async def many() -> None:
        await asyncio.gather(*(it.tool.call({"command": f"echo {number} >> log"}) for number in range(20)))

    asyncio.run(many())
    assert (it.workdir / "log").read_text().split() == [str(number) for number in range(20)]


def test_a_call_waits_for_one_that_is_asked_about(bench: Any) -> None:
    """G1, H7: what is approved for a directory runs there: no later call moves the shell in the meantime."""
    later: list[asyncio.Task[Any]] = []

    async def approve(request: ApprovalRequest) -> Decision:
        later.append(asyncio.ensure_future(it.tool.call({"command": "cd /"})))
        done, _ = await asyncio.wait(later, timeout=0.1)
        assert not done
        return Decision(approved=True)

    it = bench(approval="policy", policy=POLICY, approver=approve)

    async def both() -> tuple[Any, Any]:
        first = await it.tool.call({"command": "mkdir here; pwd"})
        return first, await later[0]

    first, second = asyncio.run(both())
    assert first.result.stdout == f"{it.workdir}\n"
    assert second.result.workdir == "/"


def test_a_result_for_every_call(bench: Any) -> None:
    """H4, call-result-for-every-id: one ends, one runs out of time, one is cancelled, one is malformed."""
    it = bench(approval="never", acknowledge_unsafe=True)

    async def all_of_them() -> list[Any]:
        given = [
            {"command": "echo a"},
            {"command": "echo b; sleep 100", "timeout": 0.2},
            {"command": "touch c"},
            {"command": ["ls"]},
            {"command": "echo e"},
        ]
        calls = [asyncio.ensure_future(it.tool.call(each, call_id=str(at))) for at, each in enumerate(given)]
        await calls[0]
        calls[2].cancel()
        return await asyncio.gather(*calls, return_exceptions=True)

    ended, timed_out, cancelled, malformed, last = asyncio.run(all_of_them())
    assert ended.text.startswith("a\n")
    assert (timed_out.result.timed_out, timed_out.result.stdout) == (True, "b\n")
    assert isinstance(cancelled, asyncio.CancelledError)
    assert malformed.is_error
    assert last.text.startswith("e\n")
    assert it.made == []


def test_a_cancelled_command_is_on_record(bench: Any) -> None:
    """H4, H9: CancelledError passes through, and the audit log has the end of the command."""
    it = bench(approval="never", acknowledge_unsafe=True)

    async def cancel() -> None:
        call = asyncio.ensure_future(it.tool.call({"command": "touch began; sleep 100; touch ran"}))
        while "began" not in it.made:
            await asyncio.wait({call}, timeout=0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    assert [(line["event"], line.get("error")) for line in it.lines] == [("before", None), ("after", "CancelledError")]
    assert it.lines[1]["call"] == it.lines[0]["seq"]
    assert (it.made, it.usable()) == (["began"], True)


def test_cancelling_is_not_hidden_by_an_unwritable_audit_log(bench: Any) -> None:
    """H4: when the end of a cancelled command cannot be recorded, CancelledError is still what comes out."""
    it = bench(approval="never", acknowledge_unsafe=True)

    async def cancel() -> None:
        call = asyncio.ensure_future(it.tool.call({"command": "touch began; sleep 100"}))
        while "began" not in it.made:
            await asyncio.wait({call}, timeout=0.01)
        it.audit.close()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    assert it.usable()


def test_any_loop(free: Any) -> None:
    """G2: one tool works in one event loop after the other."""
    assert [free.call(f"echo {number}").result.stdout for number in range(3)] == ["0\n", "1\n", "2\n"]
