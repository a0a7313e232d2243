"""`shellkit run`: commands in one session, from first to last."""

from __future__ import annotations

import json
import sys

import click

from ..executors.blocking import BlockingExecutor
from ..result import ShellResult
from .options import FAILED, INTERRUPTED, SessionOptions, open_session, session_options, told
from .output import LiveOutput, OutputClosed, note, notes_of, write

__all__ = ["run"]

#: What a shell reports for a program that wrote to a closed pipe: 128 + SIGPIPE.
_OUTPUT_CLOSED = 141


@click.command()
@click.argument("commands", metavar="[--] COMMAND...", nargs=-1, required=True)
@session_options
@click.option("--json", "as_json", is_flag=True, help="Print each result as one JSON object a line, and nothing else.")
def run(
    commands: tuple[str, ...],
    mode: str,
    shell: str | None,
    workdir: str | None,
    confinement: str | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Run commands one after another in one session.

    What they print appears while they run; the exit code is that of the last one (124 if it ran out of time, 1 if
    it did not run). A command that fails does not stop the ones after it. `-` stands for all of stdin as one
    command. shellkit's own errors have exit code 2.

    \b
    shellkit run 'export A=1; cd /tmp' 'exit 7' 'echo $A $PWD'
    shellkit run --timeout 60 -- 'make -j8' < /dev/null
    shellkit run --json - < script.sh
    """
    options = SessionOptions(mode, shell, workdir, confinement, timeout)
    try:
        with told():
            texts = _with_stdin(commands)
            with open_session(options) as session:
                code = _run_all(session, texts, as_json)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OutputClosed:
        code = _OUTPUT_CLOSED
    sys.exit(code)


def _with_stdin(commands: tuple[str, ...]) -> list[str]:
    if commands.count("-") > 1:
        raise click.UsageError("- stands for all of stdin, which can be read only once")
    return [_read_stdin() if command == "-" else command for command in commands]


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"stdin is not UTF-8 (byte {error.start}); convert it first, e.g. with iconv") from error


def _run_all(session: BlockingExecutor, commands: list[str], as_json: bool) -> int:
    left_running: list[ShellResult] = []
    result = None
    for command in commands:
        result = _run_one(session, command, as_json)
        left_running += [result] if result.background else []
    pids = [str(pid) for past in left_running for job in past.background if job.running for pid in job.pids]
    if pids and not as_json:
        note(f"background jobs end with the session: {', '.join(pids)}; use shellkit repl to keep it open")
    return FAILED if result is None or result.exit_code is None else result.exit_code


def _run_one(session: BlockingExecutor, command: str, as_json: bool) -> ShellResult:
    if as_json:
        result = session.run(command)
        write(1, json.dumps(result.to_dict(), allow_nan=False) + "\n")
        return result
    result = session.run(command, on_output=LiveOutput())
    for text in notes_of(result):
        note(text)
    return result
