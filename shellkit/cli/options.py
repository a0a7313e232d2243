"""The options that every sub-command with a session shares, and what becomes of shellkit's errors in a terminal.

Used by `run`, `repl` and `policy`. Third-party and library errors end here: one line on stderr, with the remedy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import attrs
import click

from ..errors import ShellkitError
from ..executors.blocking import BlockingExecutor
from ..executors.local import LocalExecutor
from ..policy.confinement import ConfinementMode
from ..sessions.base import Mode

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "REFUSED",
    "USAGE",
    "GateOptions",
    "SessionOptions",
    "command_text",
    "gate_options",
    "open_session",
    "refusal",
    "session_options",
    "told",
]

#: Exit codes of our own, where the command's does not say it. 128 + SIGINT as shells have it, and 126 for what may
#: not be run (POSIX XCU 2.8.2: found, and cannot be executed).
FAILED, USAGE, REFUSED, INTERRUPTED = 1, 2, 126, 130

Function = TypeVar("Function", bound=Callable[..., Any])


@attrs.frozen
class SessionOptions:
    """What was said on the command line about the session.

    Attributes:
        mode: "persistent" or "stateless".
        shell: name, path or command line of the shell; None for the default.
        workdir: where it starts; None for the current directory.
        confinement: "root", "anchor", "off"; None for the executor's own default.
        timeout: seconds that a command may take; None for no limit.
        record: path of a new file to record the session to, or None.
    """

    mode: Mode
    shell: str | None
    workdir: str | None
    confinement: ConfinementMode | None
    timeout: float | None
    record: str | None = None


def session_options(function: Function) -> Function:
    """Add the options to a click command."""
    options = (
        click.option(
            "--mode",
            type=click.Choice(["persistent", "stateless"]),
            default="persistent",
            show_default=True,
            help="One shell for all commands, or a fresh one for each.",
        ),
        click.option(
            "--shell", metavar="SHELL", help="Name or path of the shell. Default: $SHELLKIT_SHELL, then bash, then sh."
        ),
        click.option("--workdir", metavar="DIR", help="Where the shell starts. Default: the current directory."),
        click.option(
            "--confinement",
            type=click.Choice(["root", "anchor", "off"]),
            help="Whether cd may leave the working directory. Default: root with --workdir, else off.",
        ),
        click.option(
            "--timeout", type=float, metavar="SECONDS", help="End a command after so many seconds. Default: no limit."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@attrs.frozen
class GateOptions:
    """What was said on the command line about the gate.

    Attributes:
        approve: whether a person is asked: about every command, or with a policy about those that it asks about.
        policy: path of a policy file, or None.
        audit: path of an audit log, or None.
    """

    approve: bool
    policy: str | None
    audit: str | None

    @property
    def wanted(self) -> bool:
        """Whether there is a gate at all."""
        return self.approve or self.policy is not None or self.audit is not None


def gate_options(function: Function) -> Function:
    """Add the options to a click command."""
    options = (
        click.option(
            "--approve", is_flag=True, help="Ask before each command, or with --policy before those that it asks about."
        ),
        click.option(
            "--policy", metavar="FILE", help="Refuse what this policy denies, and what it asks about without --approve."
        ),
        click.option("--audit", metavar="FILE", help="Record each command in this audit log."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def command_text(command: str) -> str:
    """Return a command from the command line: itself, or all of stdin for `-`."""
    if command != "-":
        return command
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"stdin is not UTF-8 (byte {error.start}); convert it first, e.g. with iconv") from error


@contextmanager
def told() -> Iterator[None]:
    """Turn what shellkit raises on purpose into one line on stderr and exit code 2."""
    try:
        yield
    except ShellkitError as error:
        raise refusal(error) from error


def refusal(error: Exception) -> click.ClickException:
    """Return what click shows as one line, with exit code 2."""
    return _Refusal(" ".join(str(error).split()))


class _Refusal(click.ClickException):
    exit_code = USAGE


@contextmanager
def open_session(
    options: SessionOptions, executor_class: type[LocalExecutor] = LocalExecutor
) -> Iterator[BlockingExecutor]:
    """Start a session, and end it with everything it started."""
    try:
        executor = executor_class(
            mode=options.mode,
            shell=options.shell,
            workdir=options.workdir,
            confinement=options.confinement,
            timeout=options.timeout,
            record=options.record,
        )
    except ValueError as error:  # only here: later on, a ValueError is a fault in shellkit
        raise refusal(error) from error
    with executor.sync() as session:
        yield session
