"""The gate: its order, who is asked, what is remembered, and that no call gets around it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from shellkit import LocalExecutor, ShellResult
from shellkit.audit import AuditEntry, AuditLog
from shellkit.policy import READ_ONLY, ApprovalRequest, Decision, Judgement, Rule, RulePolicy
from shellkit.tool import AllowAll

POLICY = RulePolicy(
    rules=[
        *READ_ONLY.rules,
        Rule(prefix=["touch", "gone"], decision="deny", reason="it was lost on purpose"),
        Rule(prefix=["mv"], decision="ask"),
    ]
)


class _Policy:
    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def judge(self, command: str, *, dialect: str = "bash") -> Judgement:
        self.seen.append("policy")
        return POLICY.judge(command, dialect=dialect)


class _Log(AuditLog):
    seen: list[str]

    def before(self, command: str, **fields: Any) -> AuditEntry:
        self.seen.append(f"audit {fields['decision']}")
        return super().before(command, **fields)

    def after(self, entry: AuditEntry, outcome: ShellResult | BaseException) -> AuditEntry:
        self.seen.append("audit outcome")
        return super().after(entry, outcome)


class _Executor(LocalExecutor):
    seen: list[str]

    def watch(self, seen: list[str]) -> None:
        self.seen = seen

        def resolve(path: bytes) -> bytes:
            if "audit allowed" not in seen and "confinement" not in seen:
                seen.append("confinement")
            return os.path.realpath(path)

        self._confinement = attrs.evolve(self._confinement, resolve=resolve)

    async def run(self, command: str, **options: Any) -> ShellResult:
        self.seen.append("run")
        return await super().run(command, **options)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"command": "touch a", "workdir": "sub"}, ["policy", "approval", "confinement", "allowed", "run", "outcome"]),
        ({"command": "ls"}, ["policy", "allowed", "run", "outcome"]),
        ({"command": "touch gone", "workdir": ".."}, ["policy", "refused"]),
        ({"command": "touch no", "workdir": ".."}, ["policy", "approval", "refused"]),
        ({"command": "touch a", "workdir": ".."}, ["policy", "approval", "confinement", "refused"]),
        ({"command": 5}, []),
    ],
)
def test_order(tmp_path: Path, arguments: dict[str, Any], expected: list[str]) -> None:
    """H2: validate, policy, approval, confinement, audit, run, audit; what stops a call ends it there, on record."""
    seen: list[str] = []

    async def approve(request: ApprovalRequest) -> Decision:
        seen.append("approval")
        return Decision(approved="no" not in request.command)

    async def call() -> None:
        (tmp_path / "root" / "sub").mkdir(parents=True)
        with _Log(tmp_path / "audit") as log:
            log.seen = seen
            async with _Executor(shell="bash", workdir=tmp_path / "root") as executor:
                executor.watch(seen)
                tool = executor.as_tool(approval="policy", policy=_Policy(seen), approver=approve, audit=log)
                await tool.call(arguments)

    asyncio.run(call())
    assert [step.removeprefix("audit ") for step in seen] == expected


def test_always_asks_about_every_command(bench: Any, person: Any) -> None:
    """H3: approval is on by default, and asks even about what the policy allows."""
    approver = person()
    it = bench(approver=approver, policy=POLICY)
    assert it.tool.approval == "always"
    assert it.call("ls").result is not None
    assert it.call("touch a").result is not None
    assert [request.command for request in approver.asked] == ["ls", "touch a"]


def test_policy_asks_about_what_it_does_not_allow(bench: Any, person: Any) -> None:
    """H3: approval='policy' asks where the policy asks, and tells the person why."""
    approver = person()
    it = bench(approval="policy", approver=approver, policy=POLICY)
    it.call("ls")
    it.call("touch a")
    assert [(request.command, request.reason) for request in approver.asked] == [("touch a", "no rule covers `touch`")]
    assert it.made == ["a"]


@pytest.mark.parametrize("mode", ["always", "policy", "never"])
def test_what_the_policy_denies_never_runs(bench: Any, person: Any, mode: str) -> None:
    """H6: a denial holds in every mode, nobody is asked, and the model is told the part and the reason."""
    approver = person()
    it = bench(approval=mode, approver=approver, policy=POLICY, acknowledge_unsafe=True)
    output = it.call("ls && touch gone")
    assert (output.is_error, output.result, it.made, approver.asked) == (True, None, [], [])
    assert output.text == "Not run: the policy denies it. `touch gone`: it was lost on purpose"


def test_nobody_to_ask(bench: Any) -> None:
    """H3: without an approver a call that needs approval is refused, and the model is told."""
    it = bench()
    output = it.call("touch a")
    assert (output.is_error, output.result, it.made) == (True, None, [])
    assert "needs approval" in output.text
    assert "nobody is there" in output.text


def test_a_refusal_says_why(bench: Any, person: Any) -> None:
    """H4: the person's reason reaches the model, and nothing runs."""
    it = bench(approver=person(approved=False, reason="use the test database."))
    output = it.call("touch a")
    assert "refused. The reason: use the test database. " in output.text
    assert (output.is_error, it.made) == (True, [])


def test_a_reason_that_is_no_text(bench: Any, person: Any) -> None:
    """H4: a reason with a lone surrogate can be sent to the model all the same."""
    output = bench(approver=person(approved=False, reason="no \ud800")).call("touch a")
    assert "no ?" in output.text.encode("utf-8").decode()


def test_never_needs_an_acknowledgement(open_shell: Any) -> None:
    """H3: approval='never' without isolation needs acknowledge_unsafe=True, else ValueError with the reason."""
    executor = open_shell().executor
    for flag in (False, "yes", 1):
        with pytest.raises(ValueError, match=r"isolates nothing.*acknowledge_unsafe=True"):
            executor.as_tool(approval="never", acknowledge_unsafe=flag)
    with pytest.raises(ValueError, match="acknowledge_unsafe"):
        AllowAll()
    assert executor.as_tool(approval="never", acknowledge_unsafe=True).approval == "never"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"approval": "sometimes"}, "approval must be"),
        ({"approval": "policy"}, "needs policy="),
        ({"policy": "shellkit.toml"}, r"shellkit.policy.loads\(text, filename\)"),
        ({"approver": True}, "shellkit.tool.Callback"),
        *[({"max_timeout": value}, "max_timeout") for value in (0, -1, float("nan"), float("inf"), True, "60", None)],
    ],
)
def test_impossible_options(open_shell: Any, options: dict[str, Any], message: str) -> None:
    """H3, H10: what cannot be meant is an error of the one who makes the tool, with the remedy."""
    with pytest.raises((TypeError, ValueError), match=message):
        open_shell().executor.as_tool(**options)


def test_an_edited_command_is_what_runs(bench: Any, person: Any) -> None:
    """H4: a person may edit the command; the edited one runs, is recorded, and the model is told."""
    it = bench(approver=person(command="touch b", reason="b is better"), policy=POLICY)
    output = it.call("touch a")
    assert it.made == ["b"]
    assert "changed the command; this ran: touch b" in output.text
    before = it.lines[0]
    assert (before["command"], before["decided_by"], before["reason"]) == (
        "touch b",
        "approver Person, who edited it",
        "b is better",
    )


def test_an_edited_command_is_judged_anew(bench: Any, person: Any) -> None:
    """H6: a person may approve what the policy asks about, not what it denies, be it their own edit."""
    it = bench(approver=person(command="touch gone"), policy=POLICY)
    output = it.call("touch a")
    assert "the policy denies it" in output.text
    assert (output.is_error, it.made) == (True, [])
    assert [(line["event"], line["command"]) for line in it.lines] == [("refused", "touch gone")]


def test_an_edited_command_is_not_remembered(bench: Any, person: Any) -> None:
    """H7: what was asked is not what was approved, so the next one is asked about again."""
    approver = person(command="touch b", scope="session")
    it = bench(approver=approver)
    it.call("touch a")
    it.call("touch a")
    assert len(approver.asked) == 2


@pytest.mark.parametrize(
    ("answer", "commands", "asked"),
    [
        ({"scope": "once"}, ["touch a", "touch a"], 2),
        ({"scope": "session"}, ["touch a", "touch   'a'", "touch b"], 2),
        ({"scope": "prefix", "prefix": ("touch",)}, ["touch a", "touch b", "touch c; touch d", "touch e; cp e f"], 2),
        ({"scope": "prefix", "prefix": ("cp",)}, ["touch a", "touch b"], 2),
        ({"scope": "prefix", "prefix": ("python3",)}, ["python3 a.py", "python3 b.py"], 2),
    ],
)
def test_what_is_remembered(bench: Any, person: Any, answer: Any, commands: list[str], asked: int) -> None:
    """H7: remembered by canonical command, or by a prefix that clears the whole command and is no interpreter."""
    approver = person(**answer)
    it = bench(approver=approver, approval="policy", policy=POLICY)
    for command in commands:
        assert it.call(command).result is not None
    assert len(approver.asked) == asked


def test_what_is_remembered_holds_for_its_place(bench: Any, person: Any) -> None:
    """H7: an approval is keyed on the working directory, where the shell stands or `workdir` points."""
    approver = person(scope="session")
    it = bench(approver=approver)
    (it.workdir / "sub").mkdir()
    it.call("touch a")
    it.call("touch a", workdir="sub")
    it.call("touch a", workdir="./sub/../sub")
    it.shell.run("cd sub")
    it.call("touch a")
    assert [request.workdir for request in approver.asked] == [str(it.workdir), str(it.workdir / "sub")]


def test_a_remembered_approval_does_not_reach_another_tool(bench: Any, person: Any) -> None:
    """H7: approvals are remembered for one conversation."""
    first, second = person(scope="session"), person()
    bench(approver=first).call("touch a")
    bench(approver=second).call("touch a")
    assert len(second.asked) == 1


def test_a_remembered_denial_holds(bench: Any, person: Any) -> None:
    """H7: a denial for the session is not asked about again."""
    approver = person(approved=False, scope="session")
    it = bench(approver=approver)
    assert it.call("touch a").is_error
    assert it.call("touch a").is_error
    assert (len(approver.asked), it.made) == (1, [])
    assert [line["decided_by"] for line in it.lines] == ["approver Person", "memory (session)"]


def test_a_deny_beats_a_remembered_allow(bench: Any, person: Any) -> None:
    """H7: what a prefix cleared stays denied where a rule of the policy denies it."""
    it = bench(approver=person(scope="prefix", prefix=("touch",)), approval="policy", policy=POLICY)
    assert it.call("touch a").result is not None
    output = it.call("touch gone")
    assert "the policy denies it" in output.text
    assert it.made == ["a"]


def test_the_gate_is_the_only_way(bench: Any) -> None:
    """H3: each public way to run something through the tool is stopped at the gate."""
    it = bench()
    tool = it.tool

    async def try_all() -> list[bool]:
        arguments = {"command": "touch a", "timeout": None, "workdir": None}
        assert tool.asked(arguments).command == "touch a"
        request = await tool.approval_request(arguments)
        assert request is not None
        outputs = [
            await tool.call(arguments),
            await tool.call('{"command": "touch a"}', call_id="7"),
            await tool.resume(request, False, arguments),
            await tool.resume(request, True, arguments),
        ]
        return [output.is_error for output in outputs]

    assert asyncio.run(try_all()) == [True] * 4
    assert it.made == []
    public = {name for name in dir(tool) if not name.startswith("_") and callable(getattr(tool, name))}
    assert public == {"call", "resume", "approval_request", "asked", "probe"}


def test_the_approved_text_is_what_runs(bench: Any) -> None:
    """sec-approval-what-you-see: a dict that is changed while a person thinks changes nothing."""
    arguments = {"command": "touch a"}

    async def approve(request: ApprovalRequest) -> Decision:
        arguments["command"] = "touch evil"
        return Decision(approved=True)

    it = bench(approver=approve)
    it.call(raw=arguments)
    assert it.made == ["a"]
    assert it.lines[0]["command"] == "touch a"


def test_the_reason_shown_hides_nothing(bench: Any, person: Any) -> None:
    """sec-approval-what-you-see: control characters in a reason are escaped like those of the command."""
    approver = person(approved=False)
    it = bench(approver=approver, approval="policy", policy=POLICY)
    it.call("ls > 'a\x1b[2Kb'")
    assert "\x1b" not in approver.asked[0].reason + approver.asked[0].display
    assert "\\x1b[2K" in approver.asked[0].reason


def test_live_output_comes_through_the_gate(bench: Any) -> None:
    """C4 through the tool: `on_output` hears a command that may run, and nothing of one that was refused."""
    tool = bench(approval="policy", policy=READ_ONLY).tool
    heard: list[tuple[str, str]] = []

    async def call() -> None:
        for command in ("echo one; echo two >&2", "touch refused"):
            await tool.call({"command": command}, on_output=lambda *chunk: heard.append(chunk))

    asyncio.run(call())
    assert sorted(heard) == [("stderr", "two\n"), ("stdout", "one\n")]


def test_a_command_is_judged_once_however_often_a_framework_asks(bench: Any) -> None:
    """Issue 3: hooks may run as often as a framework likes; the policy is a value, so its judgement is kept."""
    seen: list[str] = []
    tool = bench(approval="policy", policy=_Policy(seen), approver=None).tool

    async def call() -> None:
        arguments = {"command": "touch made"}
        request = await tool.approval_request(arguments)
        assert request is not None
        assert await tool.approval_request(arguments) is not None
        assert (await tool.resume(request, True, arguments)).result is not None

    asyncio.run(call())
    assert seen == ["policy"]
