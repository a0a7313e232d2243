"""`shellkit policy check`: what a policy says about a command, segment by segment. Nothing runs.

`run` and `repl` read their policy file here too. What a verdict means and how it is found stands in `shellkit.policy`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import click

from ..policy import READ_ONLY, Finding, Judgement, Policy, PolicyError, Verdict, displayed, loads
from ..policy.approvals import summary
from .options import command_text, refusal, told

__all__ = ["policy", "policy_of", "policy_text", "read_policy"]

_FILE = "shellkit.toml"
#: 2 is click's for a wrong call, and ours for a policy file that cannot be used.
_EXIT_CODES = {Verdict.ALLOW: 0, Verdict.DENY: 1, Verdict.ASK: 3}
_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}
_SHOWN = 1000  # characters of one segment


@click.group()
def policy() -> None:
    """Explain what a policy says about a command."""


@policy.command()
@click.argument("command", metavar="[--] COMMAND")
@click.option(
    "--policy",
    "file",
    metavar="FILE",
    help=f"The policy file. Default: {_FILE} in this directory or above it, as far as the root of the git repository "
    "or the home directory; without one, the preset of commands that only read.",
)
@click.option(
    "--shell-dialect", "dialect", metavar="NAME", default="bash", show_default=True, help="The shell it is for."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(command: str, file: str | None, dialect: str, as_json: bool) -> None:
    """Say what a policy decides about COMMAND, and why, for each thing that it does. Nothing runs.

    The last line is the strictest verdict, which is the one that counts. The exit code says it too: 0 allow, 1 deny,
    3 ask; 2 if the policy file cannot be used. `-` stands for all of stdin.

    \b
    shellkit policy check 'git status && rm -rf /'
    """
    with told():
        text = command_text(command)
        rules, source = _chosen(file)
        judgement = rules.judge(text, dialect=dialect)
    if as_json:
        click.echo(json.dumps({"policy": source, **summary(judgement)}))
    else:
        click.echo("\n".join(_explained(judgement, source)))
    sys.exit(_EXIT_CODES[judgement.verdict])


def read_policy(path: str) -> Policy:
    """Return the policy that the file holds; raises as `policy_text` and `policy_of` do."""
    return policy_of(policy_text(path), path)


def policy_text(path: str) -> str:
    """Return what the policy file says, unchecked.

    Raises:
        PolicyError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise PolicyError(f"cannot be read ({error.strerror}); name a policy file", path) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyError("this is not UTF-8; convert the file, e.g. with iconv", path, line) from error


def policy_of(text: str, path: str) -> Policy:
    """Return the policy that the text of the file at `path` makes.

    Raises:
        PolicyError: it has a mistake; the message names file, line and remedy.
    """
    try:
        return loads(text, path)
    except PolicyError as error:
        raise PolicyError(f"{error}. Mend it first: nothing runs under a policy with a mistake") from error


def _chosen(file: str | None) -> tuple[Policy, str]:
    """Return the policy to judge by, and where it comes from."""
    if file is not None:
        return read_policy(file), file
    try:
        here = os.getcwd()
    except OSError as error:
        raise refusal(PolicyError(f"the current directory is gone ({error.strerror}); go to another one")) from error
    found = next((path for path in _places(here) if os.path.lexists(path)), None)
    if found is not None:
        return read_policy(found), found
    return READ_ONLY, f"the preset read-only (no {_FILE} from {here} upwards)"


def _places(here: str) -> Iterator[str]:
    """Yield where a policy file may lie, the nearest first.

    Not above the repository or the home directory: in `/tmp` or `/` it may be somebody else's. Outside of both only
    the directory itself counts.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    above = here
    places = [os.path.join(here, _FILE)]
    while above != home and not os.path.lexists(os.path.join(above, ".git")):
        parent = os.path.dirname(above)
        if parent == above:
            yield places[0]
            return
        above = parent
        places.append(os.path.join(above, _FILE))
    yield from places


def _explained(judgement: Judgement, source: str) -> Iterator[str]:
    yield f"policy: {displayed(source)}"
    for finding in judgement.findings:
        yield from _explained_one(finding)
    yield ""
    yield f"verdict: {_coloured(judgement.verdict)}"


def _explained_one(finding: Finding) -> Iterator[str]:
    segment = finding.segment
    yield ""
    yield f"line {segment.line}: {_indented(segment.text)}"
    yield f"    verdict  {_coloured(finding.verdict)}"
    if segment.via:
        words = " ".join(word.text for word in segment.words)
        yield f"    runs     {_indented(words or segment.text)} (started by {displayed(segment.via, 100)})"
    yield f"    rule     {_shortened(finding.rule) if finding.rule else 'none'}"
    if finding.reason:
        yield f"    reason   {_indented(finding.reason)}"


def _shortened(rule: str) -> str:
    """Return a rule with its beginning and its origin; a preset's may name eighty programs."""
    shown = displayed(rule)
    return shown if len(shown) <= 120 else f"{shown[:60]} ... {shown[-50:]}"


def _indented(text: str) -> str:
    return displayed(text, _SHOWN).replace("\n", "\n" + " " * 13)


def _coloured(verdict: Verdict) -> str:
    return click.style(str(verdict), fg=_COLOURS[str(verdict)])  # click.echo takes it out where no terminal is
