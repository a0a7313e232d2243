"""`shellkit ps`: the programs that run in this user's agents."""

from __future__ import annotations

import click

from ..agent.presence import RunningAgent, running_agents
from ..policy import displayed
from ..process.update import ProcessInfo
from .options import told
from .output import note

__all__ = ["ps"]

_COLUMNS = ("AGENT", "SUB", "ID", "PID", "TIME", "STATE", "COMMAND")


@click.command()
def ps() -> None:
    """List the programs that agents of yours have launched and that still run.

    AGENT is the process id of the `shellkit agent`, SUB which of its sub-agents it is, if any; ID is what the model
    calls the program, PID its process. Only agents are listed: the programs of an executor in another process are
    known to that process alone. Neither is a command that run_shell waits for. An agent with another XDG_RUNTIME_DIR
    or TMPDIR than here is not found.
    """
    with told():
        agents = running_agents()
    rows = [_row(agent, process) for agent in agents for process in agent.processes if process.running]
    if rows:
        widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
        for row in (_COLUMNS, *rows):
            click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    else:
        click.echo("no program runs")
    for agent in agents:
        if agent.number is None:
            note(f"agent {agent.pid} does not answer: it is stopped, or is another version of shellkit")


def _row(agent: RunningAgent, process: ProcessInfo) -> tuple[str, ...]:
    return (
        str(agent.pid),
        str(agent.number or ""),
        str(process.process_id),
        str(process.pid or ""),
        _time(process.runtime),
        "waits for input" if process.waits_for_input else "runs",
        " ".join(displayed(process.command, 200).split()),
    )


def _time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
