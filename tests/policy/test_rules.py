"""Rules: what they cover, which one decides, and how they are checked."""

from __future__ import annotations

from typing import Any

import pytest

from shellkit.policy import Judgement, Policy, PolicyError, Rule, RulePolicy, Verdict, strictest

GIT = Rule(prefix=["git", ["status", "diff"]], decision="allow")


def judged(command: str, *rules: Rule, **options: Any) -> Verdict:
    return RulePolicy(rules=rules, **options).judge(command).verdict


COVERED = {
    "git status": True, "git diff -p x": True, "git  'status'": True, "/usr/bin/git status": True, "git log": False,
    "git": False, "git -C x status": False, "git statusx": False, "./git status": False, "/opt/git status": False,
    "git $x": False, "GIT status": False, "git status $x": True,
}  # fmt: skip


@pytest.mark.parametrize("command", COVERED)
def test_an_allow_rule_is_read_narrowly(command: str) -> None:
    """H6: its words are known, in place, with alternatives, and the program lies in a standard directory."""
    assert (judged(command, GIT) is Verdict.ALLOW) is COVERED[command]


PUSH = Rule(prefix=["git", "push"], decision="deny", reason="no pushing")
DENIED = {
    "git push": Verdict.DENY, "git -C x push": Verdict.DENY, "git --no-pager -c a=b push -f": Verdict.DENY,
    "./git push": Verdict.DENY, "GIT push": Verdict.DENY, "git $x": Verdict.ASK, "git commit -m push": Verdict.ALLOW,
    "git log": Verdict.ALLOW, "git": Verdict.ALLOW, "echo git push": Verdict.ALLOW,
}  # fmt: skip


@pytest.mark.parametrize("command", DENIED)
def test_a_deny_rule_is_read_broadly(command: str) -> None:
    """H6: any path and case, words behind options; where a word is not known it may be the denied one: ask."""
    assert judged(command, PUSH, default="allow") is DENIED[command]


RUNNERS = {
    "uv run pytest -q": Verdict.ALLOW, "uv run ruff": Verdict.ASK, "uv run": Verdict.ASK, "uv sync": Verdict.ALLOW,
    "npm run x": Verdict.ALLOW, "npm exec x": Verdict.ASK, "npm --prefix a exec x": Verdict.ASK,
    "git submodule update": Verdict.ALLOW, "git submodule foreach ls": Verdict.ASK,
    "git commit -m 'bisect run'": Verdict.ALLOW, "npx x": Verdict.ASK, "gosu root pytest": Verdict.ASK,
}  # fmt: skip


@pytest.mark.parametrize("command", RUNNERS)
def test_what_a_runner_starts_is_asked_about(command: str) -> None:
    """H6: `uv run`, `npx` and the like hide a command from the default; a rule with the words to run allows it."""
    allow = Rule(prefix=["uv", "run", "pytest"], decision="allow")
    assert judged(command, allow, default="allow") is RUNNERS[command]


def test_the_strictest_rule_wins_whatever_the_order() -> None:
    """H6: deny > ask > allow, over rules, segments and the default."""
    allow, ask, deny = (Rule(prefix=["x"], decision=decision) for decision in ("allow", "ask", "deny"))
    for rules, verdict in (
        ((allow, ask), "ASK"),
        ((ask, allow), "ASK"),
        ((deny, allow, ask), "DENY"),
        ((allow, deny), "DENY"),
    ):
        assert judged("x", *rules) is Verdict[verdict]
    assert judged("x; y", allow) is Verdict.ASK
    assert judged("x; y", allow, default="deny") is Verdict.DENY
    assert judged("x; y", deny, default="allow") is Verdict.DENY
    assert judged("x; $y", allow, default="deny") is Verdict.DENY
    assert max(Verdict) is Verdict.DENY


def test_each_segment_tells_what_decided() -> None:
    """H6: the judgement explains every segment: its rule with its origin, and the reason of the strictest."""
    policy = RulePolicy(rules=[attrs_origin(GIT), PUSH])
    judgement = policy.judge("git status && git push")
    assert [(f.segment.text, f.verdict, f.rule) for f in judgement.findings] == [
        ("git status", Verdict.ALLOW, "allow git status|diff (here:1)"),
        ("git push", Verdict.DENY, "deny git push"),
    ]
    assert judgement.reasons == ("no pushing",)
    assert [segment.argv for segment in judgement.segments] == [("git", "status"), ("git", "push")]


def attrs_origin(rule: Rule) -> Rule:
    return Rule(prefix=rule.prefix, decision=rule.decision, origin="here:1")


def test_writing_redirections_need_a_rule_that_says_so() -> None:
    """H6: `> file` raises what is allowed to ask, unless the rule, or for the default the policy, has `writes`."""
    plain, writing = (Rule(prefix=["x"], decision="allow", writes=writes) for writes in (False, True))
    assert judged("x > f", plain) is Verdict.ASK
    assert judged("x > f", plain, default="deny") is Verdict.DENY
    assert (
        judged("x > f", writing)
        is judged("x > f", plain, writing)
        is judged("x > /dev/null 2>&1", plain)
        is Verdict.ALLOW
    )
    assert judged("y > f", default="allow") is Verdict.ASK
    assert judged("y > f; > g", default="allow", writes=True) is Verdict.ALLOW


UNLESS = {
    "x -a b": True, "x": True, "x -o f": False, "x -ao f": False, "x --output f": False, "x --output=f": False,
    "x --out": False, "x --other": True, "x -exec y": False, "x -executable": False, "x -fls": False, "x -flsx": True,
    "x b-o": True, "x $y": False, "x \"$y\"": False, "x a\"$y\"": True, "x a/*": True, "x *": False, "x -- -o": False,
}  # fmt: skip


@pytest.mark.parametrize("command", UNLESS)
def test_unless_matches_every_spelling_of_an_option(command: str) -> None:
    """H6: combined, abbreviated, with `=`; a word that may turn into an option counts as one."""
    rule = Rule(prefix=["x"], decision="allow", unless=["-o", "--output", "-exec*", "-fls"])
    assert (judged(command, rule) is Verdict.ALLOW) is UNLESS[command]


def test_interpreters_need_a_rule_that_names_their_program() -> None:
    """H6: `python x.py` runs what the text does not show; neither the default nor a rule for `python` allows it."""
    assert judged("python -m pytest -q", Rule(prefix=["python"], decision="allow")) is Verdict.ASK
    assert judged("python -m pytest -q", default="allow") is Verdict.ASK
    assert judged("python -m pytest -q", Rule(prefix=["python", "-m", "pytest"], decision="allow")) is Verdict.ALLOW
    assert judged("python -c x", Rule(prefix=["python", "-c"], decision="allow")) is Verdict.ASK


def test_wrappers_are_allowed_with_what_they_start() -> None:
    """H6: a rule for a wrapper does not allow what it runs, and the other way round."""
    timeout, ls = (Rule(prefix=[name], decision="allow") for name in ("timeout", "ls"))
    assert judged("timeout 5 ls", timeout) is judged("timeout 5 ls", ls) is Verdict.ASK
    assert judged("timeout 5 ls", timeout, ls) is Verdict.ALLOW


def test_padding_does_not_turn_deny_into_ask() -> None:
    """H6: in a text that is too large to be parsed, the names of denied commands are looked for as words."""
    deny = Rule(prefix=["rm"], decision="deny")
    assert judged("echo " + "a " * 200_000 + "; rm x", deny, default="allow") is Verdict.DENY
    assert judged("echo " + "farm rm.txt " * 20_000, deny, default="allow") is Verdict.ASK


def test_a_cap_must_agree() -> None:
    """H6: a policy with a cap allows only what the cap allows too."""
    cap = RulePolicy(rules=[Rule(prefix=["x"], decision="allow", unless=["-o"])])
    policy = RulePolicy(rules=[Rule(prefix=[["x", "y"]], decision="allow", writes=True)], cap=cap)
    verdicts = [policy.judge(command).verdict.name for command in ("x", "y", "x -o", "x > f")]
    assert verdicts == ["ALLOW", "ASK", "ASK", "ASK"]


def test_strictest_of_policies() -> None:
    """H6: of several policies the strictest decides, with its findings; anything with `judge` is a policy."""

    class Never:
        def judge(self, command: str, *, dialect: str = "bash") -> Judgement:
            return Judgement(verdict=Verdict.DENY)

    allowing = RulePolicy(default="allow")
    assert isinstance(Never(), Policy)
    assert strictest(allowing, Never()).judge("x").verdict is Verdict.DENY
    assert strictest(allowing, RulePolicy()).judge("x").findings[0].reason == "no rule covers `x`"
    with pytest.raises(PolicyError):
        strictest()


def test_examples_are_checked_when_the_policy_is_made() -> None:
    """H6: a rule that contradicts its `match` or `not_match` never comes into force."""
    RulePolicy(
        rules=[Rule(prefix=["git", "add"], decision="allow", match=["git add .", "ls; git add x"], not_match=["git"])]
    )
    for fields in ({"match": ["git push"]}, {"not_match": ["git add ."]}):
        with pytest.raises(PolicyError, match="its example"):
            RulePolicy(rules=[Rule(prefix=["git", "add"], decision="allow", **fields)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"prefix": []}, {"prefix": "git status"}, {"prefix": ["git status"]}, {"prefix": [[]]}, {"prefix": [""]},
        {"prefix": ["x"], "decision": "maybe"}, {"prefix": ["x"], "unless": ["output"]},
        {"prefix": ["x"], "unless": "-o"},
    ],
)  # fmt: skip
def test_malformed_rules_are_refused(fields: dict[str, Any]) -> None:
    """H6: a rule that would never match, or always, is a mistake and says how it is written."""
    with pytest.raises(PolicyError):
        Rule(**{"decision": "allow", **fields})
