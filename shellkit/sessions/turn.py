"""One command in a live shell, from its line to its result, and the ladder that ends it when it must end.

The ladder (contract F2): *interrupt* makes the shell abandon the rest and sends SIGINT to what it runs;
*terminate* sends SIGTERM; *kill* sends SIGKILL, to the shell as well. The rungs stand at the beginning, at 35 %
and at 70 % of the grace period, and before each stands the question what is left. A shell that has been
interrupted always ends; it prints its state first, and the session gives that to the next shell.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from .exchange import WATCH_AFTER, Exchange
from .live import LiveShell

__all__ = ["LastTurn", "Turn"]

#: Bytes to read of one stream before the driver gets control back: about 1 ms of memory bandwidth.
_BUDGET = 1 << 21
#: Seconds after which a command's output is looked at while it runs.
LISTEN_AFTER = 0.001
#: Seconds that a command takes at the most after which the next one is polled for (docs/decisions/busy-polling.md).
_QUICK = 0.0005
#: Seconds to wait for `>(...)`: the shell does not wait for it, but what it prints belongs to the command.
_LINGER = 0.1
#: When the later rungs come, as parts of the grace period.
_TERMINATE, _KILL = 0.35, 0.7
#: Seconds between two questions whether anything is left: quick at first, then seldom.
_FIRST_LOOK, _LAST_LOOK = 0.001, 0.02


class Turn(Exchange):
    """Run one command.

    Args:
        live: the shell.
        data: the command's line.
        patience: its time-out in seconds; None for none.
        grace: seconds that the ladder may take.
        lingers: whether something that the shell does not wait for is about to end and to print.
        hands_over: whether it is left to run on when its time is over.

    Attributes:
        duration: seconds it ran.
        cut_short: whether the ladder ended it.
        handed_over: whether it was left to run on.
        abandoned: whether something was still alive when the ladder had no more rungs.
    """

    interruptible = True

    def __init__(
        self,
        live: LiveShell,
        data: bytes,
        patience: float | None,
        grace: float,
        *,
        lingers: bool = False,
        hands_over: bool = False,
    ) -> None:
        self.stdout, self.stderr = live.open_captures()
        self._by_fd = {self.stdout.pipe.fd: self.stdout, self.stderr.pipe.fd: self.stderr}
        self._grace = grace
        self._linger_until = 0.0 if lingers else -1.0
        self._cut_at = 0.0
        self._look_after = _FIRST_LOOK
        self._rungs_taken = 0
        self._hands_over = hands_over
        self.cut_short = False
        self.handed_over = False
        self.abandoned = False
        self.duration = 0.0
        super().__init__(live, data, patience)
        # Most commands end before this. Until then nobody looks at the pipes, which hold 64 KiB: each close of
        # one by the shell would wake the host, and a wake-up costs the shell as much as running `true`.
        self._listen_at: float | None = self.started + LISTEN_AFTER
        self._watch_at = self._listen_at

    # -- output ----------------------------------------------------------------------------------------

    def _output_ready(self, fd: int) -> None:
        if (capture := self._by_fd.get(fd)) is not None:
            capture.readable = True

    def _take(self, ready: Iterable[tuple[int, int]]) -> None:
        super()._take(ready)
        self.more = False
        for capture in (self.stdout, self.stderr):
            if capture.readable and not self._answered():
                capture.drain(_BUDGET)
                self.more |= capture.readable

    def _settle(self) -> bool:
        if self.cut_short and not self._ladder_done():
            return False
        self.stdout.drain_rest()
        self.stderr.drain_rest()
        if self._linger_until >= 0 and not (self.stdout.ended and self.stderr.ended) and not self.cut_short:
            return self._linger()
        return self._conclude()

    def _linger(self) -> bool:
        now = time.monotonic()
        if self._linger_until == 0:
            self._linger_until = now + _LINGER
            self._listen_at = None
            self.live.watch_captures()
        if now >= self._linger_until:
            return self._conclude()
        self._watch_at = min(self._linger_until, now + _LAST_LOOK)
        return False

    def _conclude(self) -> bool:
        self.duration = time.monotonic() - self.started
        self.live.quick = self.duration < _QUICK
        self.live.unwatch_captures()
        if self.ended and self.checkpoint is None:
            # A user's EXIT trap runs when the redirections are undone: what it prints arrives as noise.
            self.stdout.append(self.live.machine.take_noise())
        return True

    def _watch(self, now: float) -> None:
        if self._listen_at is None:
            super()._watch(now)
            return
        self._listen_at = None
        self._watch_at = self.started + WATCH_AFTER
        self.live.watch_captures()
        self.more = True  # what was written before the poller looked counts as news: edge-triggered
        self.stdout.readable = self.stderr.readable = True

    # -- the ladder ------------------------------------------------------------------------------------

    def _give_up(self) -> None:
        if self._hands_over and self.expired and not self.stopped:
            self.handed_over = True
            self.stdout.drain_rest()
            self.stderr.drain_rest()
            self._conclude()
        elif not self.cut_short:
            self.cut_short = True
            self._cut_at = time.monotonic()
            self._listen_at = None
            self.live.watch_captures()
            self.stdout.readable = self.stderr.readable = True
            self._watch_at = self._cut_at + _FIRST_LOOK
            self.live.process.interrupt()
            # A shell that waits for its next line runs a trap only when the line has come.
            self.live.write(b"\n")

    def step(self, ready: Iterable[tuple[int, int]]) -> bool:
        if not self.cut_short:
            return super().step(ready) or self.handed_over
        self._take(ready)
        now = time.monotonic()
        if now >= self._watch_at:
            self._climb(now)
        return self._settle()

    def _climb(self, now: float) -> None:
        spent = now - self._cut_at
        if self._rungs_taken == 0:
            self.live.process.interrupt()
        if spent >= self._grace * _TERMINATE and self._rungs_taken == 0:
            self._rungs_taken = 1
            self.live.process.terminate()
        if spent >= self._grace * _KILL:
            self._rungs_taken = 2
            self.live.process.kill()
        self._look_after = min(self._look_after * 2, _LAST_LOOK)
        self._watch_at = now + self._look_after

    def _ladder_done(self) -> bool:
        if self.ended and not self.live.process.command_survives():
            return True
        if time.monotonic() - self._cut_at < self._grace:
            return False
        # Uninterruptible sleep, or another user's process: the bound holds all the same (contract F1).
        self.abandoned = True
        return True


class LastTurn(Turn):
    """Run one command in a shell that ends with it (a stateless session): only its end is an answer."""

    def begin(self) -> None:
        super().begin()
        self.live.end_input()

    def _answered(self) -> bool:
        return self.ended

    def _watch(self, now: float) -> None:
        if self._listen_at is not None:
            super()._watch(now)
        else:  # its stdin is closed: it cannot sit and wait for another line
            self._watch_at = now + 1.0
