"""How a child of this process has ended. Called by whatever starts one and holds its pidfd; never waits for one.

The exit code of a child is given out once (wait(2)). Where something else in this process was faster, because it waits
for any child or ignores SIGCHLD, Linux 6.15 and later still tell it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct

import attrs

from ..errors import SpawnError

__all__ = ["Ending", "look", "watch"]

# `struct pidfd_info` of its first version, and the request for it (include/uapi/linux/pidfd.h).
_INFO = struct.Struct("=QQ11Ii")
_GET_INFO = 0xC0000000 | _INFO.size << 16 | 0xFF << 8 | 11
_INFO_EXIT = 1 << 3


@attrs.frozen
class Ending:
    """How a process ended.

    Attributes:
        exit_code: 0-255, a signal as 128+n; None if nobody can know.
        by_signal: whether a signal ended it.
    """

    exit_code: int | None
    by_signal: bool = False


def watch(pid: int) -> int:
    """Return a pidfd of a child that has just been started.

    Raises:
        SpawnError: it has ended, and something else in this process was told how.
        OSError: there is none to be had; the child is gone, as nobody could see its end.
    """
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise SpawnError(
            "the program ended before it could be watched; do not ignore SIGCHLD in this process"
        ) from None
    except OSError:
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # the host waits for any child, and was faster
            os.waitpid(pid, 0)
        raise


def look(pidfd: int) -> Ending | None:
    """Return how the child ended; None while it lives. The first answer takes the child out of the process table."""
    try:
        info = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return _remembered(pidfd)
    if info is None:
        return None
    by_signal = info.si_code != os.CLD_EXITED
    return Ending(info.si_status + 128 * by_signal, by_signal)


def _remembered(pidfd: int) -> Ending:
    request = bytearray(_INFO.pack(_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(pidfd, _GET_INFO, request)
    except OSError:  # an older kernel: ENOTTY, EINVAL or, once the process is gone, ESRCH
        return Ending(None)
    told, *_, status = _INFO.unpack(request)
    if not told & _INFO_EXIT:
        return Ending(None)
    code = os.waitstatus_to_exitcode(status)
    return Ending(code if code >= 0 else 128 - code, code < 0)
