"""Start a program in a session of its own, with nothing of the host but what it is given.

posix_spawn(3) and not `subprocess`: it can set signals back to their defaults, the ignored ones that a host
under nohup or CI passes on included (`restore_signals` does not), it does not block the event loop for a
child watcher, and no cancellation can come in between.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence

from ..errors import SpawnError

__all__ = ["spawn", "spawn_on_terminal"]

#: Everything that can have a disposition; SIGKILL and SIGSTOP cannot, 32 and 33 belong to libc.
_RESETTABLE = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33)]


def spawn(argv: Sequence[str], env: Mapping[bytes, bytes], stdin: int, stdout: int, stderr: int) -> int:
    """Start `argv` and return its process id; the caller must wait for it.

    Args:
        argv: program (a path) and arguments.
        env: the whole environment.
        stdin: descriptor that becomes 0; likewise `stdout` and `stderr`. No other descriptor is passed on.

    Raises:
        SpawnError: the program cannot be executed, or the system has no room for a process.
    """
    standard = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate((stdin, stdout, stderr))]
    return _spawn(argv, env, standard)


def spawn_on_terminal(argv: Sequence[str], env: Mapping[bytes, bytes], terminal: str) -> int:
    """Start `argv` with a terminal as its standard streams and as its controlling terminal; as `spawn` otherwise.

    Args:
        argv: program (a path) and arguments.
        env: the whole environment.
        terminal: path of the terminal; it must belong to no session yet.

    Raises:
        SpawnError: as in `spawn`.
    """
    # The leader of a new session that opens a terminal without O_NOCTTY gets it as its controlling terminal
    # (tty_ioctl(2)); posix_spawn makes the session before it does the file actions.
    opened: list[tuple[int | str, ...]] = [
        (os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    ]
    return _spawn(argv, env, opened)


def _spawn(argv: Sequence[str], env: Mapping[bytes, bytes], standard: Sequence[tuple[int | str, ...]]) -> int:
    actions = [*standard, *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable_descriptors())]
    try:
        return os.posix_spawn(
            argv[0], list(argv), env, file_actions=actions, setsid=True, setsigmask=[], setsigdef=_RESETTABLE
        )
    except OSError as error:
        raise SpawnError(
            f"cannot start {argv[0]}: {error.strerror}; name another program (a shell with shell=...), "
            "or free processes and memory"
        ) from error


def _inheritable_descriptors() -> list[int]:
    # Python makes its own descriptors close-on-exec (PEP 446); C libraries and a host that passes
    # descriptors to other children do not. glibc ignores a close of one that is gone by then.
    found = []
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        try:
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
        except OSError:  # the descriptor of the listing itself
            continue
    return found
