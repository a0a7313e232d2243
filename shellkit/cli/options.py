"""The options that every sub-command with a session shares, and what becomes of shellkit's errors in a terminal.

Used by `run` and `repl`. Third-party and library errors end here: one line on stderr, with the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import attrs
import click

from ..errors import ShellkitError
from ..executors.blocking import BlockingExecutor
from ..executors.local import LocalExecutor

__all__ = ["FAILED", "INTERRUPTED", "USAGE", "SessionOptions", "open_session", "refusal", "session_options", "told"]

#: Exit codes of our own, where the command's does not say it. 128 + SIGINT as shells have it.
FAILED, USAGE, INTERRUPTED = 1, 2, 130

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
    """

    mode: str
    shell: str | None
    workdir: str | None
    confinement: str | None
    timeout: float | None


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
def open_session(options: SessionOptions) -> Iterator[BlockingExecutor]:
    """Start a session, and end it with everything it started."""
    try:
        executor = LocalExecutor(
            mode=options.mode,  # type: ignore[arg-type]  # click.Choice has checked it
            shell=options.shell,
            workdir=options.workdir,
            confinement=options.confinement,
            timeout=options.timeout,
        )
    except ValueError as error:  # only here: later on, a ValueError is a fault in shellkit
        raise refusal(error) from error
    with executor.sync() as session:
        yield session
