"""`Entry`: one program in the table of an executor: its name, how it is typed to, and what a call waits for.

Made and kept by `Programs`. It is told what to do with its program, and never decides whether that may live.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Literal

from ..errors import ProcessEnded
from ..output.search import LinePattern
from ..process.update import ProcessInfo
from ..sessions.adopted import AdoptedJob
from ..sessions.interactive import InteractiveSession
from ..sessions.spill import SpillFile
from .listening import LineWatch, has_line

__all__ = ["Conversation", "Entry", "Until"]

#: What to wait for: the end of the program, a line that matches, or (None) that it waits for input.
Until = Literal["exit"] | LinePattern | None

Conversation = InteractiveSession | AdoptedJob

_CTRL_C, _CTRL_D = "\x03", "\x04"

#: What ends a line for a terminal that passes whole lines on, and bytes of the longest (termios(3), "Canonical mode").
_LINE_ENDS = re.compile(r"[\r\n\x04]")
_LONGEST_LINE = 4095

#: Seconds without output after which a program that waits for input has said what it had to say.
_QUIET = 0.01
#: Seconds that a program has to react to what was typed before "it waits for input" is believed without output.
_REACTION = 0.1
#: Seconds between two looks at whether a program waits for input: the first, the factor, the longest.
_FIRST_LOOK, _LONGER, _LAST_LOOK = 0.005, 1.5, 0.25


class Entry:
    """One program, or a command that outlived its time-out.

    Args:
        process_id: its number.
        command: what was launched.
        session: the program.
        watch: hears all that it prints.
        spill: where its output is written to, if anywhere.

    Attributes:
        used: when a call was last about it (`time.monotonic`).
        waiting: calls that wait for it now.
        notes: what its next update must tell.
        expired: why it was ended, if its time was up or the executor was closed.
    """

    def __init__(
        self, process_id: int, command: str, session: Conversation, watch: LineWatch, spill: SpillFile | None
    ) -> None:
        self.id = process_id
        self.command = command
        self.session = session
        self.watch = watch
        self.spill = spill
        self.used = time.monotonic()
        self.waiting = 0
        self.notes: list[str] = []
        self.expired = ""

    @property
    def name(self) -> str:
        """What messages call it."""
        command = " ".join(self.command.split())
        return f"process {self.id} ({command if len(command) <= 60 else command[:59] + '…'})"

    @property
    def ref(self) -> str | None:
        """The reference to all its output."""
        if isinstance(self.session, AdoptedJob):
            return self.session.ref
        return self.spill.ref if self.spill is not None else None

    def give_back(self) -> None:
        """Kill what is left of it and give its descriptors back; exit code and unread output stay. Idempotent."""
        self.session.abandon()
        if self.spill is not None:
            self.spill.close()

    def info(self) -> ProcessInfo:
        """Describe it."""
        session = self.session
        running = session.running
        return ProcessInfo(
            process_id=self.id,
            command=self.command,
            pid=session.pid,
            tty=session.tty,
            running=running,
            exit_code=session.exit_code,
            runtime=session.runtime,
            idle=0.0 if self.waiting else time.monotonic() - self.used,
            waits_for_input=session.waits_for_input if running else False,
            asks_secret=running and session.asks_secret,
        )

    # -- for one call ------------------------------------------------------------------------------------

    async def type(self, chars: str, seconds: float) -> None:
        """Type, and wait no longer than that for the program to take it.

        Raises:
            StdinClosed: its input was closed.
        """
        session = self.session
        if not chars.strip(_CTRL_C) and (not session.tty or session.unsent):
            session.interrupt()  # on pipes, and behind what a program does not read, the key alone would do nothing
            return
        ends_input = not session.tty and chars.endswith(_CTRL_D)
        try:
            if text := chars.removesuffix(_CTRL_D) if ends_input else chars:
                if len(text) > _LONGEST_LINE // 4 and session.reads_lines:
                    self._tell_dropped(text)
                async with asyncio.timeout(seconds):
                    await session.write(text)
        except TimeoutError:
            self.notes.append(
                f"the program has not taken {session.unsent} bytes of what was typed yet; they wait for it to read "
                "them, and Ctrl-C drops them"
            )
        except ProcessEnded:
            self.notes.append("the program had ended, so nothing was typed; launch it again to type to it")
        if ends_input:
            session.close_stdin()

    def _tell_dropped(self, text: str) -> None:
        longest = max(len(line.encode("utf-8", "surrogateescape")) for line in _LINE_ENDS.split(text))
        if longest > _LONGEST_LINE:
            self.notes.append(
                f"a line of {longest} bytes was typed: the terminal passes on the first {_LONGEST_LINE} of one and "
                "drops the rest; write the text to a file, type shorter lines, or launch the program without a terminal"
            )

    async def wait(self, until: Until, deadline: float) -> bool:
        """Wait for the end of a program, for what is waited for, or for the deadline; return whether that has come."""
        session = self.session
        if until == "exit":
            await session.wait(max(0.0, deadline - time.monotonic()))
            return not session.running
        if until is not None:
            return await self._wait_for_line(until, deadline)
        begun = time.monotonic()
        pause = _FIRST_LOOK
        while session.running and (left := deadline - time.monotonic()) > 0:
            await session.wait(min(pause, left))
            pause = min(pause * _LONGER, _LAST_LOOK)
            reacted = session.output_at > begun or time.monotonic() - begun > _REACTION
            if reacted and time.monotonic() - session.output_at > _QUIET and session.waits_for_input:
                return False
        return False

    def missed(self, until: Until, seconds: float) -> str:
        """Return what to tell when `wait` was in vain."""
        if not self.session.running:
            return "it ended before the pattern came"
        what = "it has not ended" if until == "exit" else "no line has matched the pattern"
        return f"{what} within {seconds:g} s; it runs on"

    async def _wait_for_line(self, pattern: LinePattern, deadline: float) -> bool:
        session, hits = self.session, list[bool]()
        self.watch.add(pattern, lambda: hits.append(True))
        try:
            if has_line(pattern, session.peek()):
                return True
            await session.wait_until(lambda: bool(hits) or not session.running, max(0.0, deadline - time.monotonic()))
            return bool(hits)
        finally:
            self.watch.remove(pattern)
