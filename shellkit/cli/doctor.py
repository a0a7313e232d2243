"""`shellkit doctor`: which shells, isolation and limits this machine offers, each with its remedy.

It only shows what `checks` found; what a check is and does stands there.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from typing import TYPE_CHECKING

import click

from .checks import Check, all_checks

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["doctor"]

_STYLES = {"ok": "green", "limited": "yellow", "refused": "dim", "absent": "dim", "failed": "bold red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> None:
    """Say which shells, isolation and limits this machine offers.

    Everything that is less than it could be comes with its remedy. Values of environment variables are never shown.
    The exit code is 0 if a session works here (one is really run), else 1.
    """
    checks = all_checks()
    works = not any(check.status == "failed" for check in checks)
    if as_json:
        click.echo(json.dumps({"works": works, "checks": [check.to_dict() for check in checks]}, indent=2))
    else:
        _show(checks, works)
    sys.exit(0 if works else 1)


def _show(checks: list[Check], works: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for group, members in groupby(checks, key=lambda check: check.group):
        console.print(f"\n{group}", style="bold")
        for check in members:
            _show_one(console, check)
    limited = sum(check.status == "limited" for check in checks)
    console.print(
        f"\ndoctor: a session {'works' if works else 'does NOT work'} here; {limited} of {len(checks)} limited"
    )


def _show_one(console: Console, check: Check) -> None:
    console.print(f"  {check.status:8}", end="", style=_STYLES[check.status])
    console.print(f"{check.name:22} {check.found}")
    if check.remedy:
        console.print(f"{'':32} -> {check.remedy}")
