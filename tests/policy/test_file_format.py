"""`shellkit.toml`: what it means, and where its mistakes are."""

from __future__ import annotations

import textwrap

import pytest

from shellkit.errors import ShellkitError
from shellkit.policy import PolicyError, Verdict, file_format, loads


def test_the_documented_example_is_valid() -> None:
    """Issue 3: the example in the documentation loads, and does what its comments say."""
    doc = file_format.__doc__ or ""
    policy = loads(textwrap.dedent(doc[doc.index("    [policy]") : doc.index("Any other key")]))
    verdicts = {
        command: policy.judge(command).verdict.name
        for command in (
            "ls",
            "git add .",
            "git commit --amend",
            "git commit -nm x",
            "git push",
            "rm x",
            "ls; rm x",
            "ls > f",
        )
    }
    assert verdicts == {
        "ls": "ALLOW", "git add .": "ALLOW", "git commit --amend": "ASK", "git commit -nm x": "ASK", "git push": "ASK",
        "rm x": "DENY", "ls; rm x": "DENY", "ls > f": "ASK",
    }  # fmt: skip


def test_read_only_caps_what_the_rules_allow() -> None:
    """H6: a policy that calls itself read-only allows nothing but what the preset covers (sec-allowlist-arguments)."""
    names = '["find", "git", "sort", "echo", "tar", "awk", "sed", "xargs", "env"]'
    policy = loads(
        f'policy = {{ read_only = true, default = "deny" }}\n[[rule]]\nprefix = [{names}]\ndecision = "allow"'
    )
    assert policy.judge("find . -name x").verdict is Verdict.ALLOW
    for command in (
        "find . -delete",
        "git -c alias.x='!touch p' x",
        "sort -o p x",
        "echo x > p",
        "tar cf p x",
        "awk 1",
        "env touch p",
    ):
        assert policy.judge(command).verdict is not Verdict.ALLOW


def test_the_empty_file_asks_about_everything() -> None:
    """H6: without rules the default is to ask."""
    assert loads("").judge("ls").verdict is Verdict.ASK


def test_the_rule_is_named_with_its_line() -> None:
    """Issue 3: `policy check` can name the file and line that decided."""
    finding = loads('\n\n[[rule]]\nprefix = ["rm"]\ndecision = "deny"\n', "p.toml").judge("rm x").findings[0]
    assert finding.rule == "deny rm (p.toml:3)"


R = '[[rule]]\nprefix = ["x"]\ndecision = "allow"\n'
MISTAKES = {
    "no TOML": ('[policy]\ndefault = "ask\n', 2, "TOML"),
    "no TOML at the end": ("[policy", 1, "TOML"),
    "unknown table": ("[policy]\n[other]\n", 2, "unknown key 'other'"),
    "unknown top key": ("x = 1\n[policy]\n", 1, "unknown key 'x'"),
    "unknown policy key": ('# c\n[policy]\ndefault = "ask"\nstrict = true\n', 4, "unknown key 'strict'"),
    "unknown default": ('[policy]\n\ndefault = "maybe"\n', 3, "'maybe'"),
    "wrong type": ("[policy]\nwrites = 1\n", 2, "true or false"),
    "unknown preset": ('[policy]\npreset = "none"\n', 2, "unknown preset"),
    "rule, not [[rule]]": ('[rule]\nprefix = ["x"]\n', 1, "two brackets"),
    "unknown rule key": (R + R + 'because = "x"\n', 7, "unknown key 'because'"),
    "no decision": (R + '[[rule]]\nprefix = ["x"]\n', 4, "no 'decision'"),
    "no prefix": ('[[rule]]\ndecision = "ask"\n', 1, "no 'prefix'"),
    "empty prefix": ('[[rule]]\ndecision = "ask"\nprefix = []\n', 3, "at least one word"),
    "prefix as text": ('[[rule]]\nprefix = "git status"\ndecision = "ask"\n', 2, "a list"),
    "several words in one": ('[[rule]]\nprefix = ["git status"]\ndecision = "ask"\n', 2, "['git', 'status']"),
    "a number in the prefix": ('[[rule]]\nprefix = ["x", 1]\ndecision = "ask"\n', 2, "not 1"),
    "a number in alternatives": ('[[rule]]\nprefix = ["x", [1]]\ndecision = "ask"\n', 2, "element of a prefix"),
    "unknown decision": ('[[rule]]\nprefix = ["x"]\ndecision = "forbid"\n', 3, "'forbid'"),
    "unless without dash": (R + 'unless = ["output"]\n', 4, "`unless`"),
    "match is no list": (R + 'match = "x"\n', 4, "a list"),
    "match holds a number": (R + "\nmatch = [1]\n", 5, "list of texts"),
    "match contradicts": (R + 'match = ["x a",\n  "y"]\n', 4, "should cover its example 'y'"),
    "not_match contradicts": (R + R + 'match = ["x"]\nnot_match = ["x b"]\n', 8, "should leave out its example 'x b'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named_with_file_line_and_remedy(name: str) -> None:
    """Issue 3: a broken policy file -> the file, the line and the remedy, and nothing runs."""
    text, line, words = MISTAKES[name]
    with pytest.raises(PolicyError) as caught:
        loads(text, "shellkit.toml")
    assert (caught.value.filename, caught.value.line) == ("shellkit.toml", line)
    assert str(caught.value).startswith(f"shellkit.toml:{line}: ")
    assert words in str(caught.value)
    assert isinstance(caught.value, ShellkitError)
    assert isinstance(caught.value, ValueError)
