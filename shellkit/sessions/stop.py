"""A request, from any thread, that a session's running procedure end as soon as possible."""

from __future__ import annotations

import os
import threading

__all__ = ["StopRequest"]


class StopRequest:
    """A flag that wakes whoever waits on `wake`, an event descriptor that this object owns.

    Exchanges register the descriptor edge-triggered and never read it: several shells of a session look at it,
    and every write is a new edge for each.
    """

    def __init__(self) -> None:
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.requested = False
        self.for_good = False
        self._mutex = threading.Lock()

    def request(self, *, for_good: bool) -> None:
        """Ask the running procedure, and if `for_good` every later one, to end."""
        self.requested = True
        self.for_good |= for_good
        self.notify()

    def notify(self) -> None:
        """Wake whoever waits, to look at something else than the flag."""
        with self._mutex:
            if self.wake >= 0:
                os.eventfd_write(self.wake, 1)

    def procedure_starts(self) -> None:
        """Forget a request that was meant for the last procedure."""
        self.requested = self.for_good

    def close(self) -> None:
        """Give the descriptor back; idempotent."""
        with self._mutex:
            if self.wake >= 0:
                os.close(self.wake)
                self.wake = -1
