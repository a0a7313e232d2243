"""A terminal that a person answers at. Used by the approver; knows nothing of commands.

Lines are read without holding up the event loop, and Ctrl-C ends the question, not the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import termios
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Terminal", "Unanswered"]

_LINE = 4096  # bytes: the most that a terminal in line mode gives at once (termios(3), N_TTY_BUF_SIZE)


class Unanswered(Exception):
    """The person did not answer; the text says how."""


class Terminal:
    """An open terminal; a context manager.

    Args:
        fd: its descriptor, which it owns.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._screen = open(fd, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115  (owned)

    @classmethod
    def open(cls, *, controlling: bool) -> Terminal:
        """Open stdin's terminal, or the controlling one.

        Raises:
            OSError: there is none.
        """
        path = "/dev/tty"
        if not controlling:
            if not os.isatty(0):
                raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
            # The terminal's own name: stdin may be open for reading only. It has none in some containers.
            with contextlib.suppress(OSError):
                path = os.ttyname(0)
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return cls(fd)
        except BaseException:
            os.close(fd)
            raise

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # what could not be written to a terminal that is gone
            self._screen.close()
        os.close(self._fd)

    # -- writing ---------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Write text."""
        self._screen.write(text)
        self._screen.flush()

    def console(self) -> Console:
        """Return a console of rich that writes here."""
        from rich.console import Console

        return Console(file=self._screen, markup=False, emoji=False, highlight=False)

    # -- reading ---------------------------------------------------------------------------------------

    def forget_typed(self) -> None:
        """Drop what has been typed and not been read."""
        try:
            termios.tcflush(self._fd, termios.TCIFLUSH)
        except termios.error as error:  # not an OSError, for historical reasons
            raise OSError(*error.args) from error

    async def line(self, prompt: str, *, echo: bool = True) -> str:
        """Return the next line, without its end.

        Args:
            prompt: shown before it.
            echo: whether the line shows while it is typed.

        Raises:
            Unanswered: end-of-file, Ctrl-C, bytes that are no text, or the terminal is gone.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()
        typed = bytearray()

        def take() -> None:
            try:
                part = os.read(self._fd, _LINE)
            except OSError:  # the other end has hung up
                part = b""
            typed.extend(part)
            if not part:
                _fail(answer, "there was no answer (end of input)")
            elif part.endswith((b"\n", b"\r")) and not answer.done():
                try:
                    answer.set_result(typed[:-1].decode("utf-8"))
                except UnicodeDecodeError:
                    _fail(answer, "the answer was not UTF-8")

        def interrupt(*_: object) -> None:
            loop.call_soon_threadsafe(_fail, answer, "interrupted at the question")

        with _on_interrupt(interrupt), contextlib.nullcontext() if echo else self._unseen():
            loop.add_reader(self._fd, take)
            try:
                self.say(prompt)
                return await answer
            except Unanswered:
                self.say("\n")
                raise
            finally:
                loop.remove_reader(self._fd)

    @contextlib.contextmanager
    def _unseen(self) -> Iterator[None]:
        before = termios.tcgetattr(self._fd)
        # The end of the line does show (ECHONL, termios(3)).
        unseen = [*before[:3], before[3] & ~termios.ECHO | termios.ECHONL, *before[4:]]
        termios.tcsetattr(self._fd, termios.TCSADRAIN, unseen)
        try:
            yield
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    @property
    def edits(self) -> bool:
        """Whether `edit` can work: readline knows only the terminal that is stdin and stdout."""
        return _readline() is not None and os.isatty(1) and _same(0, self._fd)

    def edit(self, text: str) -> str:
        """Let the person edit `text` and return what they made of it; blocks until then.

        Raises:
            Unanswered: end-of-file or Ctrl-C.
        """
        readline = _readline()
        readline.set_startup_hook(lambda: readline.insert_text(text))
        try:
            with _on_interrupt(signal.default_int_handler):
                return input("edit: ")
        except (EOFError, KeyboardInterrupt):
            self.say("\n")
            raise Unanswered("editing was broken off") from None
        finally:
            readline.set_startup_hook(None)


def _fail(answer: asyncio.Future[str], why: str) -> None:
    if not answer.done():
        answer.set_exception(Unanswered(why))


def _readline() -> Any:
    try:
        import readline
    except ImportError:  # a Python built without it
        return None
    return readline


def _same(one: int, other: int) -> bool:
    try:
        return os.isatty(one) and os.fstat(one).st_rdev == os.fstat(other).st_rdev
    except OSError:
        return False


@contextlib.contextmanager
def _on_interrupt(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Let Ctrl-C call `handler`, whatever the program does with it otherwise (asyncio cancels a task)."""
    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers (signal(7))
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
