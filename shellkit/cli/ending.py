"""What ends a sub-command from outside: SIGTERM, and SIGHUP from a terminal that is gone.

Used by `agent`, `demo` and `repl`, which end as by an exception: what they made is removed, what they keep is kept.
A session alone needs none of this: the reaper ends it.
"""

from __future__ import annotations

import signal
import sys

__all__ = ["close_when_ended", "ending_signals"]


def ending_signals() -> list[int]:
    """Return the signals that end us: under nohup(1), which ignores it, SIGHUP does not."""
    return [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]


def close_when_ended() -> None:
    """Let these signals raise `SystemExit`, with the exit code that shells report for them."""
    for number in ending_signals():
        signal.signal(number, _end)


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)
