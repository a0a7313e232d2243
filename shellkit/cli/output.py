"""What a command prints goes to our own stdout and stderr while it runs; what shellkit has to say, to stderr.

Used by every sub-command. It writes to the descriptors themselves: Python's streams would translate line ends,
refuse what the locale cannot encode, and complain about a closed pipe once more when the interpreter ends. So what
click and rich print to Python's stdout comes here, too (`Stdout`), and fails in the same way.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from ..result import ShellResult
from ..sessions.base import StreamName

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["LiveOutput", "OutputClosed", "Stdout", "note", "notes_of", "write"]

_DESCRIPTORS: dict[StreamName, int] = {"stdout": 1, "stderr": 2}


#: What a shell reports for a program that wrote to a closed pipe: 128 + SIGPIPE. And as for every error of our own.
_NO_READER, _NO_ROOM = 141, 2


class OutputClosed(BaseException):
    """Our output goes nowhere any more. Not an `Exception`: nothing on the way may take it for a failure.

    Args:
        exit_code: what `shellkit` ends with.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Stdout(io.FileIO):
    """Descriptor 1 for Python's stdout."""

    @classmethod
    def open(cls) -> TextIO:
        """Return a stdout that keeps nothing back, so that nothing fails when the interpreter ends."""
        return io.TextIOWrapper(cls(1, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)

    def write(self, data: ReadableBuffer) -> int:
        """Write all of it; raises as `write` does."""
        write(1, bytes(data))
        return len(memoryview(data))


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
        raise OutputClosed(_NO_READER) from None
    except OSError as error:
        if fd != 2:
            note(f"the output cannot be written: {error.strerror}; make room, or send it elsewhere")
        raise OutputClosed(_NO_ROOM) from error


def note(text: str) -> None:
    """Say something about the session, as opposed to what a command printed."""
    with contextlib.suppress(OutputClosed, OSError):  # who closed stderr does not want to know
        write(2, f"shellkit: note: {' '.join(text.split())}\n")


def notes_of(result: ShellResult) -> Iterable[str]:
    """Return what a person must be told about a result whose output has been seen."""
    yield from result.notes
    if result.exit_code is None:
        yield "the command did not run, or its exit code is unknown"
