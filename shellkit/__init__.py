"""A shell for AI agents: a session that never wedges and never lies about what happened."""

from typing import TYPE_CHECKING, Any

from .errors import (
    CommandDenied,
    CommandFailed,
    ExecutorClosed,
    ExecutorUnavailable,
    InvalidCommand,
    InvalidWorkdir,
    ProcessEnded,
    ShellkitError,
    SpawnError,
    StdinClosed,
    UnknownOutput,
    UnknownProcess,
)
from .executors.base import Executor
from .executors.blocking import BlockingExecutor
from .executors.local import LocalExecutor
from .executors.process_limits import ProcessLimits
from .output.page import OutputPage
from .process.update import ProcessInfo, ProcessUpdate
from .resolver import Shell, resolve
from .result import ShellResult
from .sessions.jobs import BackgroundJob, BlockingJob, JobOutput

if TYPE_CHECKING:
    from .sessions.interactive import InteractiveSession, ScreenView

__version__ = "0.1.0"

__all__ = [
    "BackgroundJob",
    "BlockingExecutor",
    "BlockingJob",
    "CommandDenied",
    "CommandFailed",
    "Executor",
    "ExecutorClosed",
    "ExecutorUnavailable",
    "InteractiveSession",
    "InvalidCommand",
    "InvalidWorkdir",
    "JobOutput",
    "LocalExecutor",
    "OutputPage",
    "ProcessEnded",
    "ProcessInfo",
    "ProcessLimits",
    "ProcessUpdate",
    "ScreenView",
    "Shell",
    "ShellResult",
    "ShellkitError",
    "SpawnError",
    "StdinClosed",
    "UnknownOutput",
    "UnknownProcess",
    "resolve",
]


def __getattr__(name: str) -> Any:
    # Terminals are loaded when they are asked for (PEP 562): most programs only run commands.
    if name in ("InteractiveSession", "ScreenView"):
        from .sessions import interactive

        return getattr(interactive, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
