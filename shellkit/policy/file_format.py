"""`shellkit.toml`: a policy as a file. `loads(text, filename)` makes a `RulePolicy` of it, or says what is wrong where.

The file, with every key there is:

    [policy]
    default = "ask"            # about what no rule covers: "allow", "ask" (as without this key) or "deny"
    preset = "read-only"       # also allow the commands that only read; without this key: no preset
    read_only = false          # true: nothing but what the preset covers is allowed, whatever the rules allow
    writes = false             # true: `default = "allow"` also covers redirections that write (> file)

    [[rule]]
    prefix = ["git", ["add", "commit"]]     # the first words; a list in the list holds alternatives
    decision = "allow"                      # "allow", "ask" or "deny"; the strictest rule that covers decides
    reason = "local and reversible"         # shown to whoever approves
    unless = ["--amend", "-n"]              # not with these options, in any spelling
    writes = false                          # true: also with `> file`
    match = ["git add .", "git commit -m x"]        # checked when the file is loaded
    not_match = ["git push", "git commit --amend"]  # likewise

    [[rule]]
    prefix = [["rm", "shutdown", "mkfs"]]
    decision = "deny"
    reason = "ask the person to do it"

Any other key is a mistake, and so is a file with a mistake: nothing runs under a policy that was not understood.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from .base import PolicyError
from .readonly import READ_ONLY
from .rules import Rule, RulePolicy

__all__ = ["loads"]

_POLICY_KEYS: dict[str, type] = {"default": str, "preset": str, "read_only": bool, "writes": bool}
_RULE_KEYS: dict[str, type] = {
    "prefix": list, "decision": str, "reason": str, "unless": list, "writes": bool, "match": list, "not_match": list,
}  # fmt: skip
_NAMES = {str: "a text", bool: "true or false", list: "a list"}


def loads(text: str, filename: str = "shellkit.toml") -> RulePolicy:
    """Return the policy that `text` describes.

    Args:
        text: the content of the file.
        filename: its name, for messages only; nothing is read.

    Raises:
        PolicyError: the file has a mistake; the message names file, line and remedy.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise PolicyError(f"this is no TOML: {error}", filename, line) from error
    lines = _Lines(text, filename)
    for key in document:
        if key not in {"policy", "rule"}:
            raise lines.error(f"unknown key {key!r}; a policy file has [policy] and [[rule]]", lines.key(0, key))
    options = _checked(document.get("policy", {}), _POLICY_KEYS, lines, lines.header("policy"), "[policy]")
    tables = document.get("rule", [])
    if not isinstance(tables, list):
        raise lines.error("rules are written [[rule]], with two brackets", lines.header("rule"))
    rules = [_rule(table, number, lines) for number, table in enumerate(tables)]
    return _policy(options, rules, lines)


def _policy(options: dict[str, Any], rules: list[Rule], lines: _Lines) -> RulePolicy:
    start = lines.header("policy")
    preset = options.get("preset", "read-only" if options.get("read_only") else None)
    if preset not in {None, "read-only"}:
        raise lines.error(f"unknown preset {preset!r}; there is 'read-only'", lines.key(start, "preset"))
    try:
        return RulePolicy(
            rules=(*(READ_ONLY.rules if preset else ()), *rules),
            default=options.get("default", "ask"),
            writes=options.get("writes", False),
            cap=READ_ONLY if options.get("read_only") else None,
        )
    except PolicyError as error:
        raise lines.error(str(error), lines.key(start, "default")) from error


def _rule(table: Any, number: int, lines: _Lines) -> Rule:
    start = lines.rule(number)
    values = _checked(table, _RULE_KEYS, lines, start, f"[[rule]] number {number + 1}")
    for key in ("prefix", "decision"):
        if key not in values:
            raise lines.error(f"the rule has no {key!r}", start)
    for key in ("unless", "match", "not_match"):
        if not all(isinstance(each, str) for each in values.get(key, ())):
            raise lines.error(f"{key!r} is a list of texts", lines.key(start, key))
    for element in values["prefix"]:
        if not isinstance(element, str | list):
            message = f"an element of 'prefix' is a word or a list of words, not {element!r}"
            raise lines.error(message, lines.key(start, "prefix"))
    try:
        rule = Rule(**values, origin=f"{lines.filename}:{start}")
        RulePolicy(rules=(rule,))  # checks the examples, while the line is known
    except PolicyError as error:
        key = next(
            (key for key in ("not_match", "match", "unless", "decision") if _blames(error, key, values)), "prefix"
        )
        raise lines.error(str(error), lines.key(start, key)) from error
    return rule


def _blames(error: PolicyError, key: str, values: dict[str, Any]) -> bool:
    message = str(error)
    if key in {"match", "not_match"}:
        return "its example" in message and any(f"its example {each!r}" in message for each in values.get(key, ()))
    return message.startswith("a decision") if key == "decision" else "`unless`" in message


def _checked(table: Any, keys: dict[str, type], lines: _Lines, start: int, what: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise lines.error(f"{what} is a table, not {table!r}", start)
    for key, value in table.items():
        if key not in keys:
            raise lines.error(f"unknown key {key!r} in {what}; there are {', '.join(keys)}", lines.key(start, key))
        if not isinstance(value, keys[key]):
            raise lines.error(f"{key!r} is {_NAMES[keys[key]]}, not {value!r}", lines.key(start, key))
    return table


class _Lines:
    """Finds the lines of tables and keys, which tomllib does not tell. Counts lines from 1; 0 is the file's top."""

    def __init__(self, text: str, filename: str) -> None:
        self.filename = filename
        self.lines = text.splitlines()

    def error(self, message: str, line: int) -> PolicyError:
        return PolicyError(message, self.filename, max(line, 1))

    def header(self, name: str) -> int:
        return self._first(rf"\s*\[{name}\]", 0) or self._first(rf"\s*{name}\s*[.=]", 0)

    def rule(self, number: int) -> int:
        """Return the line of the rule with this number, counted from 0."""
        found = [at for at, line in enumerate(self.lines, 1) if re.match(r"\s*\[\[\s*[\"']?rule[\"']?\s*\]\]", line)]
        return found[number] if number < len(found) else 0

    def key(self, start: int, key: str) -> int:
        """Return the line of `key` in the table that starts at line `start`, or `start`."""
        quoted = rf"[\"']?{re.escape(key)}[\"']?"
        return self._first(rf"\s*(?:{quoted}\s*[.=]|\[\[?\s*{quoted}\s*[\].])", start) or start

    def _first(self, pattern: str, after: int) -> int:
        for at, line in enumerate(self.lines[after:], after + 1):
            if re.match(pattern, line):
                return at
            if after and re.match(r"\s*\[", line):
                break
        return 0
