"""Approvals: what is shown, what is remembered, and what runs once."""

from __future__ import annotations

import json
import re
import tracemalloc

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shellkit.errors import CommandDenied
from shellkit.policy import (
    READ_ONLY,
    ApprovalMemory,
    ApprovalRequest,
    Decision,
    PendingApprovals,
    Rule,
    RulePolicy,
    displayed,
    offer_prefix,
)

POLICY = RulePolicy(rules=[*READ_ONLY.rules, Rule(prefix=["rm"], decision="deny"), Rule(prefix=["mv"], decision="ask")])


def request(command: str, workdir: str = "/w", **fields: str) -> ApprovalRequest:
    return ApprovalRequest.of("r1", command, POLICY.judge(command), workdir=workdir, **fields)


SHOWN = {
    "echo a": "echo a",
    "echo a\nls\tb": "echo a\nls\tb",
    "echo harmless\r\x1b[2Ktouch pwned": "echo harmless\\x0d\\x1b[2Ktouch pwned",
    "echo \u202eevil": "echo \\u202eevil",
    "a\u200bb\u00a0c\ufeff\U000e0041": "a\\u200bb\\xa0c\\ufeff\\U000e0041",
    "echo a" + "\n" * 200 + "touch pwned": "echo a\n[199 empty lines]\ntouch pwned",
    "echo a" + " " * 500 + "; touch pwned": "echo a [500 spaces] ; touch pwned",
    "echo é 漢 ✓": "echo é 漢 ✓",
    "": "(an empty command of 0 characters)",
    " \n": "(an empty command of 2 characters)",
}


@pytest.mark.parametrize("command", SHOWN)
def test_what_is_shown_hides_nothing(command: str) -> None:
    """sec-approval-what-you-see: control and bidi characters are escaped, long runs counted, an empty command said."""
    assert request(command).display == SHOWN[command]


@given(st.text(), st.integers(30, 400))
def test_what_is_shown_is_printable_and_complete_or_says_so(text: str, limit: int) -> None:
    """sec-approval-what-you-see: the text is complete, or says how much is left out."""
    shown = displayed(text, limit)
    assert all(char.isprintable() or char in "\n\t" for char in shown)
    assert len(shown) <= limit + 100


def test_what_is_left_out_is_counted() -> None:
    """sec-approval-what-you-see: head and tail of a long command are shown, with the size of the rest."""
    shown = displayed("echo start; " + "x" * 10_000 + "; rm end")
    assert shown.startswith("echo start")
    assert shown.endswith("; rm end")
    assert "6,0" in shown
    assert "characters in 0 lines are left out here" in shown
    for filling in "x \n":
        huge = displayed("echo start; " + filling * 1_000_000 + "; rm end")
        assert huge.startswith("echo start")
        assert huge.endswith("; rm end")
        assert len(huge) < 5000
        assert re.search(r"\[\.\.\. [\d,]{6,9} characters in [\d,]+ lines are left out here", huge)


def test_a_request_is_a_value_that_survives_json() -> None:
    """H7, issue 3: a request can be written down, read back, and is refused if anything in it was changed."""
    asked = request("echo 1 > f", shell="bash", isolation="docker", reason="it writes")
    values = json.loads(json.dumps(asked.to_dict()))
    assert ApprovalRequest.from_dict(values) == asked
    assert values["judgement"]["findings"][0]["reason"] == "it writes to f"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        asked.command = "x"  # type: ignore[misc]
    for name, value in (
        ("command", "echo 2"),
        ("workdir", "/x"),
        ("shell", "zsh"),
        ("isolation", "none"),
        ("id", "r2"),
        ("digest", ""),
    ):
        with pytest.raises(ValueError, match="changed"):
            ApprovalRequest.from_dict({**values, name: value})
    with pytest.raises(ValueError, match="no approval request"):
        ApprovalRequest.from_dict({"id": "x"})


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(ApprovalRequest)])
@pytest.mark.parametrize("value", [3, [3]], ids=repr)
def test_a_request_with_a_field_of_a_wrong_type(name: str, value: object) -> None:
    """sec-approval-what-you-see: what cannot be shown is no request, and the message names the field."""
    values = {**request("echo x").to_dict(), name: value}
    with pytest.raises(ValueError, match=rf"no approval request: '{name}' must be"):
        ApprovalRequest.from_dict(values)


def test_a_request_carries_the_prefix_that_may_be_offered() -> None:
    """H7: who asks a person sees the words that "always" may stand for, also after JSON, and none otherwise."""
    asked = request("git push -q")
    assert asked.prefix == ("git", "push")
    assert ApprovalRequest.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    assert [request(text).prefix for text in ("ls", "rm x", "mv a b", "touch a; git push")] == [None] * 4


def test_a_decision_survives_json() -> None:
    """Issue 3: a decision can come back later; what is no decision is refused."""
    decision = Decision(approved=True, scope="prefix", prefix=("git", "push"), reason="fine")
    assert Decision.from_dict(json.loads(json.dumps(decision.to_dict()))) == decision
    for values in (
        {},
        {"approved": "yes"},
        {"approved": True, "scope": "ever"},
        {"approved": True, "scope": "prefix"},
        {"x": 1},
    ):
        with pytest.raises(ValueError):
            Decision.from_dict(values)


def test_a_pending_approval_runs_what_was_approved_once() -> None:
    """sec-approval-what-you-see: replayed, foreign or altered approvals are refused; repeating the question is fine."""
    pending, elsewhere = PendingApprovals(), PendingApprovals()
    asked, again = (pending.add(request("echo 1")) for _ in range(2))
    assert asked != again
    assert attrs.evolve(asked, id="r1") == request("echo 1")
    with pytest.raises(CommandDenied, match="another conversation; ask again"):
        elsewhere.settle(asked)
    with pytest.raises(CommandDenied, match="another conversation"):
        pending.settle(request("echo 1"))
    for other in ({"command": "echo 2"}, {"canonical": "echo 2"}, {"workdir": "/elsewhere"}, {"shell": "sh"}):
        with pytest.raises(CommandDenied, match="another command"):
            pending.settle(attrs.evolve(asked, **other))
    pending.settle(asked)
    with pytest.raises(CommandDenied, match="used already"):
        pending.settle(asked)
    with pytest.raises(CommandDenied, match="used already"):
        pending.settle(attrs.evolve(pending.add(asked), id=asked.id))
    pending.settle(again)


def test_what_nobody_answers_is_forgotten() -> None:
    """sec-approval-what-you-see: of 100,000 questions the latest 1,000 wait, and what was answered stays answered."""
    pending = PendingApprovals()
    answered = pending.add(request("echo answered"))
    pending.settle(answered)
    question = request("echo x")
    tracemalloc.start()
    try:
        asked = [pending.add(question).id for _ in range(100_000)]
        kept = [attrs.evolve(question, id=each) for each in (asked[0], asked[-1001], asked[-1000], asked[-1])]
        del asked
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
    for gone in (answered, *kept[:2]):
        with pytest.raises(CommandDenied, match=r"has expired, or .* ask again"):
            pending.settle(gone)
    for waiting in kept[2:]:
        pending.settle(waiting)
        with pytest.raises(CommandDenied, match="used already"):
            pending.settle(waiting)


def recalled(memory: ApprovalMemory, command: str, **fields: str) -> bool | None:
    decision = memory.recall(request(command, **fields), POLICY.judge(command))
    return None if decision is None else decision.approved


def test_a_session_approval_is_keyed_on_command_place_shell_and_isolation() -> None:
    """H7: remembered approvals hold for the canonical command in the same directory, shell and isolation only."""
    memory = ApprovalMemory()
    memory.remember(request("touch 'a b'"), Decision(approved=True, scope="session"))
    assert recalled(memory, "touch a\\ b") is True
    assert recalled(memory, "touch a b") is None
    assert recalled(memory, "touch 'a b'; ls") is None
    assert recalled(memory, "touch 'a b' > c") is None
    for other in ({"workdir": "/x"}, {"shell": "sh"}, {"isolation": "docker"}):
        assert recalled(memory, "touch 'a b'", **other) is None


def test_once_and_edited_are_not_remembered() -> None:
    """H7: an answer for once is for once, and what was asked is not what an edit approved."""
    memory = ApprovalMemory()
    memory.remember(request("touch a"), Decision(approved=True))
    memory.remember(request("touch a"), Decision(approved=True, scope="session", command="touch b"))
    assert recalled(memory, "touch a") is recalled(memory, "touch b") is None


def test_a_denial_beats_a_remembered_approval() -> None:
    """H7: by the policy, by an earlier answer, in either order, and for a prefix."""
    memory = ApprovalMemory()
    yes, no = (Decision(approved=approved, scope="session") for approved in (True, False))
    memory.remember(request("rm a"), yes)
    assert recalled(memory, "rm a") is None
    memory.remember(request("touch a"), no)
    memory.remember(request("touch a"), yes)
    assert recalled(memory, "touch a") is False
    memory.remember(request("touch b"), yes)
    memory.remember(request("touch b"), no)
    assert recalled(memory, "touch b") is False
    judgement = POLICY.judge("touch c")
    memory.remember(request("touch c"), Decision(approved=False, scope="prefix", prefix=("touch",)), judgement)
    memory.remember(request("touch d"), yes)
    assert recalled(memory, "touch d") is recalled(memory, "ls; touch e") is False


def test_a_prefix_clears_only_commands_that_it_covers_whole() -> None:
    """H7: a remembered prefix clears a command if every segment that asks starts with it, and nothing else is asked."""
    memory = ApprovalMemory()
    command = "git add . && git add x"
    memory.remember(
        request(command), Decision(approved=True, scope="prefix", prefix=("git", "add")), POLICY.judge(command)
    )
    cleared = {
        text: recalled(memory, text)
        for text in (
            "git add y", "git add y; ls", "git add y && git push", "git add $(touch x)", "git add y > f",
            "git -C z add y", "x=1 git add y", "./git add y", "git add y; rm z", "git add y; mv a b", "git add y; $z",
            "ls",
        )
    }  # fmt: skip
    assert [text for text, approved in cleared.items() if approved] == ["git add y", "git add y; ls"]
    assert recalled(memory, "git add y", workdir="/x") is None
    with pytest.raises(ValueError, match="would not clear"):
        memory.remember(
            request("git push"), Decision(approved=True, scope="prefix", prefix=("git",)), POLICY.judge("git push")
        )


def test_a_prefix_of_git_does_not_clear_options_that_run_programs() -> None:
    """H7: after "always git fetch", `--upload-pack=program` is asked about all the same."""
    memory = ApprovalMemory()
    decision = Decision(approved=True, scope="prefix", prefix=("git", "fetch"))
    memory.remember(request("git fetch"), decision, POLICY.judge("git fetch"))
    assert recalled(memory, "git fetch origin") is True
    assert recalled(memory, "git fetch --upload-pack=./x .") is recalled(memory, "git fetch $x") is None


OFFERED = {
    "touch a": ("touch",),
    "touch a; touch b | ls": ("touch",),
    "git push origin main": ("git", "push"),
    "git add . && git add x": ("git", "add"),
    "npm ls": ("npm", "ls"),
    "ls": None,
    "rm a": None,
    "mv a b": None,
    "touch a; mkdir b": None,
    "git add . && git commit": None,
    "git -c x=y push": None,
    "git": None,
    "npm run build": None,
    "npx x": None,
    "gosu root touch x": None,
    "apt-get install x": None,
    "make": None,
    "touch a > b": None,
    "touch $(pwd)": ("touch",),
    "touch $(mkdir x)": None,
    "./touch a": None,
    "/bin/touch a": None,
    "$x a": None,
    "X=1 touch a": None,
    "cat <<EOF | sh\nx\nEOF": None,
    "python x.py": None,
    "python3.11 -m pytest": None,
    "bash -c 'touch x'": None,
    "sudo touch a": None,
    "env touch a": None,
    "xargs touch": None,
    "ssh h touch": None,
    "shellkit run touch": None,
    "shellkit repl": None,
    "find . -exec touch {} +": None,
    "timeout 5 touch a": None,
    "docker run x": None,
    "curl example.org": None,
    "node x.js": None,
    "perl5.36 x": None,
}


@pytest.mark.parametrize("command", OFFERED)
def test_which_prefix_is_offered(command: str) -> None:
    """H7: only where it would clear the whole command, and never an interpreter, a wrapper or what destroys."""
    assert offer_prefix(POLICY.judge(command)) == OFFERED[command]
