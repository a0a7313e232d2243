"""From a turn to a `ShellResult`: exit code, notes and text. No waiting, no processes."""

from __future__ import annotations

import os

import attrs

from ..result import ShellResult, ShellState
from .base import RunCall
from .jobs import BackgroundJob
from .turn import Turn

__all__ = ["Outcome", "build_result"]

_NOTHING = ("", "", 0, 0)

_UNKNOWN = (
    "The command ended, but not even the kernel tells how: the program that shellkit runs in ignores SIGCHLD, or waits "
    "for processes that are not its own. Judge by what was printed, or print $? as the command's last line."
)
#: The exit code of a command that was ended at its time-out (coreutils' `timeout` uses the same).
TIMED_OUT = 124


@attrs.define
class Outcome:
    """What is known of one command so far; sessions fill it in, `build_result` freezes it."""

    call: RunCall
    exit_code: int | None = None
    shell_state: ShellState = "alive"
    workdir: bytes | None = None
    notes: list[str] = attrs.field(factory=list)
    background: tuple[BackgroundJob, ...] = ()
    stdout_ref: str | None = None
    stderr_ref: str | None = None
    _texts: tuple[str, str, int, int] | None = None

    def take(self, turn: Turn) -> None:
        """Take over how the turn ended."""
        if turn.handed_over:
            self.exit_code = None  # `hand_over` tells whether it could run on
        elif turn.expired:
            self.exit_code = TIMED_OUT
            self.notes.append(_timeout_note(turn, self.call))
        elif turn.lost:
            self.exit_code = None
        elif turn.ended:
            self.exit_code = turn.exit_code
            if self.exit_code is None:
                self.notes.append(_UNKNOWN)
        elif turn.finished is not None:
            self.exit_code = turn.finished.exit_code
        if turn.abandoned:
            self.notes.append(
                "Something that the command started could not be killed (it waits for a device, or belongs to "
                "another user) and may still run."
            )

    def snapshot(self, turn: Turn) -> None:
        """Keep the text as it is now: the buffers go on to a background job."""
        out, err = turn.stdout.buffer, turn.stderr.buffer
        if out.total == err.total == 0:
            self._texts = _NOTHING
            return
        self._texts = (out.text(), err.text(), out.omitted, err.omitted)
        self.stdout_ref, self.stderr_ref = turn.stdout.ref, turn.stderr.ref
        spills = [spill for spill in (turn.stdout.spill, turn.stderr.spill) if spill is not None]
        self.notes += dict.fromkeys(spill.failure for spill in spills if spill.failure is not None)


def build_result(outcome: Outcome, turn: Turn) -> ShellResult:
    """Return the finished result and make the buffers ready for the next command."""
    if outcome._texts is None:
        outcome.snapshot(turn)
        if outcome._texts is not _NOTHING:
            turn.stdout.clear()
            turn.stderr.clear()
    assert outcome._texts is not None
    stdout, stderr, stdout_omitted, stderr_omitted = outcome._texts
    return ShellResult(
        command=outcome.call.command,
        stdout=stdout,
        stderr=stderr,
        exit_code=outcome.exit_code,
        timed_out=turn.expired,
        duration=turn.duration,
        workdir=None if outcome.workdir is None else os.fsdecode(outcome.workdir),
        truncated=bool(stdout_omitted or stderr_omitted),
        stdout_omitted=stdout_omitted,
        stderr_omitted=stderr_omitted,
        shell_state=outcome.shell_state,
        notes=tuple(outcome.notes),
        stdout_ref=outcome.stdout_ref,
        stderr_ref=outcome.stderr_ref,
        background=outcome.background,
    )


def _timeout_note(turn: Turn, call: RunCall) -> str:
    return (
        f"The command ran {turn.duration:.1f} s and was stopped at its time-out of {call.timeout:g} s; the rest of it "
        "did not run. Give a longer timeout, or start it in the background with &."
    )
