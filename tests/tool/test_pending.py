"""Approvals that are given later: exactly what was approved runs, here, and once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shellkit.policy import READ_ONLY, Decision, Rule, RulePolicy

POLICY = RulePolicy(rules=[*READ_ONLY.rules, Rule(prefix=["rm"], decision="deny")])
TOUCH = {"command": "touch a", "timeout": None, "workdir": None}


def ask(it: Any, arguments: Any) -> Any:
    """Return the request as it comes back from a framework that stored it as JSON."""
    request = asyncio.run(it.tool.approval_request(arguments))
    return None if request is None else json.loads(json.dumps(request.to_dict()))


def resume(it: Any, request: Any, decision: Any, arguments: Any) -> Any:
    return asyncio.run(it.tool.resume(request, decision, arguments, call_id="c1"))


@pytest.mark.parametrize(
    "decision", [True, Decision(approved=True), {"approved": True}, Decision(approved=True).to_dict()]
)
def test_what_was_approved_runs(bench: Any, decision: Any) -> None:
    """H7: the request goes through JSON, the answer comes later, and the command runs."""
    it = bench()
    request = ask(it, TOUCH)
    assert (request["command"], request["display"], request["workdir"]) == ("touch a", "touch a", str(it.workdir))
    assert it.made == []
    output = resume(it, request, decision, json.dumps(TOUCH))
    assert (output.is_error, it.made) == (False, ["a"])
    assert [line["event"] for line in it.lines] == ["before", "after"]
    assert (it.lines[0]["decided_by"], it.lines[0]["call_id"]) == ("approver (resumed)", "c1")


@pytest.mark.parametrize("decision", [False, Decision(approved=False, reason="not today"), {"approved": False}])
def test_what_was_refused_does_not_run(bench: Any, decision: Any) -> None:
    """H4: a refusal that comes later is text with its reason, and on record."""
    it = bench()
    output = resume(it, ask(it, TOUCH), decision, TOUCH)
    assert (output.is_error, it.made) == (True, [])
    assert output.text.startswith("Not run: it was refused.")
    assert ("not today" in output.text) == isinstance(decision, Decision)
    assert [line["event"] for line in it.lines] == ["refused"]


@pytest.mark.parametrize(
    "decision", ["no", "yes", 1, None, [], {}, {"approved": "true"}, {"approved": True, "scope": "ever"}, {"ok": True}]
)
def test_what_is_no_decision_approves_nothing(bench: Any, decision: Any) -> None:
    """H4: an answer that is neither a decision nor a bool is a refusal, and no exception."""
    it = bench()
    output = resume(it, ask(it, TOUCH), decision, TOUCH)
    assert (output.is_error, it.made) == (True, [])


@pytest.mark.parametrize("change", [{"command": "touch b"}, {"workdir": "/"}, {"id": "x"}, {"digest": "0" * 64}])
def test_an_altered_request_is_refused(bench: Any, change: dict[str, str]) -> None:
    """sec-approval-what-you-see: whoever changes the request on its way gets nothing run."""
    it = bench()
    altered = {**ask(it, TOUCH), **change}
    output = resume(
        it, altered, True, {**TOUCH, **{key: change[key] for key in ("command", "workdir") if key in change}}
    )
    assert (output.is_error, output.result, it.made) == (True, None, [])


@pytest.mark.parametrize("request_", [None, {}, [], "r", 5, {"id": "x", "command": "touch a"}])
def test_what_is_no_request_is_refused(bench: Any, request_: Any) -> None:
    """H4: whatever a framework brings back instead of the request is a refusal, and no exception."""
    it = bench()
    output = resume(it, request_, True, TOUCH)
    assert (output.is_error, it.made) == (True, [])
    assert it.usable()


def test_an_approval_works_once(bench: Any) -> None:
    """sec-approval-what-you-see: a replayed approval is refused, also after a refusal."""
    it = bench()
    request = ask(it, TOUCH)
    assert not resume(it, request, True, TOUCH).is_error
    (it.workdir / "a").unlink()
    again = resume(it, request, True, TOUCH)
    assert "was used already" in again.text
    refused = ask(it, TOUCH)
    resume(it, refused, False, TOUCH)
    assert resume(it, refused, True, TOUCH).is_error
    assert it.made == []


def test_a_foreign_approval_is_refused(bench: Any) -> None:
    """sec-approval-what-you-see: what one conversation approved does not run in another."""
    here, there = bench(), bench()
    output = resume(there, ask(here, TOUCH), True, TOUCH)
    assert "another conversation" in output.text
    assert there.made == []


@pytest.mark.parametrize(
    "arguments",
    [{"command": "touch b"}, {"command": "ls"}, {"command": "touch a", "workdir": "/"}, {"command": "touch  a"}],
)
@pytest.mark.parametrize("answer", [True, False])
def test_an_approval_is_for_its_call(bench: Any, arguments: Any, answer: bool) -> None:
    """sec-approval-what-you-see: other arguments than were shown are refused, be they allowed without a question."""
    it = bench(approval="policy", policy=POLICY)
    output = resume(it, ask(it, TOUCH), answer, arguments)
    assert (output.is_error, output.result, it.made) == (True, None, [])
    assert "another command" in output.text


def test_an_approval_is_for_its_place(bench: Any) -> None:
    """sec-approval-what-you-see: when the shell has moved since, the approval is for another directory."""
    it = bench()
    request = ask(it, TOUCH)
    (it.workdir / "sub").mkdir()
    it.shell.run("cd sub")
    output = resume(it, request, True, TOUCH)
    assert "another directory" in output.text
    assert it.made == ["sub"]


def test_a_dict_that_is_changed_later(bench: Any) -> None:
    """sec-approval-what-you-see: the request is a copy; the changed arguments are not what was approved."""
    it = bench()
    arguments = dict(TOUCH)
    request = ask(it, arguments)
    arguments["command"] = "touch evil"
    assert resume(it, request, True, arguments).is_error
    assert it.made == []


def test_an_edit_is_judged_and_recorded(bench: Any) -> None:
    """H6: an edited command that comes back later is judged anew, like one that was edited at once."""
    it = bench(policy=POLICY)
    assert not resume(it, ask(it, TOUCH), {"approved": True, "command": "touch b"}, TOUCH).is_error
    assert resume(it, ask(it, TOUCH), {"approved": True, "command": "rm b"}, TOUCH).is_error
    assert it.made == ["b"]


def test_asking_has_no_effect(bench: Any) -> None:
    """H7: hooks run as often as a framework calls them; the command runs once, and nothing is on record before."""
    it = bench()
    requests = [ask(it, TOUCH) for _ in range(5)]
    assert (it.made, it.lines) == ([], [])
    assert not resume(it, requests[-1], True, TOUCH).is_error
    assert len(it.lines) == 2


@pytest.mark.parametrize(
    "arguments", [{"command": "ls"}, {"command": "rm a"}, {"command": 5}, None, {"command": "ls", "workdir": "a\0"}]
)
def test_when_nobody_is_asked(bench: Any, arguments: Any) -> None:
    """H7: no request for what the policy allows or denies, nor for what is malformed; `call` says the rest."""
    assert ask(bench(approval="policy", policy=POLICY), arguments) is None


def test_a_remembered_approval_needs_no_request(bench: Any) -> None:
    """H7: after "for this session" the same command is not asked about again."""
    it = bench()
    resume(it, ask(it, TOUCH), {"approved": True, "scope": "session"}, TOUCH)
    assert ask(it, TOUCH) is None
    assert it.call("touch a").result is not None


def test_who_answered_is_on_record(bench: Any) -> None:
    """H9: a framework that asks by itself can say whom it asked."""
    it = bench()
    request = ask(it, TOUCH)
    asyncio.run(it.tool.resume(request, True, TOUCH, approver="Anna"))
    assert it.lines[0]["decided_by"] == "approver Anna (resumed)"
