"""Ordered rules on argument vectors, and the policy made of them: the strictest of all rules that match decides.

Allow rules are read narrowly, the others broadly. An allow rule for `ls` covers `ls` and `/bin/ls`, not `./ls`;
its words must be known and in place. A rule that asks or denies covers any path and any case of the name, and finds
its words behind options (`git -C dir push`). `unless` is what makes a broad allow rule bearable: the rule does
not cover a command with one of these options, in any spelling that GNU getopt takes.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence

import attrs

from .base import Clarity, Finding, Judgement, PolicyError, Segment, Verdict, Word
from .parse import parse
from .phrase import Match, find_phrase

__all__ = ["Rule", "RulePolicy"]

_STANDARD = frozenset({"/bin/", "/usr/bin/", "/usr/local/bin/"})
_GUESSES = 64  # words of an unknown launcher that are tried as the start of a command

Check = Callable[[tuple[Word, ...]], str]


def _prefix(value: Iterable[str | Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    if isinstance(value, str):
        raise PolicyError(f"a prefix is a list of words, not the text {value!r}; write {value.split()!r}")
    return tuple((element,) if isinstance(element, str) else tuple(element) for element in value)


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise PolicyError(f"this is a list of texts, not the text {value!r}")
    return tuple(value)


def _decision(value: str | Verdict) -> Verdict:
    if isinstance(value, Verdict):
        return value
    try:
        return Verdict[value.upper()]
    except (KeyError, AttributeError):
        raise PolicyError(f"a decision is 'allow', 'ask' or 'deny', not {value!r}") from None


@attrs.frozen(kw_only=True)
class Rule:
    """One rule on the first words of a command.

    Attributes:
        prefix: the words; each is one text or several alternatives (`["git", ["status", "diff"]]`).
        decision: what the rule says about a command that starts so.
        reason: shown to the person who approves, and to the model.
        unless: options that put a command outside of the rule: "-o" (also in `-xo`), "--output" (also
            abbreviated, also with `=`), "-exec" (a long option with one dash; a trailing `*` stands for any end).
        writes: whether an allow rule also covers redirections that write.
        match: commands that the rule must cover, checked when the policy is made.
        not_match: commands that it must not cover.
        check: for presets in Python: words -> why the rule does not cover them, or "".
        origin: where the rule comes from, for messages.
        label: the rule in one line: decision, prefix, origin.

    Raises:
        PolicyError: a field is malformed.
    """

    prefix: tuple[tuple[str, ...], ...] = attrs.field(converter=_prefix)
    decision: Verdict = attrs.field(converter=_decision)
    reason: str = ""
    unless: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    writes: bool = False
    match: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    not_match: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    check: Check | None = attrs.field(default=None, eq=False)
    origin: str = ""
    label: str = attrs.field(init=False, eq=False, repr=False)
    _names: frozenset[str] = attrs.field(init=False, eq=False, repr=False)

    @label.default
    def _in_one_line(self) -> str:
        """The rule in one line: decision, prefix, origin."""
        words = " ".join("|".join(map(str, alternatives)) for alternatives in self.prefix)
        return f"{self.decision} {words}" + (f" ({self.origin})" if self.origin else "")

    @_names.default
    def _called(self) -> frozenset[str]:
        return frozenset(str(name).casefold() for alternatives in self.prefix[:1] for name in alternatives)

    def __attrs_post_init__(self) -> None:
        if not self.prefix:
            raise PolicyError("a rule needs a prefix of at least one word; `default` is for every other command")
        for alternatives in self.prefix:
            if not alternatives or not all(isinstance(word, str) and word for word in alternatives):
                raise PolicyError(f"each element of a prefix is a word or a list of words, not {alternatives!r}")
        for name in self.prefix[0]:
            if re.search(r"\s", name):
                raise PolicyError(f"{name!r} is several words; write {name.split()!r}")
        if not all(re.match(r"-.", option) for option in self.unless):
            raise PolicyError("each element of `unless` is an option, such as '-o' or '--output'")

    def covers(self, segment: Segment) -> bool:
        """Return whether the rule applies to `segment`, or for one that asks or denies: may apply."""
        if self.decision is Verdict.ALLOW:
            return self.exact(segment) and not self.excluded(segment)
        return self.broad(segment) is not Match.NO

    def exact(self, segment: Segment) -> bool:
        """Return whether the words are known, in place, and the program lies where the system keeps its own."""
        words = segment.words
        if len(words) < len(self.prefix) or not all(word.known for word in words[: len(self.prefix)]):
            return False
        first = words[0]
        place = first.text[: len(first.text) - len(first.name)]
        named = first.text in self.prefix[0] or (place in _STANDARD and first.name in self.prefix[0])
        rest = zip(self.prefix[1:], words[1:], strict=False)
        return named and all(word.text in alternatives for alternatives, word in rest)

    def excluded(self, segment: Segment) -> str:
        """Return why a segment with the right words is outside of the rule, or ""."""
        arguments = segment.words[len(self.prefix) :]
        if self.unless:
            for word in arguments:
                option = _excluding(word, self.unless)
                if option:
                    return option
        return self.check(segment.words) if self.check else ""

    def broad(self, segment: Segment) -> Match:
        """Return whether the segment is, or may be, what the rule means; of a launcher each word is tried."""
        tried = segment.words[: _GUESSES if segment.launches else 1]
        starts = [at for at, word in enumerate(tried) if not self._names.isdisjoint(_names(word))]
        return max((find_phrase(segment.words[at:], self.prefix[1:]) for at in starts), default=Match.NO)


def _rules(value: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(value)


def _names(word: Word) -> tuple[str, str]:
    return (word.text.casefold(), word.name.casefold())


def _excluding(word: Word, options: Sequence[str]) -> str:
    """Return why `word` is, or may be, one of `options`, or ""."""
    if not word.known:
        return "" if word.operand else f"`{word.text}` is only known when it runs, and may be an option"
    text = word.text
    if not text.startswith("-"):
        return ""
    for option in options:
        if option.startswith("--"):
            given = text.partition("=")[0]
            hit = len(given) > 2 and (option.startswith(given) or fnmatch.fnmatchcase(given, option))
        elif len(option) == 2:
            hit = not text.startswith("--") and option[1] in text[1:]
        else:
            hit = fnmatch.fnmatchcase(text, option)
        if hit:
            return f"`{option}` may write or run something"
    return ""


@attrs.frozen(kw_only=True)
class RulePolicy:
    """A policy made of rules.

    Attributes:
        rules: all of them are looked at; the strictest that covers a segment decides about it.
        default: about a segment that no rule covers.
        writes: whether `default` also covers redirections that write.
        cap: a policy that must agree before a segment is allowed (a policy that calls itself read-only).

    Raises:
        PolicyError: an example of a rule contradicts it.
    """

    rules: tuple[Rule, ...] = attrs.field(default=(), converter=_rules)
    default: Verdict = attrs.field(default=Verdict.ASK, converter=_decision)
    writes: bool = False
    cap: RulePolicy | None = None
    _by_name: dict[str, tuple[Rule, ...]] = attrs.field(init=False, eq=False, repr=False)

    @_by_name.default
    def _index(self) -> dict[str, tuple[Rule, ...]]:
        index: dict[str, tuple[Rule, ...]] = {}
        for rule in self.rules:
            for name in rule._names:
                index[name] = (*index.get(name, ()), rule)
        return index

    def __attrs_post_init__(self) -> None:
        for rule in self.rules:
            for example in (*rule.match, *rule.not_match):
                covered = any(rule.covers(segment) for segment in parse(example).segments)
                if covered != (example in rule.match):
                    should = "cover" if example in rule.match else "leave out"
                    raise PolicyError(f"the rule {rule.label!r} should {should} its example {example!r}, and does not")

    def judge(self, command: str, *, dialect: str = "bash") -> Judgement:
        """Return the judgement about `command`; see `Policy.judge`. The strictest finding decides."""
        parsed = parse(command, dialect)
        findings = [self._find(segment) for segment in parsed.segments]
        if parsed.too_large:
            findings.extend(self._scan(parsed.text, parsed.segments[0]))
        if not findings:
            nothing = Segment(text=parsed.text, clarity=Clarity.OPAQUE, why="there is no command in the text")
            findings.append(self._find(nothing))
        verdict = max(finding.verdict for finding in findings)
        return Judgement(verdict=verdict, findings=tuple(findings), canonical=parsed.canonical)

    def _find(self, segment: Segment) -> Finding:
        """Decide about one segment: rules that deny or ask, then what is hidden, then rules that allow."""
        candidates = self._candidates(segment)
        strict = [(rule, rule.broad(segment)) for rule in candidates if rule.decision is not Verdict.ALLOW]
        hits = [(rule.decision if sure is Match.YES else Verdict.ASK, rule) for rule, sure in strict if sure]
        if hits:
            verdict, rule = max(hits, key=lambda hit: hit[0])
            reason = rule.reason or f"`{' '.join(a[0] for a in rule.prefix)}`: a rule says {rule.decision}"
            if verdict is not rule.decision:
                reason = f"this may be a command that is denied: {reason}"
            return self._at_least(segment, verdict, rule.label, reason)
        if segment.clarity is Clarity.OPAQUE:
            return self._at_least(segment, Verdict.ASK, "", segment.why)
        if not segment.words:
            return self._writing(segment, Verdict.ALLOW, "", "", self.writes)
        covering = [rule for rule in candidates if rule.decision is Verdict.ALLOW and rule.covers(segment)]
        if segment.clarity is Clarity.INDIRECT:
            covering = [rule for rule in covering if len(rule.prefix) > 1]
        if covering:
            rule = next((rule for rule in covering if rule.writes), covering[0])
            return self._writing(segment, Verdict.ALLOW, rule.label, rule.reason, rule.writes)
        return self._uncovered(segment, candidates)

    def _uncovered(self, segment: Segment, candidates: Sequence[Rule]) -> Finding:
        near = [rule.excluded(segment) for rule in candidates if rule.decision is Verdict.ALLOW and rule.exact(segment)]
        why = segment.why or next(filter(None, near), "")
        if segment.clarity is Clarity.INDIRECT or near:
            name = segment.words[0].text
            return self._at_least(segment, Verdict.ASK, "", why or f"no rule covers `{name}` with these words")
        reason = "" if self.default is Verdict.ALLOW else f"no rule covers `{segment.words[0].text}`"
        return self._writing(segment, self.default, "", reason, self.writes)

    def _at_least(self, segment: Segment, verdict: Verdict, rule: str, reason: str) -> Finding:
        # Where the default denies, what is not understood is not covered by a rule, and denied like the rest.
        stricter = max(verdict, self.default) if not rule else verdict
        return Finding(segment=segment, verdict=stricter, rule=rule, reason=reason)

    def _writing(self, segment: Segment, verdict: Verdict, rule: str, reason: str, writes: bool) -> Finding:
        if verdict is Verdict.ALLOW and segment.writes and not writes:
            targets = ", ".join(segment.writes)
            verdict, reason = max(Verdict.ASK, self.default), f"it writes to {targets}"
        elif verdict is Verdict.ALLOW and self.cap is not None:
            capped = self.cap._find(segment)
            if capped.verdict is not Verdict.ALLOW:
                verdict, rule, reason = capped.verdict, "", capped.reason
        return Finding(segment=segment, verdict=verdict, rule=rule, reason=reason)

    def _candidates(self, segment: Segment) -> tuple[Rule, ...]:
        # Of a launcher each word may be the command; a dict, for the order of the rules and for none twice.
        words = segment.words[: _GUESSES if segment.launches else 1]
        names = [name for word in words for name in dict.fromkeys(_names(word))]
        return tuple({id(rule): rule for name in names for rule in self._by_name.get(name, ())}.values())

    def _scan(self, text: str, segment: Segment) -> Iterable[Finding]:
        """Look for the names of denied commands in a text that is too large to be parsed.

        Without this, padding would turn a denied command into one that is only asked about.
        """
        for rule in self.rules:
            if rule.decision is Verdict.DENY:
                names = "|".join(re.escape(name) for name in rule.prefix[0])
                if re.search(rf"(?<![\w.-])(?:{names})(?![\w.-])", text, re.IGNORECASE):
                    reason = f"the text is too large to be looked into, and holds a denied word: {rule.reason or names}"
                    yield Finding(segment=segment, verdict=Verdict.DENY, rule=rule.label, reason=reason)
