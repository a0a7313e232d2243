"""Make a background job of what a finished command left behind (contract I), or of a whole command."""

from __future__ import annotations

import re

from ..process.tree import Containment
from .attendant import Attendant
from .jobs import BackgroundJob, Job
from .live import LiveShell
from .outcome import TIMED_OUT, Outcome
from .turn import Turn

__all__ = ["MAX_JOBS", "hand_over", "set_aside"]

#: Background jobs that a session keeps (contract I3).
MAX_JOBS = 64
#: What a command that leaves something running mostly looks like; asked only where looking is dear.
_LEAVING = re.compile(rb"(?<![&<>|])&(?![&>])|coproc|[<>]\(|setsid|nohup|daemon")


def set_aside(
    live: LiveShell, turn: Turn, outcome: Outcome, containment: Containment, attendant: Attendant, grace: float
) -> None:
    """Hand what the command left running, and the pipes that are still held, over to the attendant."""
    held = not (turn.stdout.ended and turn.stderr.ended)
    likely = _LEAVING.search(outcome.call.text) is not None
    left = containment.left_behind(live.process.pid, shell_alive=not turn.ended, likely=likely)
    if not held and not left:
        return
    group = containment.set_aside(live.process.pid)
    if group is None and not held:
        return
    outcome.snapshot(turn)
    job = Job(live.give_up_captures() if held else None, group)
    _attend(job, turn, outcome, attendant, grace)
    if not job.pids and not turn.ended:
        outcome.notes.append(
            "The shell keeps a descriptor of this command's output open (exec N>&1). What is written to it later "
            "is not shown in later results; exec N>&- closes it."
        )


def hand_over(
    live: LiveShell, turn: Turn, outcome: Outcome, containment: Containment, attendant: Attendant, grace: float
) -> None:
    """Hand a command that still runs over to the attendant, together with its shell, which ends after it."""
    group = containment.hand_over(live.process.pid)
    outcome.snapshot(turn)
    live.end_input()
    job = Job(live.give_up_captures(), group, live)
    ran = f"The command has run {turn.duration:.1f} s, its time-out, and was"
    if _attend(job, turn, outcome, attendant, grace):
        outcome.notes.append(f"{ran} not stopped: it runs on in the background, with an end-of-file for its input.")
    else:
        outcome.exit_code = TIMED_OUT
        outcome.notes.append(f"{ran} stopped: there was no room for it in the background.")


def _attend(job: Job, turn: Turn, outcome: Outcome, attendant: Attendant, grace: float) -> bool:
    """Hand a job over; return False if there are too many already, and this one was stopped."""
    for capture in (turn.stdout, turn.stderr):
        capture.listeners = ()
        if job.captures is not None:  # the job goes on writing, to the same file if there is one
            capture.buffer.clear()
        else:
            capture.clear()
    room = not job.pids or len(attendant.jobs()) < MAX_JOBS
    if not room:
        job.end_now()
        outcome.notes.append(
            f"{MAX_JOBS} background jobs are running, which is the limit, so this one was stopped. "
            "End others first (kill PID), or wait for them."
        )
    outcome.background = (BackgroundJob(job, grace),)
    attendant.attend(job)
    return room
