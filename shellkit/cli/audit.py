"""`shellkit audit`: check an audit log, and read it. It only shows what `shellkit.audit` says."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ..audit import records, redact
from ..audit import verify as check
from ..policy.approvals import displayed
from .options import told

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["audit"]

_EVENTS = ("before", "refused", "torn")
_SHOWN = 300  # characters of a command in the table


@click.group()
def audit() -> None:
    """Check or read the audit log of a tool."""


@audit.command()
@click.argument("file")
@click.option("--anchor", metavar="HASH", help="A hash that was noted earlier and must be among the lines.")
def verify(file: str, anchor: str | None) -> None:
    """Say whether a line of FILE was changed, removed, swapped, added or torn.

    The exit code is 0 if the chain is whole, 1 if it is not (each line with the reason), 2 if FILE cannot be read.

    That the last lines are missing shows only with an anchor: note the hash that this command prints where nobody
    who can write FILE can change it, and pass it next time.
    """
    with told():
        report = check(file, anchor=anchor)
    for note in report.notes:
        click.echo(f"{file}: note: {note}")
    for problem in report.problems:
        click.echo(f"{file}: {problem}")
    if report.problem_count > len(report.problems):
        click.echo(f"{file}: ... and {report.problem_count - len(report.problems)} more")
    unfinished = f", {report.unfinished} calls without an end" if report.unfinished else ""
    verdict = "the chain is whole" if report.ok else f"NOT whole: {report.problem_count} problems"
    click.echo(f"{file}: {report.lines} lines{unfinished}; {verdict}; the last hash is {report.head or 'unknown'}")
    sys.exit(0 if report.ok else 1)


@audit.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a call.")
@click.option("--last", metavar="N", type=click.IntRange(min=1), help="Only the last N calls.")
def show(file: str, as_json: bool, last: int | None) -> None:
    """Print the calls that FILE records, with what looks like a secret taken out.

    It does not check the chain; `shellkit audit verify` does.
    """
    with told():
        calls: Iterable[dict[str, Any]] = _calls(file)
        calls = list(calls) if last is None else deque(calls, maxlen=last)
    if as_json:
        for call in calls:
            click.echo(json.dumps(call))
    else:
        from rich.console import Console

        _show(Console(markup=False, emoji=False, highlight=False), calls)


def _calls(file: str) -> Iterator[dict[str, Any]]:
    """Yield one dictionary a call: what stood before it, and under "outcome" what came of it, or None.

    A call is yielded before its end has been read; its outcome is filled in when that comes.
    """
    running: dict[int, dict[str, Any]] = {}
    for record in records(file):
        if record.get("event") == "after":
            number = record.get("call")
            call = running.pop(number, None) if isinstance(number, int) else None
            if call is not None:
                call["outcome"] = {
                    name: value for name, value in record.items() if name not in ("event", "call", "prev")
                }
        elif record.get("event") in _EVENTS:
            call = {name: redact(value) if isinstance(value, str) else value for name, value in record.items()}
            call["outcome"] = None
            del call["prev"]
            if call["event"] == "before":
                running[call["seq"]] = call
            yield call


def _show(console: Console, calls: Iterable[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("#", justify="right", style="dim")
    table.add_column("time (UTC)", no_wrap=True, style="dim")
    table.add_column("command", ratio=1, overflow="fold")
    table.add_column("decided by", overflow="fold")
    table.add_column("ended", no_wrap=True)
    for call in calls:
        if call["event"] == "torn":
            row = (Text("(half a line was left by a crash before this one)", style="yellow"), "", "")
        else:
            style = "red" if call["event"] == "refused" else ""
            command = Text(displayed(str(call.get("command")), _SHOWN), style=style)
            row = (command, displayed(str(call.get("decided_by") or "?"), _SHOWN), _ended(call))
        table.add_row(str(call["seq"]), displayed(str(call.get("time"))[:19].replace("T", " ")), *row)
    console.print(table)


def _ended(call: dict[str, Any]) -> str:
    outcome = call["outcome"]
    if call["event"] == "refused":
        return "refused"
    if outcome is None:
        return "no end"
    if "error" in outcome:
        return displayed(str(outcome["error"]), _SHOWN)
    how = "timed out" if outcome.get("timed_out") else f"exit {outcome.get('exit_code')}"
    duration = outcome.get("duration")
    return displayed(f"{how}, {duration:.2f} s" if isinstance(duration, float | int) else how, _SHOWN)
