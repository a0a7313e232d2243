"""What a sub-agent works under: never laxer than its parent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from shellkit.agent.terms import AgentRefused, Invitation, Terms


def terms(**chosen: Any) -> Terms:
    """Return terms of a first agent."""
    return Terms(**{"model": "m", "workdir": "/w", **chosen})


@pytest.mark.parametrize(
    ("parent", "asked", "lent"),
    [
        ({}, {}, {}),
        ({}, {"model": "other", "api": "chat"}, {"model": "other", "api": "chat"}),
        ({"approve": "never"}, {"approve": "policy"}, {"approve": "policy"}),
        ({"typing": "first"}, {}, {}),
        ({"typing": "never"}, {"typing": "first"}, {"typing": "first"}),
        ({"approve": "never"}, {"approve": "policy", "policy": "p"}, {"approve": "policy", "policy": "p"}),
        ({"approve": "policy", "policy": "p"}, {"approve": "ask"}, {"approve": "ask", "policy": "p"}),
        ({"approve": "policy", "policy": "p"}, {"policy": "p"}, {"policy": "p"}),
        ({"approve": "ask"}, {"policy": "p"}, {"policy": "p"}),
        ({}, {"audit": "/a", "log": "/l"}, {"audit": "/a", "log": "/l"}),
        ({"audit": "/a"}, {"audit": "/a"}, {"audit": "/a"}),
        ({"max_tokens": 100}, {"max_tokens": 500}, {"max_tokens": 100}),
        ({"max_tokens": 100}, {"max_tokens": 50, "max_turns": 3}, {"max_tokens": 50, "max_turns": 3}),
        ({}, {"max_tokens": 50}, {"max_tokens": 50}),
        ({}, {"workdir": "/elsewhere"}, {"workdir": "/elsewhere"}),
        ({}, {"confinement": "root"}, {"confinement": "root"}),
        ({"confinement": "root"}, {"workdir": "/w/sub"}, {"confinement": "root", "workdir": "/w/sub"}),
        ({"confinement": "root", "policy": "p", "audit": "/a"}, dict.fromkeys(["confinement", "policy", "audit"]), {}),
    ],
)
def test_what_is_lent(parent: dict[str, Any], asked: dict[str, Any], lent: dict[str, Any]) -> None:
    """Issue 4, sub-agents: what is not asked for is as the parent has it, and what is asked for may be stricter."""
    assert terms(**parent).lend(**asked) == terms(**{**parent, **lent})


@pytest.mark.parametrize(
    ("parent", "asked", "remedy"),
    [
        ({"approve": "ask"}, {"approve": "policy"}, "leave --approve policy out"),
        ({"approve": "ask"}, {"approve": "never"}, "leave --approve never out"),
        ({"approve": "policy"}, {"approve": "never"}, "leave --approve never out"),
        ({}, {"typing": "never"}, "which has --typing always; leave --typing never out"),
        ({"typing": "first"}, {"typing": "never"}, "leave --typing never out"),
        ({"approve": "policy"}, {"policy": "p"}, "leave --policy out"),
        ({"approve": "never", "policy": "p"}, {"policy": "q"}, "leave --policy out"),
        ({"audit": "/a"}, {"audit": "/b"}, "leave --audit out"),
        ({"confinement": "root"}, {"confinement": "off"}, "leave --confinement off out"),
        ({"confinement": "root"}, {"workdir": "/elsewhere"}, "works below /w"),
        ({"confinement": "anchor"}, {"workdir": "/w/../x"}, "works below /w"),
    ],
)
def test_what_is_laxer_is_refused(parent: dict[str, Any], asked: dict[str, Any], remedy: str) -> None:
    """Issue 4, sub-agents: one that would be laxer than its parent is refused, with the remedy."""
    with pytest.raises(AgentRefused, match=remedy):
        terms(**parent).lend(**asked)


def test_terms_as_json() -> None:
    """Terms cross the socket unchanged, and a word that is no approval is none."""
    whole = terms(policy="p", environment={"A": "1"}, max_tokens=5, confinement="root")
    assert Terms(**json.loads(json.dumps(whole.to_dict()))) == whole
    with pytest.raises(ValueError, match="approve"):
        terms(approve="maybe")


def test_an_invitation_in_the_environment(tmp_path: Path) -> None:
    """The shell's variables lead to the broker, and `shellkit` is within reach where no environment is active."""
    invitation = Invitation("/s", "id")
    found = invitation.variables({"PATH": str(tmp_path)})
    assert Invitation.from_environment(found) == invitation
    assert found["PATH"].startswith(f"{tmp_path}{os.pathsep}")
    command = tmp_path / "shellkit"
    command.touch(mode=0o755)
    assert "PATH" not in invitation.variables({"PATH": str(tmp_path)})
    assert Invitation.from_environment({"SHELLKIT_AGENT_SOCKET": "/s"}) is None
