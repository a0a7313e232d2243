"""Show a person at the terminal what an agent does, on stderr. Built on the events alone; called by `agent`.

What comes from the model or from a command is shown without terminal control: it must not look like a question of
ours, or hide one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..agent import (
    ApprovalGiven,
    CallFinished,
    CallRequested,
    Event,
    Message,
    OutputChunk,
    Stopped,
    TextDelta,
    Usage,
)
from ..output.ansi import clean
from ..policy import displayed
from ..tool import ToolOutput

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["AgentView"]


class AgentView:
    """Shows events.

    Args:
        console: where; None shows nothing.

    Attributes:
        shown: the text of the last message, if all of it can be read on the terminal.
    """

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self._usage = Usage()
        self._open_line = False
        self.shown: str | None = None

    def show(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, Usage):
            self._usage = event
        if self._console is None:
            return
        match event:
            case TextDelta(text=text):
                self._stream(text)
            case Message(text=text):
                self._end_line()
                self.shown = text
            case Stopped():
                self._end_line()
            case CallRequested():
                for line in _asked(event):
                    self._line(line, "cyan")
            case ApprovalGiven(decision=decision) if not decision.approved:
                self._line(f"[refused] {displayed(decision.reason)}" if decision.reason else "[refused]", "yellow")
            case OutputChunk(text=text, lost=lost):
                if lost:
                    self._line(f"[{lost} characters are not shown]", "dim")
                self._stream(text, "dim")
            case CallFinished(output=output):
                self._finished(output)

    def usage(self) -> None:
        """Show the tokens of the conversation so far."""
        used = self._usage
        if self._console is not None and used.total:
            self._line(f"[tokens: {used.total_input_tokens:,} in, {used.total_output_tokens:,} out]", "dim")

    def _finished(self, output: ToolOutput) -> None:
        if (result := output.result) is not None:  # its output has been seen
            ended = "time-out" if result.timed_out else f"exit code {result.exit_code}"
            if result.process_id is not None:
                ended += f", process {result.process_id} runs on"
            self._line(f"[{ended}, {result.duration:.1f} s]", "dim")
        elif (update := output.update) is not None:
            self._stream(update.output, "dim")
            state = f"process {update.process_id} runs on" if update.running else f"exit code {update.exit_code}"
            self._line(f"[{state}, {update.runtime:.1f} s]", "dim")
        elif output.is_error:
            self._line(f"[{displayed(clean(output.text))}]", "yellow")
        else:
            self._line(displayed(clean(output.text)), "dim")

    def _stream(self, text: str, style: str | None = None) -> None:
        assert self._console is not None
        shown = clean(text).replace("\x00", "")
        self._console.print(shown, style=style, end="")
        self._open_line = not shown.endswith("\n") if shown else self._open_line

    def _line(self, text: str, style: str) -> None:
        assert self._console is not None
        self._end_line()
        self._console.print(text, style=style)

    def _end_line(self) -> None:
        if self._open_line and self._console is not None:
            self._console.print()
        self._open_line = False


def _asked(event: CallRequested) -> Iterator[str]:
    """Yield a line for each thing that a call asks for; of a malformed one the name."""
    if not event.reader and event.commands:
        yield from (f"$ {displayed(command)}" for command in event.commands)
    elif event.commands:
        yield from (f"{event.reader} <- {displayed(typed)}" for typed in event.commands)
    else:
        yield f"{displayed(event.name, 80)} {event.reader}".rstrip()
