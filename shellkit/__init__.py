"""A shell for AI agents: a session that never wedges and never lies about what happened."""

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
from .executors.programs import ProcessLimits
from .output.page import OutputPage
from .process.update import ProcessInfo, ProcessUpdate
from .resolver import Shell, resolve
from .result import ShellResult
from .sessions.interactive import InteractiveSession, ScreenView
from .sessions.jobs import BackgroundJob, BlockingJob, JobOutput

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
