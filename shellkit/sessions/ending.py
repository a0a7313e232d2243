"""The end of a session: let the shell go, then ask, then kill, within the grace period (contract G3)."""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Iterable

from ..process.tree import Containment, send
from .exchange import Exchange
from .live import LiveShell

__all__ = ["Farewell"]

#: When the rungs come, as parts of the grace period: the shell runs its EXIT trap before the first.
_ASK, _KILL = 0.3, 0.6
_FIRST_LOOK, _LAST_LOOK = 0.001, 0.02


class Farewell(Exchange):
    """Close the shell's stdin, so that an idle shell ends by itself, and end what is left.

    Args:
        live: the shell, or None if there is none.
        containment: the processes to end with it; None ends only the shell.
        grace: seconds that it may take.
        everything: whether to wait for all of the containment, or for the shell only.
    """

    def __init__(
        self, live: LiveShell | None, containment: Containment | None, grace: float, *, everything: bool
    ) -> None:
        self._containment = containment if everything else None
        self._grace = grace
        self._rungs = 0
        self._look_after = _FIRST_LOOK
        self._shell_gone = live is None
        self._begun = time.monotonic()
        self._look_at = self._begun + _FIRST_LOOK
        self.more = False
        if self._containment is not None:
            # Jobs have nothing to save for the shell's sake: they can go while it runs its EXIT trap. They are told
            # first, for what the trap starts must not be.
            shell = live.process.pid if live is not None else 0
            send((pid for pid in self._containment.everything() if pid != shell), signal.SIGTERM)
        if live is None:
            self.poller, self.home = select.epoll(), None
        else:
            super().__init__(live, b"", None)
            live.poller.unregister(live.process.stdin)
            live.process.close_stdin()

    @property
    def deadline(self) -> float:
        return self._look_at

    def step(self, ready: Iterable[tuple[int, int]]) -> bool:
        if self.home is not None:
            self._take(ready)
            self._shell_gone = self.ended
        now = time.monotonic()
        if self._over(now):
            return True
        if now >= self._look_at:
            self._climb(now - self._begun)
            self._look_after = min(self._look_after * 2, _LAST_LOOK)
            self._look_at = now + self._look_after
        return False

    def begin(self) -> None:
        return

    def close(self) -> None:
        if self.home is None:
            self.poller.close()

    def stop(self) -> None:
        """Ending cannot be given up; it is bounded by the grace period."""

    def _over(self, now: float) -> bool:
        if now - self._begun >= self._grace:
            return True
        return self._shell_gone and (self._containment is None or not self._containment.everything())

    def _climb(self, spent: float) -> None:
        if spent >= self._grace * _ASK and self._rungs == 0:
            self._rungs = 1
            if self._containment is not None:
                everything = self._containment.everything()
                send(everything, signal.SIGTERM)
                send(everything, signal.SIGCONT)
        if spent >= self._grace * _KILL:
            if not self._shell_gone:
                self.live.process.kill_shell()
            if self._containment is not None:
                self._containment.kill_everything()
