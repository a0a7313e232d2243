"""What is started, where and with which environment, when a program is named as a person would name it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from ...errors import InvalidWorkdir, SpawnError
from ...policy.environ import filter_environment

__all__ = ["inherited_environment", "resolve_argv"]


def inherited_environment() -> dict[bytes, bytes]:
    """Return what of the host's environment a program gets, secrets left out (contract H8)."""
    variables = filter_environment(os.environ).variables
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def resolve_argv(argv: Sequence[str], workdir: bytes | None, env: Mapping[bytes, bytes]) -> list[str]:
    """Return the argv that starts the program in `workdir`.

    Raises:
        SpawnError: no such program.
        InvalidWorkdir: no such directory.
    """
    if workdir is not None and not (os.path.isdir(workdir) and os.access(workdir, os.X_OK)):
        raise InvalidWorkdir(f"cannot enter the working directory {os.fsdecode(workdir)}; name another workdir")
    name = argv[0] if workdir is None or "/" not in argv[0] else os.path.join(os.fsdecode(workdir), argv[0])
    found = shutil.which(name, path=os.fsdecode(env.get(b"PATH", os.defpath.encode())))
    if found is None:
        raise SpawnError(f"no program {argv[0]!r} on the PATH it would run with; install it, or name its path")
    program = [os.path.abspath(found), *argv[1:]]
    # posix_spawn(3) cannot change the directory before POSIX.1-2024, and Python knows no more.
    return program if workdir is None else ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', os.fsdecode(workdir), *program]
