"""Lines that a person types at a terminal: editing, history, and a Ctrl-C that is always heard. Called by the REPLs.

Not by questions about approval: `terminal` asks those at the controlling terminal, whatever stdin is.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from .output import note

__all__ = ["LineReader"]

_HISTORY_LINES = 10_000
_INTERRUPT = "\x03"


class LineReader:
    """Reads lines from stdin, which is a terminal, with the history of earlier conversations; a context manager.

    CPython hears a signal at a prompt only while `select` waits. One that comes between the key that woke it and the
    reading of that key, which the terminal has thrown away by then, leaves readline waiting, deaf to every further
    Ctrl-C (Modules/readline.c, readline_until_enter_or_signal). So at the prompt Ctrl-C is no signal but a key.

    Args:
        name: of the history's file, below `$XDG_STATE_HOME/shellkit`.
    """

    def __init__(self, name: str = "history") -> None:
        state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
        self._path = os.path.join(state, "shellkit", name)
        self._readline: Any = None

    def __enter__(self) -> LineReader:
        try:
            import readline
        except ImportError:  # a Python built without it: `input` reads plain lines
            return self
        self._readline = readline
        readline.set_history_length(_HISTORY_LINES)
        readline.set_auto_history(True)
        for keymap, insert in (("vi-command", "i"), ("vi-insert", ""), ("emacs", "")):
            readline.parse_and_bind(f"set keymap {keymap}")
            readline.parse_and_bind(rf'"\C-c": "{insert}\C-q\C-c\C-m"')
        with contextlib.suppress(OSError):  # the first time
            readline.read_history_file(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._readline is None:
            return
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._readline.write_history_file(self._path)
        except OSError as error:
            note(f"history not kept in {self._path}: {error.strerror}")

    def read(self, prompt: str) -> str | None:
        """Return the next line, or None at its end.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; what had been typed is gone.
        """
        with self._interrupt_as_key():
            try:
                line = input(prompt)
            except EOFError:
                return None
        if _INTERRUPT not in line:
            return line
        self._forget_last()
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def _interrupt_as_key(self) -> Iterator[None]:
        if self._readline is None:
            yield
            return
        import termios

        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        changed = [*before[:6], list(before[6])]
        changed[6][termios.VINTR] = os.fpathconf(terminal, "PC_VDISABLE")
        # TCSADRAIN: what has been typed ahead is kept.
        termios.tcsetattr(terminal, termios.TCSADRAIN, changed)
        try:
            yield
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)

    def _forget_last(self) -> None:
        last = self._readline.get_current_history_length()
        if last and _INTERRUPT in (self._readline.get_history_item(last) or ""):
            self._readline.remove_history_item(last - 1)
