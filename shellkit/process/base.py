"""The narrow waist: what a session needs of a shell's process, wherever it runs.

`LocalProcess` is the one that runs here; a container or a remote host is another implementation with its own
way to signal and kill. Nothing in it waits: a session's driver does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from .pipes import Pipe

__all__ = ["Process"]


class Process(ABC):
    """A shell's process.

    Attributes:
        pid: its process id.
        stdin: descriptor that lines are written to; it does not block. Owned by this object.
        control: the pipe that reports arrive on. Owned by this object.
        exited: descriptor that becomes readable when the process has ended. Owned by this object.
    """

    pid: int
    stdin: int
    control: Pipe
    exited: int
    #: Whether a signal ended it, once `exit_code` has told.
    signalled: bool = False

    @abstractmethod
    def interrupt(self) -> None:
        """Make the shell abandon its command and end, and tell what it runs (SIGINT); the first rung.

        Called again, it tells only what has come since: a shell may have been just about to start something.
        """

    @abstractmethod
    def terminate(self) -> None:
        """Ask what the command started to end (SIGTERM); the second rung."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the shell and what the running command started; earlier jobs live on. The last rung."""

    @abstractmethod
    def kill_shell(self) -> None:
        """Kill the shell only."""

    @abstractmethod
    def command_survives(self) -> bool:
        """Return whether anything that the running command started is alive, the shell excluded."""

    @abstractmethod
    def exit_code(self) -> int | None:
        """Return how the ended shell ended (0-255, a signal as 128+n); None if alive or nobody can know."""

    @abstractmethod
    def close_stdin(self) -> None:
        """Close the shell's stdin: an idle shell runs its EXIT trap and ends. Idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Give all descriptors back; the process must have ended. Idempotent."""
