"""A conversation in a file of JSON lines, so that it can go on after a crash. The loop appends, `resume` reads.

A line is what became part of the history at once (`{"items": [...]}`), written before anything is done about it: a
command that may have run is always on record. The file holds what the model saw, so it is for the user's eyes only.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from ..errors import ShellkitError

__all__ = ["Transcript", "TranscriptError"]

_VERSION = 1
_FIRST = b'{"shellkit": '  # how every transcript begins, so that a torn one is told from another file


class TranscriptError(ShellkitError):
    """The file is no transcript, is another API's, or cannot be written; the message names the remedy."""


class Transcript:
    """An open transcript; a context manager.

    Args:
        path: the file. It is made (0600) if it does not exist; if it does, the conversation in it goes on. A last line
            that was torn by a crash is dropped.

    Attributes:
        items: what the file held, in order.

    Raises:
        TranscriptError: the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.items: list[dict[str, Any]] = []
        self._api: str | None = None
        try:
            self.path = os.path.abspath(self.path)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
            self._file = open(descriptor, "r+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._unusable(error) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a device may have no end
                raise TranscriptError(f"{self.path} is no regular file; name another file")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._load()
        except BlockingIOError as error:
            self._file.close()
            raise TranscriptError(
                f"{self.path} is in use by another agent; end that one, or name another file"
            ) from error
        except OSError as error:
            self._file.close()
            raise self._unusable(error) from error
        except BaseException:
            self._file.close()
            raise

    def begin(self, api: str) -> None:
        """Say which API's items follow, or check that it is still the same."""
        if self._api is None:
            self._write({"shellkit": _VERSION, "api": api})
            self._api = api
        elif self._api != api:
            raise TranscriptError(
                f"{self.path} holds a conversation by the {self._api!r} API; go on with --api {self._api}, "
                "or begin a new file"
            )

    def append(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Write what became part of the history; when this returns, it survives a crash of this process."""
        self._write({"items": list(items)})

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()

    def __enter__(self) -> Transcript:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _load(self) -> None:
        data = self._file.read() or b""
        self._end = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._end].split(b"\n")[:-1], 1):
            try:
                entry = json.loads(line)
                if number > 1:
                    self.items.extend(map(_item, entry["items"]))
                elif entry["shellkit"] == _VERSION:
                    self._api = entry["api"]
                else:
                    raise TranscriptError(f"{self.path} was written by another version of shellkit; begin a new file")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise self._foreign(number) from error
        if data and not self._end and not _FIRST.startswith(data[: len(_FIRST)]):
            raise self._foreign(1)
        self._cut()

    def _cut(self) -> None:
        """Drop what stands behind the last whole line."""
        self._file.truncate(self._end)
        self._file.seek(self._end)

    def _write(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            # One write without a buffer: when it returns, the kernel has the line, or part of it, as on a full disk.
            if self._file.write(line) != len(line):
                self._cut()
                raise TranscriptError(f"{self.path} took only part of a line; make room on its disk")
        except OSError as error:
            raise self._unusable(error) from error
        except ValueError as error:
            raise TranscriptError(f"{self.path} is closed; open the Transcript again") from error
        self._end += len(line)

    def _foreign(self, line: int) -> TranscriptError:
        return TranscriptError(f"{self.path}, line {line}, is no line of a transcript; name another file")

    def _unusable(self, error: OSError) -> TranscriptError:
        return TranscriptError(
            f"{self.path} cannot be used: {error.strerror or error}; see to its directory, permissions and disk, "
            "or name another file"
        )


def _item(value: Any) -> dict[str, Any]:
    """Return what a line holds, if it can be part of a history: an object with a kind of one API or the other."""
    if isinstance(value, dict) and isinstance(value.get("type", value.get("role")), str):
        return value
    raise ValueError(f"no item: {type(value).__name__}")
