"""A shell for AI agents: a session that never wedges and never lies about what happened."""

from .errors import (
    CommandDenied,
    CommandFailed,
    ExecutorClosed,
    ExecutorUnavailable,
    InvalidCommand,
    InvalidWorkdir,
    ShellkitError,
    SpawnError,
    UnknownOutput,
)
from .executors.base import Executor
from .executors.blocking import BlockingExecutor
from .executors.local import LocalExecutor
from .output.page import OutputPage
from .resolver import Shell, resolve
from .result import ShellResult
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
    "InvalidCommand",
    "InvalidWorkdir",
    "JobOutput",
    "LocalExecutor",
    "OutputPage",
    "Shell",
    "ShellResult",
    "ShellkitError",
    "SpawnError",
    "UnknownOutput",
    "resolve",
]
