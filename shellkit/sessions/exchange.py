"""One exchange with a live shell: send a line, wait for the report, the shell's end or the end of patience.

An exchange never blocks: a driver (`sessions/drive.py`) calls `step` with what the poller says until it is
done. It holds what all exchanges share; `sessions/turn.py` adds a command's output and the ladder that ends it.

The watchdog is here: a shell that waits for input although it owes a report has lost its wrapper (a user's
function in the way, `set -n`, a closed descriptor). It is given the wrapper again, then by force, then killed.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterable

from ..protocol.events import CheckpointTaken, Event, Finished
from ..protocol.machine import State
from ..protocol.state import Checkpoint
from .live import LiveShell

__all__ = ["WATCH_AFTER", "Exchange"]

#: Seconds after which to look whether the shell sits idle: soon at first, so that a lost report costs little,
#: then seldom, so that a long command costs nothing (contract B4: within 1 s).
_WATCH = (0.01, 0.02, 0.05, 0.1, 0.2)
WATCH_AFTER = _WATCH[0]


class Exchange:
    """Send `data` and wait.

    Args:
        live: the shell.
        data: what to write.
        patience: seconds until `expired`; None waits for ever.

    Attributes:
        poller: what a driver waits on.
        home: the shell that the poller belongs to; None if it is the exchange's own.
        finished: the trailer, once it has arrived.
        checkpoint: the state, if the shell printed it.
        exit_code: how the shell ended, if it did and somebody knows.
        ended: whether the shell has ended.
        expired: whether patience ran out.
        lost: whether the shell had to be killed because it would never have reported.
        unread: whether the shell ended without having read the line at all.
        recoveries: how often the shell was given its wrapper again; the second time by force.
    """

    #: Whether `stop` ends it at once.
    interruptible = False

    def __init__(self, live: LiveShell, data: bytes, patience: float | None = None) -> None:
        self.live = live
        self.poller: select.epoll = live.poller
        self.home: LiveShell | None = live
        self.finished: Finished | None = None
        self.checkpoint: Checkpoint | None = None
        self.exit_code: int | None = None
        self.ended = False
        self.expired = False
        self.stopped = False
        self.lost = False
        self.started = time.monotonic()
        self.unread = False
        self.more = False
        self.recoveries = 0
        self._looks = 0
        self._watch_at = self.started + _WATCH[0]
        self._expires_at = None if patience is None else self.started + patience
        self._data = data

    # -- for drivers -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Give back what only this exchange needed; called by the driver once nobody waits on it any more."""

    @property
    def deadline(self) -> float:
        """Monotonic time at which `step` wants to be called even if nothing happens."""
        if self._expires_at is None:
            return self._watch_at
        return min(self._watch_at, self._expires_at)

    def begin(self) -> None:
        """Send the line; the last thing before the driver waits.

        Whatever the writer does first delays the shell, which runs on the same processor or is woken later
        (docs/decisions/busy-polling.md).
        """
        if self.live.stop.requested:
            self.stop()
        if not (self.stopped and self.interruptible):
            self.live.write(self._data)

    def step(self, ready: Iterable[tuple[int, int]]) -> bool:
        """Take what the poller says and return whether the exchange is over."""
        self._take(ready)
        if self._answered() or self.ended:
            return self._settle()
        now = time.monotonic()
        if now >= self.deadline:
            self._late(now)
        return self.ended

    def stop(self) -> None:
        """End the exchange as soon as possible; only the driver's own thread may call this.

        One that is not `interruptible` goes on: it takes the shell a moment, and to kill it would lose its state.
        """
        self.live.look_again()
        if not self.stopped:
            self.stopped = True
            if self.interruptible:
                self._give_up()

    # -- for subclasses --------------------------------------------------------------------------------

    def _take(self, ready: Iterable[tuple[int, int]]) -> None:
        live = self.live
        process = live.process
        for fd, _ in ready:
            if fd == process.control.fd:
                self._note(live.receive())
            elif fd == process.exited:
                self._shell_ended()
            elif fd == process.stdin:
                live.flush()
            elif fd == live.stop.wake:
                if live.stop.requested:
                    self.stop()
            else:
                self._output_ready(fd)

    def _output_ready(self, fd: int) -> None:
        """Take note that a command's stream has something to read."""

    def _answered(self) -> bool:
        return self.finished is not None

    def _settle(self) -> bool:
        """The report or the end is here; return whether nothing is left to do."""
        return True

    def _note(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Finished):
                self.finished = event
            elif isinstance(event, CheckpointTaken):
                self.checkpoint = event.checkpoint

    def _shell_ended(self) -> None:
        if not self.ended:
            self._note(self.live.receive())
            self.exit_code = self.live.process.exit_code()
            self.unread = self.live.holds_unread(len(self._data))
            self.live.machine.shell_ended()
            self.ended = True

    def _late(self, now: float) -> None:
        if self._expires_at is not None and now >= self._expires_at:
            self.expired = True
            self._expires_at = None
            self._give_up()
        elif now >= self._watch_at:
            self._watch(now)

    def _give_up(self) -> None:
        self.live.process.kill()

    # -- the watchdog ----------------------------------------------------------------------------------

    def _watch(self, now: float) -> None:
        self._looks += 1
        self._watch_at = now + _WATCH[min(self._looks, len(_WATCH) - 1)]
        if not self.live.sits_idle():
            return
        self._note(self.live.receive())  # the report may have come between the last look and this one
        if self._answered():
            self._watch_at = now
        elif self.recoveries < 2 and self.live.machine.state in (State.RUNNING, State.PRINTING):
            self.live.write(self.live.machine.recover(forcibly=self.recoveries == 1))
            self.recoveries += 1
            self._looks = 0
            self._watch_at = now + _WATCH[0]
        else:
            self.lost = True
            self.live.process.kill_shell()
