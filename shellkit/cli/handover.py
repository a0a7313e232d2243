"""`shellkit repl --tty`: hands a person's terminal to an interactive shell, and gives it back as it was.

Keys go to the shell as they come, what it prints goes to the terminal as it comes; nothing is judged or held back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import termios
import tty
from collections.abc import Iterator
from functools import partial
from typing import Any

from ..errors import ProcessEnded
from ..policy.environ import HARMLESS, filter_environment
from ..resolver import resolve
from ..sessions.interactive import InteractiveSession, Sink

__all__ = ["hand_over", "interactive_shell"]

_KEYS = 4096
_LARGEST = 1000

#: Leaves colours, a hidden cursor, a pasting mode and a full screen behind (xterm's ctlseqs).
_RESET = b"\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1049l"


def interactive_shell(shell: str | None, workdir: str | None, record: str | None) -> InteractiveSession:
    """Return an interactive shell for the terminal that is stdin and stdout, not started yet.

    Args:
        shell: name, path or command line; None for the default.
        workdir: where it starts; None for the current directory.
        record: a new file to record the terminal to, or None.

    Raises:
        SpawnError, ValueError: there is no such shell, or the recording cannot be made.
    """
    rows, columns = _size()
    return InteractiveSession(
        [*resolve(shell, environ=os.environ).persistent_argv, "-i"],
        workdir=workdir,
        env=_environment(),
        rows=rows,
        columns=columns,
        term=os.environ.get("TERM", "linux"),
        emulated=False,
        sinks=[_Screen()],
        record=record,
    )


async def hand_over(shell: InteractiveSession) -> int | None:
    """Run a shell at the terminal until it ends, the terminal hangs up, or a signal ends us.

    Returns:
        Its exit code; 128+n if signal n ended us. None if nobody can know.

    Raises:
        SpawnError, InvalidWorkdir: it cannot be started.
    """
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None
    ended_by: list[int] = []

    def end(number: int) -> None:
        ended_by.append(number)
        this.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, partial(end, number))
    tasks: set[asyncio.Future[Any]] = set()
    with _raw(0):
        try:
            async with shell:
                loop.add_signal_handler(signal.SIGWINCH, lambda: shell.resize(*_size()))
                shell.resize(*_size())  # it may have changed before anybody listened
                tasks |= {asyncio.ensure_future(_type(shell)), asyncio.ensure_future(shell.wait())}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            _Screen().output(memoryview(_RESET))
            if not ended_by:
                raise
        finally:
            for task in tasks:
                task.cancel()
    return 128 + ended_by[0] if ended_by else shell.exit_code


class _Screen(Sink):
    """Passes on what the shell prints; a slow terminal slows the shell down."""

    def output(self, data: memoryview) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone, which ends the keys as well
            while data:
                data = data[os.write(1, data) :]


async def _type(shell: InteractiveSession) -> None:
    """Type what the person does, until the terminal is gone."""
    while data := await _keys():
        with contextlib.suppress(ProcessEnded):
            await shell.write(data)


async def _keys() -> bytes:
    loop = asyncio.get_running_loop()
    pressed = asyncio.Event()
    loop.add_reader(0, pressed.set)
    try:
        await pressed.wait()
    finally:
        loop.remove_reader(0)
    try:
        return os.read(0, _KEYS)
    except OSError:  # the other end has hung up
        return b""


@contextlib.contextmanager
def _raw(fd: int) -> Iterator[None]:
    """Let every key through, and restore the terminal afterwards."""
    before = termios.tcgetattr(fd)
    try:
        tty.setraw(fd, termios.TCSADRAIN)
        yield
    finally:
        with contextlib.suppress(termios.error):  # it is gone
            termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _size() -> tuple[int, int]:
    rows, columns = termios.tcgetwinsize(0)
    # A serial line and some pseudo-terminals do not know their size.
    return min(rows, _LARGEST) or 24, min(columns, _LARGEST) or 80


def _environment() -> dict[bytes, bytes]:
    # The answers to programs that would wait for a person are not needed: here is one, with an editor and a pager.
    own = {name: os.environ.get(name) for name in HARMLESS}
    variables = filter_environment(os.environ, extra=own).variables
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
