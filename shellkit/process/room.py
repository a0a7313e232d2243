"""One wording for descriptors, memory and processes that have run out. Called wherever something is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import SpawnError

__all__ = ["room_for"]


@contextmanager
def room_for(what: str) -> Iterator[None]:
    """Turn what the system says when it has no room into an error that names the remedy.

    Args:
        what: what cannot be had then, as a sentence.

    Raises:
        SpawnError: there is no room.
    """
    try:
        yield
    except OSError as error:
        raise SpawnError(
            f"{what}: {error.strerror}; close files and executors, end programs, or raise the limit (ulimit)"
        ) from error
