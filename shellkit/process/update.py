"""What a program that callers talk to has done, as values. Built by executors, read by callers and tools.

Nothing here touches the system, and everything in it can be put into JSON.
"""

from __future__ import annotations

from typing import Any

import attrs

from ..output.ansi import clean
from ..output.tokens import TokenCounter, estimate_tokens, truncate_tokens

__all__ = ["ProcessInfo", "ProcessUpdate"]


@attrs.frozen(kw_only=True)
class ProcessUpdate:
    """What a program has printed since the last update, and whether it runs on.

    While it runs, `process_id` is set and `exit_code` is None; once it has ended it is the other way round.

    Attributes:
        command: what was launched.
        process_id: for `write`, `stop` and the rest; None once the program has ended.
        exit_code: 0-255; a signal is 128+n. None while it runs, and if nobody can know.
        output: what it has printed since the last update, stdout and stderr in the order written: decoded (UTF-8,
            undecodable bytes as U+FFFD), otherwise raw, bounded by `max_output_bytes`.
        omitted: bytes left out of `output`.
        runtime: seconds from its start to now, or to its end.
        waits_for_input: whether it reads its input at this moment; None if that cannot be told. Best effort: what
            the kernel tells of its main thread.
        matched: whether what the caller waited for (`until`) has come.
        notes: what a model must be told, each with the remedy.
        output_ref: opaque reference to all its output, for `executor.read_output`.
        screen: what a person would see on its terminal, if `output` draws a screen rather than prints lines (an
            editor, a menu); None otherwise, and once it has ended.
    """

    command: str
    process_id: int | None = None
    exit_code: int | None = None
    output: str = ""
    omitted: int = 0
    runtime: float = 0.0
    waits_for_input: bool | None = None
    matched: bool = False
    notes: tuple[str, ...] = ()
    output_ref: str | None = None
    screen: str | None = None

    @property
    def running(self) -> bool:
        """Whether the program runs on."""
        return self.process_id is not None

    def for_model(self, *, max_tokens: int | None = None, count_tokens: TokenCounter = estimate_tokens) -> str:
        """Return the update as text for a model: cleaned output or the screen, then whether the program runs on.

        Args:
            max_tokens: the most that the output may have; head and tail are kept. None for no limit.
            count_tokens: how to count; `shellkit.output.tokens.tokenizer` gives a model's own.
        """
        output = whole = clean(self.output).removesuffix("\n") if self.screen is None else self.screen
        if max_tokens is not None:
            output = truncate_tokens(whole, max_tokens, count_tokens)
        if self.running:
            state = f"[still running, session_id {self.process_id}, {self.runtime:.2f} s so far"
            state += "; it waits for input]" if self.waits_for_input else "]"
        else:
            code = "exit code unknown" if self.exit_code is None else f"exit code {self.exit_code}"
            state = f"[{code}, ran {self.runtime:.2f} s]"
        lines = [output or "[no new output]", state]
        if self.screen is not None:
            lines.insert(0, "[its screen:]")
        if self.output_ref and (self.omitted or output != whole):
            lines.append(f"[all of its output: read_output, ref {self.output_ref}]")
        lines += [f"[note: {note}]" for note in self.notes]
        return "\n".join(lines).encode("utf-8", "replace").decode("utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**attrs.asdict(self), "notes": list(self.notes)}


@attrs.frozen(kw_only=True)
class ProcessInfo:
    """One program that an executor has launched, and still knows.

    Attributes:
        process_id: for `write`, `stop` and the rest.
        command: what was launched.
        pid: the process id of its shell, or of the program that has taken the shell's place.
        tty: whether it has a terminal.
        running: whether it runs.
        exit_code: how it ended; None while it runs, and if nobody can know.
        runtime: seconds from its start to now, or to its end.
        idle: seconds since it was last launched, written to or looked at.
        waits_for_input: as in `ProcessUpdate`.
        asks_secret: whether it seems to ask for a password: its terminal does not echo, or on pipes its prompt says so.
    """

    process_id: int
    command: str
    pid: int | None = None
    tty: bool = False
    running: bool = True
    exit_code: int | None = None
    runtime: float = 0.0
    idle: float = 0.0
    waits_for_input: bool | None = None
    asks_secret: bool = False

    def for_model(self) -> str:
        """Return one line for a model."""
        command = self.command if len(self.command) <= 200 else f"{self.command[:199]}…"
        if not self.running:
            state = f"ended with exit code {self.exit_code}" if self.exit_code is not None else "ended"
        else:
            state = "waits for input" if self.waits_for_input else "running"
        return f"session_id {self.process_id}: {' '.join(command.split())} [{state}, {self.runtime:.1f} s]"
