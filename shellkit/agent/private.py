"""Directories of this user's own, for what running agents put there: sockets, and output that is too large. Used by
`presence` and the command line. Nobody else can get in, and nobody else can have made them.
"""

from __future__ import annotations

import os
import stat
import tempfile

from ..errors import ShellkitError

__all__ = ["private_directory", "runtime_directory"]


def runtime_directory() -> str:
    """Return where the sockets of this user's agents are: below $XDG_RUNTIME_DIR, else below $TMPDIR.

    Raises:
        ShellkitError: see `private_directory`.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    return private_directory(base) if base and os.path.isdir(base) else private_directory(tempfile.gettempdir())


def private_directory(base: str) -> str:
    """Return a directory in `base`, made if need be, that only this user can enter.

    Raises:
        ShellkitError: it cannot be made, or another user has been faster.
    """
    path = os.path.join(os.path.abspath(base), f"shellkit-{os.geteuid()}")
    try:
        if not os.path.lexists(path):
            os.makedirs(path, 0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise ShellkitError(f"cannot use {path} ({error.strerror}); set TMPDIR to another directory") from error
    # In a directory for all, such as /tmp, the name can be anybody's, and a link can lead anywhere.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ShellkitError(f"{path} is open to others, or is theirs; remove it, or set TMPDIR to another directory")
    return path
