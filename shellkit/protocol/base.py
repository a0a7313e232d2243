"""The one interface of a shell dialect: how to talk to a shell family, as pure functions from values to bytes.

`machine` calls it. A new shell is one file that implements it and one transcript test. Nothing here may do
input or output, and nothing here may guess what the shell answers: that is `machine`'s part.

Words: a *line* is what one write to the shell's stdin makes it run; the *trailer* is what the shell then
reports on the control channel; the *token* is random and marks every report of one shell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

import attrs

from .state import Checkpoint

__all__ = ["Call", "Dialect", "Endpoints", "Link"]


@attrs.frozen
class Link:
    """What the host and one shell have agreed on for the life of that shell.

    Attributes:
        token: random hexadecimal text that marks every report.
        control: path by which the shell can open the control channel when its own descriptors are gone.
        interrupt: number of the signal that makes the shell abandon its command and end.
        keeps_state: whether the shell shall print its state when it ends (persistent sessions).
        shadowed: words of the wrapper that the user has redefined.
    """

    token: bytes
    control: bytes
    interrupt: int
    keeps_state: bool = True
    shadowed: frozenset[bytes] = frozenset()


@attrs.frozen
class Endpoints:
    """Paths that a command's standard streams are opened by.

    Attributes:
        stdout: where standard output goes.
        stderr: where standard error goes; None sends it into stdout, in the order written.
        stdin: what the command reads.
    """

    stdout: bytes
    stderr: bytes | None
    stdin: bytes = b"/dev/null"


@attrs.frozen
class Call:
    """One command, ready to be put into a line.

    Attributes:
        text: the command.
        endpoints: where its streams go.
        path: a file that holds the text, for a command too long for the shell's stdin; None puts the text
            into the line.
        previous_exit_code: what `$?` shall be when the command starts.
    """

    text: bytes
    endpoints: Endpoints
    path: bytes | None = None
    previous_exit_code: int = 0


class Dialect(ABC):
    """How to talk to one family of shells."""

    #: The name that `Shell.family` and checkpoints carry.
    family: str
    #: The signal that makes the shell abandon its command and end (a name in the `signal` module).
    interrupt_signal: str = "SIGRTMAX"
    #: Longest command text, in bytes, that goes into a line; a longer one travels by a file.
    longest_inline: int = 4096
    #: What a new shell cannot be given back, as a sentence fragment; "" if nothing but contract D2's list.
    not_restored: str = ""
    #: Words of the wrapper whose shadowing by a user's function the trailer reports.
    watched: frozenset[bytes] = frozenset()

    @abstractmethod
    def prelude(self, link: Link, workdir: bytes) -> bytes:
        """Return the lines that make a new shell ready in `workdir`; they end with a trailer (0 if it could)."""

    @abstractmethod
    def functions(self, link: Link) -> bytes:
        """Return the lines that define the wrapper's functions, for a shell that keeps state."""

    @abstractmethod
    def wrapper(self, link: Link, endpoints: Endpoints) -> bytes:
        """Return the part of a line that stays the same from command to command."""

    @abstractmethod
    def line(self, link: Link, call: Call, *, install_wrapper: bool) -> bytes:
        """Return the line that runs `call` and reports its trailer.

        Args:
            link: the agreement with this shell.
            call: the command.
            install_wrapper: whether the shell does not hold the right `wrapper` yet.
        """

    @abstractmethod
    def last_line(self, link: Link, call: Call) -> bytes:
        """Return the line that runs `call` in a shell whose stdin ends after it: its exit is the trailer."""

    @abstractmethod
    def arrange(self, link: Link, workdir: bytes | None, env: Mapping[str, str | None]) -> bytes:
        """Return the line that sets what shall hold for one command, with a trailer (0 if it could).

        Args:
            link: the agreement with this shell.
            workdir: the directory to enter, or None.
            env: variables to export; None unsets.
        """

    @abstractmethod
    def settle(self, link: Link, workdir: bytes | None, env: Collection[str]) -> bytes:
        """Return the line that undoes `arrange`, with a trailer.

        Args:
            link: the agreement with this shell.
            workdir: the directory to go back to, or None.
            env: the names that `arrange` was given.
        """

    @abstractmethod
    def checkpoint(self, link: Link) -> bytes:
        """Return the line that makes an idle shell print its state."""

    @abstractmethod
    def recover(self, link: Link, *, forcibly: bool) -> bytes:
        """Return lines for a shell that sits idle without having reported; they end with a trailer.

        Args:
            link: the agreement with this shell.
            forcibly: also remove user functions that stand in the wrapper's way.
        """

    @abstractmethod
    def watch(self, link: Link) -> bytes:
        """Return lines that name the `watched` words a user's function shadows; no trailer; may be empty."""

    @abstractmethod
    def may_shadow(self, text: bytes) -> bool:
        """Return whether a command with this text may have shadowed a word of the wrapper."""

    @abstractmethod
    def shadowing(self, checkpoint: Checkpoint) -> frozenset[bytes]:
        """Return the `watched` words that a shell with this state would have shadowed."""

    @abstractmethod
    def why_unusable(self, checkpoint: Checkpoint) -> str:
        """Return why no command can run in a shell with this state, as "it ...", or ""."""

    @abstractmethod
    def run_script(self, link: Link, path: bytes) -> bytes:
        """Return the line that runs a file in the shell itself, silently, and reports a trailer."""

    @abstractmethod
    def in_band_prelude(self, workdir: bytes, marker: bytes) -> bytes:
        """Return the lines that make a new shell ready where reports go to its standard output and error."""

    @abstractmethod
    def in_band_line(self, text: bytes, previous_exit_code: int, marker: bytes) -> bytes:
        """Return the line that runs a command there, and prints `marker <code> <directory> NUL` on both streams."""

    @abstractmethod
    def restore(self, link: Link, checkpoint: Checkpoint, environ: Collection[str]) -> bytes:
        """Return a script for `run_script` that brings the state back in a new shell.

        Args:
            link: the agreement with the new shell.
            checkpoint: what the old shell printed.
            environ: names that the new shell inherited; those that the state lacks were unset.
        """
