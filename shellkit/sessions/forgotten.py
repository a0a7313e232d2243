"""What happens to what an object owned when it is garbage, or its interpreter exits. For `weakref.finalize`.

Used by executors and interactive sessions; both can be closed properly, which is better.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

__all__ = ["end_forgotten"]

#: Seconds that a garbage collection waits for what it has found to end.
_WAIT = 0.5


def end_forgotten(abandon: Callable[[], object], pid: int) -> None:
    """End something of process `pid`; in a forked child it is left alone.

    Args:
        abandon: ends it at once and gives everything back; called in any thread.
        pid: the process that owns it.
    """
    if os.getpid() != pid:
        return
    if threading.main_thread().is_alive():
        # A collection runs in any thread, in the middle of anything: perhaps under a lock that is needed for this. Then
        # it ends when that is released; mostly it takes milliseconds, and is over when this returns.
        ending = threading.Thread(target=abandon, name="shellkit-abandon")
        ending.start()
        ending.join(_WAIT)
    else:  # the interpreter exits, and would not wait for a thread
        abandon()
