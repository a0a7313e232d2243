"""Who approves, and what becomes of a call when they fail to answer properly."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from shellkit.policy import ApprovalRequest, Decision
from shellkit.tool import AllowAll, Callback, DenyAll, TimeLimit


async def _raises(request: ApprovalRequest) -> Decision:
    raise ConnectionError("no browser")


async def _never(request: ApprovalRequest) -> Decision:
    await asyncio.Event().wait()
    raise AssertionError


async def _gives_up(request: ApprovalRequest) -> Decision:
    closed = asyncio.get_running_loop().create_future()
    closed.cancel()
    await closed
    raise AssertionError


async def _text(request: ApprovalRequest) -> Any:
    return "no"


async def _one(request: ApprovalRequest) -> Any:
    return 1


async def _true(request: ApprovalRequest) -> Any:
    return True


async def _nothing(request: ApprovalRequest) -> Any:
    return None


async def _no_bool(request: ApprovalRequest) -> Any:
    return Decision(approved="no")  # type: ignore[arg-type]


async def _no_text(request: ApprovalRequest) -> Any:
    return Decision(approved=True, command=["rm"])  # type: ignore[arg-type]


def _not_async(request: ApprovalRequest) -> Any:
    return Decision(approved=True)


RUBBISH = [_raises, _text, _one, _true, _nothing, _no_bool, _no_text, _not_async, Callback(lambda request: "no")]


@pytest.mark.parametrize("approver", RUBBISH, ids=lambda each: getattr(each, "__name__", "Callback"))
def test_an_approver_that_fails_is_a_refusal(bench: Any, caplog: pytest.LogCaptureFixture, approver: Any) -> None:
    """H4: an approver that raises or answers rubbish: refused, logged, on record, told to the model."""
    it = bench(approver=approver)
    with caplog.at_level(logging.ERROR, "shellkit"):
        output = it.call("touch a")
    assert (output.is_error, output.result, it.made) == (True, None, [])
    assert "asking for approval failed" in output.text
    assert "failed; the command was refused" in caplog.text
    assert [(line["event"], line["decided_by"].endswith(" failed")) for line in it.lines] == [("refused", True)]
    assert it.usable()


def test_a_plain_function_is_no_approver(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    """H4: an approver that is not awaited is a mistake of the host, whose log names the remedy."""
    assert bench(approver=_not_async).call("touch a").is_error
    assert "wrap a plain function in shellkit.tool.Callback" in caplog.text


def test_an_approver_that_takes_too_long(bench: Any) -> None:
    """H4: with a time limit, no answer is a refusal, which says so."""
    it = bench(approver=TimeLimit(_never, 0.05))
    output = it.call("touch a")
    assert "nobody answered within 0.05 s" in output.text
    assert (output.is_error, it.made, it.lines[0]["decided_by"]) == (True, [], "approver TimeLimit")


def test_an_approver_that_breaks_off(bench: Any) -> None:
    """H4: an approver's own cancelled wait is a refusal, not a cancellation of the agent."""
    it = bench(approver=_gives_up)
    output = it.call("touch a")
    assert "broken off" in output.text
    assert (output.is_error, it.made) == (True, [])


def test_a_call_cancelled_while_it_is_asked_about(bench: Any) -> None:
    """H4: cancelling the call passes through the approver; nothing runs, and the next call gets its turn."""
    asked = asyncio.Event()

    async def approve(request: ApprovalRequest) -> Decision:
        if "wait" not in request.command:
            return Decision(approved=True)
        asked.set()
        return await _never(request)

    it = bench(approver=approve)

    async def cancel() -> Any:
        call = asyncio.ensure_future(it.tool.call({"command": "touch wait"}))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await it.tool.call({"command": "touch a"})

    assert asyncio.run(cancel()).result is not None
    assert it.made == ["a"]


def test_callback(bench: Any) -> None:
    """H3: a function of the host may answer with a bool or a decision, at once or later."""

    async def later(request: ApprovalRequest) -> bool:
        return "a" in request.command

    plain = bench(approver=Callback(lambda request: Decision(approved=False, reason="closed on Sundays")))
    assert "closed on Sundays" in plain.call("touch x").text
    it = bench(approver=Callback(later))
    assert it.call("touch a").result is not None
    assert it.call("echo b").is_error


def test_all_or_nothing(bench: Any) -> None:
    """H3: AllowAll approves once it is acknowledged; DenyAll refuses with its reason."""
    assert bench(approver=AllowAll(acknowledge_unsafe=True)).call("touch a").result is not None
    it = bench(approver=DenyAll("the demo only reads"))
    assert "the demo only reads" in it.call("touch b").text
    assert it.made == ["a"]


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_limit_is_positive(seconds: float) -> None:
    """H4: a limit that could not be meant is an error where it is set."""
    with pytest.raises(ValueError, match="positive"):
        TimeLimit(DenyAll(), seconds)
