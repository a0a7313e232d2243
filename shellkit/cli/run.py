"""`shellkit run`: commands in one session, from first to last."""

from __future__ import annotations

import json
import sys

import click

from ..errors import CommandDenied
from ..executors.blocking import BlockingExecutor
from ..policy.confinement import ConfinementMode
from ..result import ShellResult
from ..sessions.base import Mode
from .gate import GatedSession, open_gated
from .options import (
    FAILED,
    INTERRUPTED,
    REFUSED,
    GateOptions,
    SessionOptions,
    command_text,
    gate_options,
    session_options,
    told,
)
from .output import LiveOutput, note, notes_of, write

__all__ = ["run"]


@click.command()
@click.argument("commands", metavar="[--] COMMAND...", nargs=-1, required=True)
@session_options
@gate_options
@click.option("--json", "as_json", is_flag=True, help="Print each result as one JSON object a line, and nothing else.")
def run(
    commands: tuple[str, ...],
    mode: Mode,
    shell: str | None,
    workdir: str | None,
    confinement: ConfinementMode | None,
    timeout: float | None,
    approve: bool,
    policy: str | None,
    audit: str | None,
    as_json: bool,
) -> None:
    """Run commands one after another in one session.

    What they print appears while they run; the exit code is that of the last one (124 if it ran out of time, 1 if
    it did not run). A command that fails does not stop the ones after it. `-` stands for all of stdin as one
    command. shellkit's own errors have exit code 2.

    With --approve, --policy or --audit each command passes the gate that an agent's commands pass. One that is refused
    ends the run with exit code 126; the ones after it were meant to run after it, and do not.

    \b
    shellkit run 'export A=1; cd /tmp' 'exit 7' 'echo $A $PWD'
    shellkit run --timeout 60 -- 'make -j8' < /dev/null
    shellkit run --json - < script.sh
    shellkit run --approve 'git push'
    """
    options = SessionOptions(mode, shell, workdir, confinement, timeout)
    gate = GateOptions(approve, policy, audit)
    try:
        with told():
            texts = _with_stdin(commands)
            with open_gated(options, gate, "shellkit run", stdin_taken="-" in commands) as session:
                code = _run_all(session, texts, as_json)
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _with_stdin(commands: tuple[str, ...]) -> list[str]:
    if commands.count("-") > 1:
        raise click.UsageError("- stands for all of stdin, which can be read only once")
    return [command_text(command) for command in commands]


def _run_all(session: BlockingExecutor | GatedSession, commands: list[str], as_json: bool) -> int:
    left_running: list[ShellResult] = []
    result, refused = None, False
    for number, command in enumerate(commands, 1):
        try:
            result = _run_one(session, command, as_json)
        except CommandDenied as denied:
            note(str(denied) if number == len(commands) else f"{denied} The commands after it did not run either.")
            refused = True
            break
        left_running += [result] if result.background else []
    pids = [str(pid) for past in left_running for job in past.background if job.running for pid in job.pids]
    if pids and not as_json:
        note(f"background jobs end with the session: {', '.join(pids)}; use shellkit repl to keep it open")
    if refused:
        return REFUSED
    return FAILED if result is None or result.exit_code is None else result.exit_code


def _run_one(session: BlockingExecutor | GatedSession, command: str, as_json: bool) -> ShellResult:
    if as_json:
        result = session.run(command)
        write(1, json.dumps(result.to_dict(), allow_nan=False) + "\n")
        return result
    result = session.run_into(command, LiveOutput())
    for text in notes_of(result):
        note(text)
    return result
