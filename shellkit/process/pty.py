"""`Terminal`: a pseudo-terminal whose master the host holds, for a program that wants to talk to a person.

Made by `sessions/interactive`, which reads and writes `master`. Not `ptyprocess.PtyProcess`: that forks the
interpreter, which is unsafe in a host with threads (Python 3.12 warns of it), waits in sleeps, and cannot reset
ignored signals. What it would add, `termios` has had since Python 3.11.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import termios

__all__ = ["Terminal"]

#: A kernel constant that `termios` does not name: erase whole UTF-8 characters in canonical mode (termios(3)).
_IUTF8 = 0x4000
#: Send a signal to the foreground process group, whatever it has done to its terminal (ioctl_tty(2)).
_TIOCSIG = 0x40045436

_INPUT, _LOCAL = 0, 3


class Terminal:
    """A pseudo-terminal.

    Args:
        rows: lines.
        columns: characters in a line.

    Attributes:
        master: the host's end; it does not block. Owned by this object.
        path: by which a program opens its end.

    Raises:
        OSError: there is no pseudo-terminal to be had.
    """

    def __init__(self, rows: int, columns: int) -> None:
        # The program's end stays open here: a program that closes its own and opens /dev/tty later must not look
        # as if it had ended (reading a master without any other end fails with EIO).
        self.master, self._slave = os.openpty()
        try:
            self.path = os.ttyname(self._slave)
            os.set_blocking(self.master, False)
            self.resize(rows, columns)
            modes = termios.tcgetattr(self.master)
            modes[_INPUT] |= _IUTF8
            termios.tcsetattr(self.master, termios.TCSANOW, modes)
        except BaseException:
            self.close()
            raise

    def resize(self, rows: int, columns: int) -> None:
        """Set the size; the kernel tells the foreground program (SIGWINCH)."""
        termios.tcsetwinsize(self.master, (rows, columns))

    @property
    def echo(self) -> bool:
        """Whether the terminal itself shows what is typed."""
        return bool(self._local_modes() & termios.ECHO)

    @property
    def canonical(self) -> bool:
        """Whether the program reads whole lines."""
        return bool(self._local_modes() & termios.ICANON)

    def interrupt(self) -> None:
        """Send SIGINT to the foreground process group, as Ctrl-C does in most programs; none is no error."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.master, _TIOCSIG, signal.SIGINT)

    def close(self) -> None:
        """Give both ends back; what still runs on the terminal gets SIGHUP. Idempotent."""
        for fd in (self.master, self._slave):
            if fd >= 0:
                os.close(fd)
        self.master = self._slave = -1

    def _local_modes(self) -> int:
        return int(termios.tcgetattr(self.master)[_LOCAL])
