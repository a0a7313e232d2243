"""The parser against a real bash: what bash runs is among the segments, or the text is not allowed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shellkit.policy import Rule, RulePolicy, Verdict

NAMES = ["a", "b", "echo", "read", "test", "true", ":", "time", "nice", "command", "eval", "bash"]
POLICY = RulePolicy(rules=[Rule(prefix=[NAMES], decision="allow")])
# `a`, `b` and X do not exist: bash calls the handler with what it would have run.
HANDLER = 'command_not_found_handle() { builtin printf "%s\\n" "$1" >&3; }; readonly -f command_not_found_handle\n'


def run(command: str, directory: Path) -> set[str]:
    """Return the names of the programs that bash runs for `command`, with no program to be found."""
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", f"exec 3>&2 2>/dev/null\n{HANDLER}{command}"],
        env={"PATH": "/nonexistent"},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=20,
    )
    return set(done.stderr.decode("utf-8", "replace").split("\n")) - {""}


# Each was found by running both on random text: the grammar reads it otherwise than bash 5.2 does.
DISAGREEMENTS = [
    "\\ b",
    "a \n\\X b",
    "{a X;\n}",
    "[[a == b ]]",
    "[[ a == $2>(X) ]]",
    "[ a \n X ]",
    "x=$ X",
    "x=(a b)#; X",
    "echo ${x:-$\\\n(X)}",
    'echo "${x:-\'}"; X; echo "\'}"',
    "echo `# a` ; X\n`",
    "cat <<A; a <<B\nA\nX\nB\n",
    "a <<E\nE\\\n\nX\nE\n",
    "command >&-X",
    "a <<E\n`X`\nE\n",
    "echo ${x%$(X)}",
    "echo ${x/`X`/}",
    "echo `echo \\`X\\``",
    "a#b X\n#c\nX",
]


@pytest.mark.requires("bash")
@pytest.mark.parametrize("command", DISAGREEMENTS)
def test_where_the_grammar_is_wrong_nothing_is_allowed(command: str) -> None:
    """H6: a disagreement between the grammar and the shell is `ask`, not a way through."""
    assert POLICY.judge(command).verdict is not Verdict.ALLOW


_pieces = st.sampled_from(
    ["a", "b", "X", "echo", " ", " ", ";", "&&", "|", "\n", "$(", ")", "`", '"', "'", "\\", "\\\n", "#", " #", "{ ",
     "; }", "(", ")", "<<E\n", "<<'E'\n", "\nE\n", "$((", "))", "${x:-", "}", "[[ ", " ]]", "[ ", " ]", "if a; then ",
     "; fi", "for x in a; do ", "; done", "case a in a) ", ";; esac", "<", ">", "/dev/null", "$'", "!", "x=", "*", "<(",
     "<<<", "&", "time ", "$", "$x", "=", "~", "eval ", "'X'", ";X;", "$(X)", "`X`", "\nX\n", "bash -c "]
)  # fmt: skip


@pytest.mark.requires("bash")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(_pieces, min_size=2, max_size=12).map("".join))
def test_what_bash_runs_is_what_was_judged(tmp_path: Path, command: str) -> None:
    """H6: of an allowed text, bash runs nothing but allowed commands, and writes no file."""
    if POLICY.judge(command).verdict is Verdict.ALLOW:
        assert run(command, tmp_path) <= set(NAMES), command
        assert not list(tmp_path.iterdir()), command
