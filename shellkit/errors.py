"""Every exception that shellkit raises on purpose, sorted by what the caller can do about it.

ShellkitError
├── InvalidCommand        (also ValueError)  fix the call: the command cannot be given to a shell
├── InvalidWorkdir        (also SpawnError)  fix the call: the directory is missing or unreadable
├── SpawnError                               install or name another shell, or free resources
│   └── InvalidWorkdir
├── ExecutorUnavailable                      use another executor, platform or process
├── ExecutorClosed                           open a new executor; `.result` holds what had been printed
├── UnknownOutput         (also LookupError) run the command again, or ask for what the message names
├── ProcessEnded                             start the program again; what it printed can still be read
├── StdinClosed                              start the program again, and leave its stdin open
├── UnknownProcess        (also LookupError) launch it again, or take one that the message names
├── CommandDenied                            ask a person, or send another command
└── CommandFailed                            read `.result`; raised by `ShellResult.raise_for_exit()` only

Time-outs and non-zero exit codes are fields of `ShellResult`, never exceptions (contract A).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .result import ShellResult

__all__ = [
    "CommandDenied",
    "CommandFailed",
    "ExecutorClosed",
    "ExecutorUnavailable",
    "InvalidCommand",
    "InvalidWorkdir",
    "ProcessEnded",
    "ShellkitError",
    "SpawnError",
    "StdinClosed",
    "UnknownOutput",
    "UnknownProcess",
]


class ShellkitError(Exception):
    """The root of every exception that shellkit raises on purpose."""


class InvalidCommand(ShellkitError, ValueError):
    """The command text cannot be given to a shell (NUL, lone surrogate, too large); nothing ran."""


class SpawnError(ShellkitError):
    """No shell could be started; the message names what was tried and the remedy."""


class InvalidWorkdir(SpawnError, ValueError):
    """A working directory does not exist, is no directory, or may not be entered; nothing ran."""


class ExecutorUnavailable(ShellkitError):
    """This executor cannot work here: wrong platform, a missing program, or a forked child."""


class ExecutorClosed(ShellkitError):
    """The executor was closed before or while the command ran.

    Attributes:
        result: what the running command had printed, or None if it had not started.
    """

    def __init__(self, message: str, result: ShellResult | None = None) -> None:
        super().__init__(message)
        self.result = result


class UnknownOutput(ShellkitError, LookupError):
    """No output is kept under this reference: there never was, or it had to make room for newer output."""


class ProcessEnded(ShellkitError):
    """A program was to be typed to, or to print something, after it had ended."""


class StdinClosed(ShellkitError):
    """A program was to be typed to whose standard input is closed."""


class UnknownProcess(ShellkitError, LookupError):
    """No program has this number: none ever had, or it had to make room for others."""


class CommandDenied(ShellkitError):
    """A rule, a person or the confinement refused the command; nothing ran."""


class CommandFailed(ShellkitError):
    """The command ended with another exit code than 0, or ran out of time.

    Attributes:
        result: the whole `ShellResult`.
    """

    def __init__(self, message: str, result: ShellResult) -> None:
        super().__init__(message)
        self.result = result
