"""The loop that we ship: a model, a shell, and the events of their conversation."""

from __future__ import annotations

from .briefing import default_instructions
from .events import (
    ApprovalAsked,
    ApprovalGiven,
    CallFinished,
    CallRequested,
    Event,
    Message,
    OutputChunk,
    Stopped,
    TextDelta,
    Usage,
)
from .hosted import HostedFile, HostedShell
from .loop import Agent
from .transcript import Transcript, TranscriptError

__all__ = [
    "Agent",
    "ApprovalAsked",
    "ApprovalGiven",
    "CallFinished",
    "CallRequested",
    "Event",
    "HostedFile",
    "HostedShell",
    "Message",
    "OutputChunk",
    "Stopped",
    "TextDelta",
    "Transcript",
    "TranscriptError",
    "Usage",
    "default_instructions",
]
