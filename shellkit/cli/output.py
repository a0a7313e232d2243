"""What a command prints goes to our own stdout and stderr while it runs; what shellkit has to say, to stderr.

Used by `run` and `repl`. It writes to the descriptors themselves: Python's streams would translate line ends,
refuse what the locale cannot encode, and complain about a closed pipe once more when the interpreter ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from ..result import ShellResult
from ..sessions.base import StreamName

__all__ = ["LiveOutput", "OutputClosed", "note", "notes_of", "write"]

_DESCRIPTORS: dict[StreamName, int] = {"stdout": 1, "stderr": 2}


class OutputClosed(BaseException):
    """Our output goes nowhere any more. Not an `Exception`: nothing on the way may take it for a failure."""


class LiveOutput:
    """A listener for `run_into` that passes output on, byte for byte; a slow reader slows the command down.

    Attributes:
        unfinished: whether the last thing that went to stdout did not end a line.
    """

    def __init__(self) -> None:
        self.unfinished = False

    def __call__(self, stream: StreamName, data: bytes) -> None:
        self.unfinished = not data.endswith(b"\n")
        write(_DESCRIPTORS[stream], data)


def write(fd: int, text: str | bytes) -> None:
    """Write all of `text`.

    Raises:
        OutputClosed: the other end is closed, or there is no room; the latter is said on stderr.
    """
    view = memoryview(text.encode("utf-8", "replace") if isinstance(text, str) else text)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        if fd != 2:
            note(f"the output cannot be written: {error.strerror}; make room, or send it elsewhere")
        raise OutputClosed from error


def note(text: str) -> None:
    """Say something about the session, as opposed to what a command printed."""
    with contextlib.suppress(OutputClosed, OSError):  # who closed stderr does not want to know
        write(2, f"shellkit: note: {' '.join(text.split())}\n")


def notes_of(result: ShellResult) -> Iterable[str]:
    """Return what a person must be told about a result whose output has been seen."""
    yield from result.notes
    if result.exit_code is None:
        yield "the command did not run, or its exit code is unknown"
