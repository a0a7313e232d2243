"""Directories of this user's own, for what running agents put there: sockets, and output that is too large. Used by
`presence`, `server` and the command line. Nobody else can get in, and nobody else can have made them.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable

from ..errors import ShellkitError

__all__ = ["private_directory", "runtime_directory", "short_enough"]

#: Bytes of a socket's path: `sun_path` less its end (unix(7)). And of what `server` puts behind a place at the most.
_LONGEST, _BEHIND = 107, len("/shellkit-agents-12345678/socket.new")


def runtime_directory() -> str:
    """Return where the sockets of this user's agents are: below $XDG_RUNTIME_DIR, else below $TMPDIR, else below /tmp.

    Raises:
        ShellkitError: see `private_directory`.
    """
    bases = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()]
    # One that is relative is none (XDG Base Directory Specification): every process would find another.
    usable = [base for base in bases if os.path.isabs(base) and os.path.isdir(base)]
    return private_directory(short_enough(usable, _own()))


def short_enough(places: Iterable[str], within: str = "") -> str:
    """Return the first place where the path of a socket is short enough, else /tmp.

    Args:
        places: directories.
        within: a directory in the place that holds the socket's.
    """
    for place in places:
        if len(os.fsencode(os.path.join(place, within))) + _BEHIND <= _LONGEST:
            return place
    return "/tmp"  # noqa: S108  (mkdtemp and `private_directory` make it safe)


def private_directory(base: str) -> str:
    """Return a directory in `base`, made if need be, that only this user can enter.

    Raises:
        ShellkitError: it cannot be made, or another user has been faster.
    """
    path = os.path.join(os.path.abspath(base), _own())
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


def _own() -> str:
    return f"shellkit-{os.geteuid()}"
