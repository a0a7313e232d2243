"""`shellkit repl`: talk to a session line by line."""

from __future__ import annotations

import contextlib
import os
import sys

import click

from ..errors import CommandDenied, ShellkitError
from ..executors.blocking import BlockingExecutor
from ..policy.confinement import ConfinementMode
from ..sessions.base import Mode
from .ending import close_when_ended
from .gate import GatedSession, open_gated
from .lines import LineReader
from .options import (
    FAILED,
    INTERRUPTED,
    REFUSED,
    GateOptions,
    SessionOptions,
    gate_options,
    refusal,
    session_options,
    told,
)
from .output import LiveOutput, note, notes_of, write

__all__ = ["repl"]


@click.command()
@session_options
@gate_options
@click.option("--tty", is_flag=True, help="Hand the terminal to an interactive shell; nothing is judged in there.")
@click.option("--record", metavar="FILE", help="Record the session to a new file, for `shellkit play`.")
def repl(
    mode: Mode,
    shell: str | None,
    workdir: str | None,
    confinement: ConfinementMode | None,
    timeout: float | None,
    approve: bool,
    policy: str | None,
    audit: str | None,
    tty: bool,
    record: str | None,
) -> None:
    """Talk to a session, a line at a time.

    A line is a command; one that ends in \\ goes on in the next. Ctrl-C interrupts the running command and not the
    session, Ctrl-D leaves. `exit` ends only the shell: the next command finds its state again. The prompt shows the
    working directory and the last exit code, which is also the exit code of the repl.

    Without a terminal the lines of stdin are run one after another.

    With --approve, --policy or --audit each command passes the gate that an agent's commands pass. One that is refused
    has exit code 126.

    With --tty the terminal belongs to an interactive shell until that ends: editors, job control and Ctrl-C work as in
    any terminal, and the exit code is the shell's.
    """
    options = SessionOptions(mode, shell, workdir, confinement, timeout, record)
    gate = GateOptions(approve, policy, audit)
    if tty:
        sys.exit(_hand_over(options, gate))
    lines = LineReader() if sys.stdin.isatty() else None
    if lines is not None:
        close_when_ended()  # the history is kept also when the terminal's window is closed
    with told():
        try:
            with (
                open_gated(options, gate, "shellkit repl", stdin_taken=lines is None) as session,
                lines or contextlib.nullcontext(),
            ):
                code = _Conversation(session, lines).hold()
        except KeyboardInterrupt:
            code = INTERRUPTED
    sys.exit(code)


def _hand_over(options: SessionOptions, gate: GateOptions) -> int:
    if gate.wanted:
        raise click.UsageError(
            "--approve, --policy and --audit see commands, not what is typed into a terminal; leave them out, or --tty"
        )
    if options.confinement is not None or options.timeout is not None or options.mode != "persistent":
        raise click.UsageError("--mode, --confinement and --timeout hold for commands; leave them out, or --tty")
    if not (os.isatty(0) and os.isatty(1)):
        raise click.UsageError("--tty needs a terminal as stdin and stdout; run it in one (ssh -t, docker -it)")
    import asyncio

    from .handover import hand_over, interactive_shell

    with told():
        try:
            shell = interactive_shell(options.shell, options.workdir, options.record)
        except ValueError as error:  # only here: later on, a ValueError is a fault in shellkit
            raise refusal(error) from error
        try:
            code = asyncio.run(hand_over(shell))
        except KeyboardInterrupt:
            code = INTERRUPTED
    return FAILED if code is None else code


class _Conversation:
    """Reads lines and runs them.

    Args:
        session: where commands run.
        lines: what a person types at a terminal; None if stdin is none.
    """

    def __init__(self, session: BlockingExecutor | GatedSession, lines: LineReader | None) -> None:
        self._session = session
        self._lines = lines
        self._talks = lines is not None
        self._exit_code = 0
        self._workdir: str | None = None

    def hold(self) -> int:
        """Go on until the end of the input; return the last exit code."""
        # Past the gate: it runs nothing, and only tells where the shell stands.
        self._workdir = self._session.executor.sync().run("").workdir
        while True:
            try:
                command = self._read_command()
            except KeyboardInterrupt:
                if not self._talks:
                    raise
                write(1, "\n")
                continue
            if command is None:
                if self._talks:
                    write(1, "\n")
                return self._exit_code
            if command.strip():
                self._run(command)

    def _read_command(self) -> str | None:
        lines: list[str] = []
        while True:
            line = self._read_line("> " if lines else self._prompt())
            if line is None:
                return "\n".join(lines) if lines else None
            lines.append(line)
            # An escaped backslash at the end does not continue the line.
            if (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                return "\n".join(lines)

    def _read_line(self, prompt: str) -> str | None:
        if self._lines is not None:
            return self._lines.read(prompt)
        # Bytes that are no UTF-8 become surrogates, which `run` refuses by name.
        line = sys.stdin.buffer.readline().decode("utf-8", "surrogateescape")
        return line.removesuffix("\n") if line else None

    def _prompt(self) -> str:
        where = self._workdir or "?"
        home = os.environ.get("HOME", "")
        if home not in ("", "/") and (where == home or where.startswith(home + "/")):
            where = "~" + where[len(home) :]
        return f"{where} [{self._exit_code}] $ "

    def _run(self, command: str) -> None:
        live = LiveOutput()
        try:
            result = self._session.run_into(command, live)
        except KeyboardInterrupt:
            self._exit_code = INTERRUPTED
            if self._talks and live.unfinished:
                write(1, "\n")
            note("interrupted; the rest of the command did not run, the session goes on")
            return
        except ShellkitError as error:  # a NUL in the line, no room for a new shell, the gate; nothing ran
            self._exit_code = REFUSED if isinstance(error, CommandDenied) else FAILED
            note(str(error))
            return
        self._exit_code = FAILED if result.exit_code is None else result.exit_code
        self._workdir = result.workdir
        if self._talks and live.unfinished:
            write(1, "\n")
        for text in notes_of(result):
            note(text)
        for job in result.background:
            if job.running:
                note(f"runs in the background: {', '.join(map(str, job.pids))}; it ends with the repl")
