"""Events on their way from the task that works to whoever iterates `Agent.run`.

The work waits until each event has been taken and dealt with, so that what is shown is what happens. Only output of a
running command does not wait, as a slow reader must not slow the command: what does not fit is left out and counted.
"""

from __future__ import annotations

import asyncio

from ..sessions.base import StreamName
from .events import Event, OutputChunk

__all__ = ["EventFeed"]

#: Characters of output that may wait for a slow reader.
_CHARACTERS = 1 << 20


class EventFeed:
    """The events of one run. Both sides are on one event loop."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._waiting = 0
        self._lost = 0

    async def put(self, event: Event) -> None:
        """Show an event, and return when the reader asks for the next one."""
        self._queue.put_nowait(event)
        await self._queue.join()

    def put_output(self, call_id: str, stream: StreamName, text: str) -> None:
        """Show output; never waits."""
        if self._waiting + len(text) > _CHARACTERS and self._waiting:
            self._lost += len(text)
            return
        self._waiting += len(text)
        self._queue.put_nowait(OutputChunk(call_id=call_id, stream=stream, text=text, lost=self._lost))
        self._lost = 0

    def end(self, last: Event | None = None) -> None:
        """Show the last event, if one is given, or that there are no more; never waits."""
        self._queue.put_nowait(last)

    async def get(self) -> Event | None:
        """Return the next event, or None at the end."""
        event = await self._queue.get()
        if isinstance(event, OutputChunk):
            self._waiting -= len(event.text)
        return event

    def seen(self) -> None:
        """Say that the event that `get` returned has been dealt with."""
        self._queue.task_done()
