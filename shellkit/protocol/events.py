"""What a shell can tell the host, as values. Produced by `machine`, consumed by sessions."""

from __future__ import annotations

import enum

import attrs

from .state import Checkpoint

__all__ = ["Channel", "CheckpointTaken", "Event", "Finished", "OutputReceived"]


class Channel(enum.Enum):
    """Where bytes of a shell arrived."""

    CONTROL = "control"
    STDOUT = "stdout"
    STDERR = "stderr"


@attrs.frozen
class Finished:
    """The shell has run what it was given and waits for the next line.

    Attributes:
        exit_code: `$?` of the command; None if the shell could not tell.
        workdir: the shell's own idea of its directory, as bytes (a path need not be text).
    """

    exit_code: int | None
    workdir: bytes


@attrs.frozen
class CheckpointTaken:
    """The shell has printed its state: on request while idle, or because it is about to end."""

    checkpoint: Checkpoint


@attrs.frozen
class OutputReceived:
    """Bytes of the running command (in-band framing only; a control channel leaves output alone)."""

    channel: Channel
    data: bytes


Event = Finished | CheckpointTaken | OutputReceived
