# ruff: noqa: SIM905 - a long list of words is read more easily as text
"""Approvals as values: what a person is asked, what they answered, what may be remembered, and what runs only once.

The gate of the tool makes a request, an approver answers it with a decision. Nothing here asks anybody. A request
and a decision can be written to JSON and come back later; what then runs is bound to the request by its digest.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Literal

import attrs
from attrs.validators import instance_of

from ..errors import CommandDenied
from .base import Clarity, Finding, Judgement, Segment, Verdict
from .parse import normalise, parse
from .rules import Rule

__all__ = [
    "ApprovalMemory",
    "ApprovalRequest",
    "Decision",
    "PendingApprovals",
    "canonical_command",
    "displayed",
    "offer_prefix",
    "summary",
]

Scope = Literal["once", "session", "prefix"]

DISPLAY_LIMIT = 4000  # characters: what fits on a few screens; more than this is said, not shown

MOST_WAITING = 1000  # more questions than anybody answers in one conversation

_MAY_NOT_BE_SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
_MAY_BE_ESCAPED = re.compile(r"[^\n\t -~]")
_LONG_RUNS = re.compile(r"\n{4,}| {24,}|\t{6,}")

# No prefix is offered for what runs anything (interpreters, wrappers, package managers, remote shells), nor for
# what destroys: "always" is answered once, and these words say nothing about the next command.
_NEVER_OFFERED = frozenset(
    "ash awk bash batch at bun bunx busybox bwrap cargo chmod chown chroot cmd command composer crontab csh curl "
    "dash dd deno docker doas emacs env eval exec expect fd fdfind find fish flock gawk gdb gem git go gradle irb "
    "java julia kill killall kubectl ksh lua make mawk mkfs mksh mount mvn mysql nawk nc ncat nerdctl nice node "
    "nodejs nohup npm npx nsenter osascript parallel perl php pip pip3 pipx pkexec pkill pnpm podman poetry "
    "powershell psql pwsh pypy python reboot rm rmdir rsync ruby rust-script scp screen script sed setsid sh "
    "shred shutdown socat source ssh start-stop-daemon stdbuf strace su sudo systemctl systemd-run tar taskset "
    "tclsh tee time timeout tmux toybox truncate unshare uv uvx vim vi watch wget xargs yarn zsh . builtin ionice "
    "nvim ed ex less more man sqlite3 apk apt apt-get aptitude ant bazel brew bundle cmake conda dnf dotnet dpkg "
    "flatpak guix hatch just mamba meson micromamba mise mix ninja nix nix-shell nox pacman pdm pipenv pixi rake rpm "
    "rye sbt snap tox yum zypper".split()
)
# Programs whose second word says what they do: the prefix has two words. What runs code of the project (`npm run`,
# `cargo test`, `go run`, `git -c`) is not among the second words.
_SUBCOMMANDS = {
    "git": frozenset(
        "add blame branch checkout cherry-pick commit diff fetch log merge mv pull push reset restore revert "
        "show stash status switch tag worktree".split()
    ),
    "npm": frozenset("ls outdated view audit".split()),
    "pip": frozenset("list show freeze check".split()),
    "pip3": frozenset("list show freeze check".split()),
    "docker": frozenset("images inspect logs ps version".split()),
    "podman": frozenset("images inspect logs ps version".split()),
    "systemctl": frozenset("status list-units".split()),
}
# Options of git that run a program or write elsewhere: a command with one is asked about, whatever was remembered.
_GIT_RUNS = ("--upload-pack", "--receive-pack", "--exec", "--output", "--ext-diff", "--textconv", "-O")


def canonical_command(command: str, dialect: str = "bash") -> str:
    """Return the command as memory keeps it: one simple command in one spelling, anything else as it is written."""
    return parse(command, dialect).canonical


def displayed(command: str, limit: int = DISPLAY_LIMIT) -> str:
    """Return `command` for the eyes of a person: nothing hidden, or said how much.

    Control, bidirectional and invisible characters are escaped, long runs of blanks and empty lines are counted
    instead of shown, and of a text over `limit` characters the middle is left out, with its size.
    """
    if not command.strip():
        return f"(an empty command of {len(command)} characters)"
    text, gap = normalise(command), ""
    if len(text) > 16 * limit:  # of a huge text the middle is only counted, not read
        gap = text[8 * limit : -8 * limit]
        text = text[: 8 * limit] + "\0" + text[-8 * limit :]
    shown = _LONG_RUNS.sub(_counted, _MAY_BE_ESCAPED.sub(_escaped, text))
    if len(shown) <= limit and not gap:
        return shown
    head, tail = shown[: limit * 2 // 3], shown[-(limit // 3) :]
    if gap and len(shown) <= limit:
        head, tail = shown.split("\\x00", 1)
    left = shown[len(head) : max(len(head), len(shown) - len(tail))]
    characters, lines = len(left) + len(gap), left.count("\n") + gap.count("\n")
    return f"{head}\n[... {characters:,} characters in {lines:,} lines are left out here ...]\n{tail}"


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if unicodedata.category(char) not in _MAY_NOT_BE_SHOWN:
        return char
    point = ord(char)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _counted(run: re.Match[str]) -> str:
    count, char = len(run[0]), run[0][0]
    if char == "\n":
        return f"\n[{count - 1} empty lines]\n"
    return f" [{count} {'spaces' if char == ' ' else 'tabs'}] "


def summary(judgement: Judgement) -> dict[str, Any]:
    """Return the judgement as plain values: the verdict, and for each segment its text, verdict, rule and reason."""
    findings = [
        {
            "text": displayed(finding.segment.text, 200),
            "verdict": str(finding.verdict),
            "rule": finding.rule,
            "reason": finding.reason,
            "line": finding.segment.line,
        }
        for finding in judgement.findings
    ]
    return {"verdict": str(judgement.verdict), "findings": findings}


def _words(value: Iterable[str] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):  # JSON brings a list
        raise TypeError(f"'prefix' must be words, and not {value!r}")
    return tuple(value)


@attrs.frozen(kw_only=True)
class ApprovalRequest:
    """What is to be approved: an immutable copy of everything that decides what would run, and where.

    Attributes:
        id: unguessable and never used again.
        command: the exact text that will run.
        canonical: what memory compares; see `canonical_command`.
        workdir: where it would run, or None if unknown.
        shell: the shell that would run it; of what would be typed, the program: "process 1: python3".
        isolation: how far the executor isolates ("none", "docker" ...).
        reason: why it is asked.
        judgement: `summary()` of the policy's judgement, or None.
        prefix: the words that "always" may be offered for, or None; see `offer_prefix`.
        typed: whether a running program would read it, and not a shell.
        secret: whether the program asks for a secret: `command` tells only how long the text is. A decision's `command`
            takes its place, as secretly.
    """

    # Checked, because a request comes back from JSON that others had in their hands, and is shown to a person.
    id: str = attrs.field(validator=instance_of(str))
    command: str = attrs.field(validator=instance_of(str))
    canonical: str = attrs.field(validator=instance_of(str))
    workdir: str | None = attrs.field(default=None, validator=instance_of((str, type(None))))
    shell: str = attrs.field(default="bash", validator=instance_of(str))
    isolation: str = attrs.field(default="none", validator=instance_of(str))
    reason: str = attrs.field(default="", validator=instance_of(str))
    judgement: dict[str, Any] | None = attrs.field(default=None, validator=instance_of((dict, type(None))))
    prefix: tuple[str, ...] | None = attrs.field(default=None, converter=_words)
    typed: bool = attrs.field(default=False, validator=instance_of(bool))
    secret: bool = attrs.field(default=False, validator=instance_of(bool))

    @classmethod
    def of(
        cls,
        id: str,  # noqa: A002 - it is the field's name
        command: str,
        judgement: Judgement | None = None,
        *,
        dialect: str = "bash",
        **fields: Any,
    ) -> ApprovalRequest:
        """Return the request for `command`, with its canonical form and the summary of the policy's judgement.

        Args:
            id: see the class.
            command: the exact text that will run.
            judgement: the policy's judgement of it, if there is a policy.
            dialect: the shell's dialect.
            fields: `workdir`, `shell`, `isolation`, `reason`.
        """
        canonical = (judgement.canonical if judgement else "") or canonical_command(command, dialect)
        told = summary(judgement) if judgement else None
        prefix = offer_prefix(judgement) if judgement else None
        return cls(id=id, command=command, canonical=canonical, judgement=told, prefix=prefix, **fields)

    @property
    def display(self) -> str:
        """The command for the eyes of a person; see `displayed`."""
        return displayed(self.command)

    @property
    def key(self) -> tuple[str, str | None, str, str]:
        """What a remembered approval must share with this request (contract H7)."""
        return (self.canonical, self.workdir, self.shell, self.isolation)

    @property
    def digest(self) -> str:
        """SHA-256 over every field that decides what runs, in hexadecimal."""
        parts = [self.id, self.command, *self.key]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the text to show and the digest."""
        return {**attrs.asdict(self), "display": self.display, "digest": self.digest}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ApprovalRequest:
        """Return the request that `to_dict` wrote.

        Raises:
            ValueError: the values are incomplete, or were changed since.
        """
        names = {field.name for field in attrs.fields(cls)}
        try:
            request = cls(**{name: value for name, value in values.items() if name in names})
        except TypeError as error:
            raise ValueError(f"this is no approval request: {error.args[0]}") from error
        if values.get("digest") != request.digest:
            raise ValueError("the approval request was changed after it was made; make a new one")
        return request


@attrs.frozen(kw_only=True)
class Decision:
    """The answer to a request.

    Attributes:
        approved: whether the command may run.
        reason: told to the model, above all when it may not.
        scope: "once"; "session": the same command, again in this conversation; "prefix": every command that
            starts with `prefix`.
        command: the text to run instead, if the person edited it; it is judged anew, and never remembered.
        prefix: the words, for the scope "prefix".
    """

    approved: bool
    reason: str = ""
    scope: Scope = attrs.field(default="once", validator=attrs.validators.in_(("once", "session", "prefix")))
    command: str | None = None
    prefix: tuple[str, ...] | None = attrs.field(default=None, converter=_words)

    def __attrs_post_init__(self) -> None:
        if self.scope == "prefix" and not self.prefix:
            raise ValueError("a decision about a prefix needs the prefix")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return attrs.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Decision:
        """Return the decision that `to_dict` wrote.

        Raises:
            ValueError: the values are no decision.
        """
        try:
            decision = cls(**values)
        except TypeError as error:
            raise ValueError(f"this is no decision: {error}") from error
        if decision.approved is not True and decision.approved is not False:
            raise ValueError("`approved` of a decision is true or false")
        return decision


def offer_prefix(judgement: Judgement) -> tuple[str, ...] | None:
    """Return the words for "always allow commands that start so", or None if nothing should be offered.

    Offered only if the prefix would clear the whole command: every segment that is asked about is clear, writes
    nothing, is asked about by default and not by a rule, and starts with the same words; and only if these are no
    interpreter or wrapper (contract H7).
    """
    if judgement.verdict is not Verdict.ASK:
        return None
    offered: tuple[str, ...] | None = None
    for finding in judgement.findings:
        if finding.verdict is Verdict.ALLOW:
            continue
        segment = finding.segment
        plain = segment.clarity is Clarity.CLEAR and not segment.writes and not segment.via and not finding.rule
        prefix = _offered(segment) if plain else None
        if prefix is None or offered not in (None, prefix) or not _starts(segment, prefix):
            return None  # at once: a long text has thousands of segments
        offered = prefix
    return offered


def _offered(segment: Segment) -> tuple[str, ...] | None:
    argv = tuple(word.text for word in segment.words[:2] if word.known)
    if not argv or not segment.words[0].known or "/" in argv[0] or not re.fullmatch(r"[\w.+-]+", argv[0]):
        return None
    if argv[0] in _SUBCOMMANDS:
        return argv[:2] if len(argv) > 1 and argv[1] in _SUBCOMMANDS[argv[0]] else None
    name = argv[0].lower()
    return None if {name, re.sub(r"[\d.]+\Z", "", name), name.split(".")[0]} & _NEVER_OFFERED else argv[:1]


class ApprovalMemory:
    """What was decided in one conversation, and holds for its later commands. A denial beats an approval.

    It belongs to one tool, which asks it after the policy: a command that the policy denies is never recalled.
    """

    def __init__(self) -> None:
        self._exact: dict[tuple[str, str | None, str, str], Decision] = {}
        self._prefixes: dict[tuple[tuple[str, ...], str | None, str, str], Decision] = {}

    def remember(self, request: ApprovalRequest, decision: Decision, judgement: Judgement | None = None) -> None:
        """Keep `decision`, if its scope says so.

        Args:
            request: what was answered.
            decision: the answer. An edited command is not remembered: what was asked is not what was approved.
            judgement: for the scope "prefix": what `offer_prefix` was made from.

        Raises:
            ValueError: the prefix is not the one that would be offered for this judgement.
        """
        if decision.scope == "once" or decision.command is not None:
            return
        if decision.scope == "session":
            earlier = self._exact.get(request.key)
            if earlier is None or earlier.approved:
                self._exact[request.key] = decision
            return
        if judgement is None or decision.prefix is None or offer_prefix(judgement) != decision.prefix:
            raise ValueError(f"the prefix {decision.prefix!r} would not clear this command; approve it once instead")
        self._prefixes.setdefault((decision.prefix, *request.key[1:]), decision)

    def recall(self, request: ApprovalRequest, judgement: Judgement) -> Decision | None:
        """Return what was decided about such a command, or None: then ask.

        Args:
            request: the command to decide about.
            judgement: the policy's judgement of it, now; a verdict of DENY is never cleared.
        """
        exact = self._exact.get(request.key)
        if exact is not None and not exact.approved:
            return exact
        held = self._prefixes_for(request) if self._prefixes else []
        for prefix, decision in held:
            if not decision.approved and any(_starts(finding.segment, prefix) for finding in judgement.findings):
                return decision
        if judgement.verdict is Verdict.DENY:
            return None
        if exact is not None or not held:
            return exact
        asked = [finding for finding in judgement.findings if finding.verdict is not Verdict.ALLOW]
        cleared = [next((d for p, d in held if _clears(finding, p)), None) for finding in asked]
        return cleared[0] if cleared and all(cleared) else None

    def _prefixes_for(self, request: ApprovalRequest) -> list[tuple[tuple[str, ...], Decision]]:
        where = request.key[1:]
        return [(key[0], decision) for key, decision in self._prefixes.items() if key[1:] == where]


def _starts(segment: Segment, prefix: tuple[str, ...]) -> bool:
    unless = _GIT_RUNS if prefix[0] == "git" else ()
    return Rule(prefix=prefix, decision="allow", unless=unless).covers(segment)


def _clears(finding: Finding, prefix: tuple[str, ...]) -> bool:
    """Return whether an approved prefix answers a finding: asked by default, clear, and writing nothing."""
    segment = finding.segment
    asked = finding.verdict is Verdict.ASK and not finding.rule and not segment.writes
    return asked and segment.clarity is Clarity.CLEAR and _starts(segment, prefix)


class PendingApprovals:
    """Requests that wait for an answer. Each is answered once, and what runs is exactly what was asked.

    At most `MOST_WAITING` wait. The oldest makes room for a new one: a framework may have shown it and forgotten it,
    and an answer that comes all the same is refused. Of a request nothing is kept but its digest.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, str] = OrderedDict()

    def add(self, request: ApprovalRequest) -> ApprovalRequest:
        """Let `request` wait, and return it with the id that it waits under.

        The id is a new one each time, so none that was answered, or has expired, is ever good again.
        """
        request = attrs.evolve(request, id=secrets.token_hex(16))
        self._waiting[request.id] = request.digest
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        return request

    def settle(self, request: ApprovalRequest) -> None:
        """Take out a request that was answered: an approval works once.

        Raises:
            CommandDenied: it does not wait here, or what waits is another one.
        """
        digest = self._waiting.get(request.id)
        if digest is None:
            raise CommandDenied(
                f"the approval {request.id!r} was used already, has expired, or belongs to another conversation; "
                "ask again"
            )
        if digest != request.digest:
            raise CommandDenied(f"the approval {request.id!r} is for another command, directory or shell; ask again")
        del self._waiting[request.id]
