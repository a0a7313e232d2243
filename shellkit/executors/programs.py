"""`Programs`: the programs that one executor has launched and that callers talk to, by number.

Made by the executor with the first launch; it decides what is waited for, what makes room, and what has run for too
long. It knows no shell and no approval. Any loop and thread may call it; waiting for one program holds up no other.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence

import attrs

from ..errors import ExecutorClosed, UnknownProcess
from ..output.ansi import draws_screen
from ..process.update import ProcessInfo, ProcessUpdate
from ..result import ShellResult
from ..sessions.adopted import AdoptedJob
from ..sessions.interactive import InteractiveSession, Pump, Sink
from ..sessions.spill import SpillFile
from .entry import Conversation, Entry, Until
from .listening import LineWatch, Spilled
from .process_limits import ProcessLimits

__all__ = ["Programs"]

#: Seconds before the end of its time that a program's fate is announced, at most; and this part of the limit at most.
_ANNOUNCED, _ANNOUNCED_PART = 600.0, 0.1
#: What has gone is remembered for a while, so that the answer to a late question is a good one.
_REMEMBERED = 64


class Programs:
    """The table of an executor's programs.

    Args:
        limits: how many, and for how long.
    """

    def __init__(self, limits: ProcessLimits) -> None:
        self.pump = Pump()
        self._limits = limits
        self._mutex = threading.Lock()
        self._entries: dict[int, Entry] = {}
        self._gone: dict[int, str] = {}
        self._last_id = 0
        self._closed = False
        self._look_planned = False

    # -- for the executor ------------------------------------------------------------------------------

    async def launch(
        self,
        command: str,
        make: Callable[[Sequence[Sink]], InteractiveSession],
        spill: SpillFile | None,
        yield_time: float,
        until: Until,
    ) -> ProcessUpdate:
        """Start a program, and wait for its first news.

        Args:
            command: what the caller launched.
            make: makes the program from what shall hear it; it must be drained by `pump`.
            spill: where its output is written to, if anywhere.
            yield_time: seconds to wait at most.
            until: what to wait for.
        """
        watch = LineWatch()
        session = make([watch] if spill is None else [watch, Spilled(spill)])
        await session.start()
        # In the table before the first wait: a cancelled caller does not lose the program.
        entry, evicted = self._add(command, session, watch, spill)
        self._watch_limits()
        if evicted is not None:
            try:
                await evicted.session.terminate()
            finally:
                evicted.give_back()
        return await self._news(entry, yield_time, until)

    def adopt(self, result: ShellResult) -> int:
        """Give the command of `result`, which was handed over at its time-out, a place; return its number."""
        watch = LineWatch()
        entry, evicted = self._add(result.command, AdoptedJob(result, [watch]), watch, None)
        if evicted is not None:
            evicted.give_back()  # at once, since `run` has had its time
        self._watch_limits()
        return entry.id

    async def write(self, process_id: int, chars: str, yield_time: float, until: Until) -> ProcessUpdate:
        """Type to a program, and wait for its news."""
        return await self._news(self._get(process_id), yield_time, until, typed=chars)

    async def stop(self, process_id: int) -> ProcessUpdate:
        """End a program and everything that it started."""
        entry = self._get(process_id)
        await entry.session.terminate()
        return self._update(entry, matched=False)

    def get(self, process_id: int) -> Conversation:
        """Return a program to do something else with it.

        Raises:
            UnknownProcess: there is none with this number.
        """
        return self._get(process_id).session

    def info(self, process_id: int) -> ProcessInfo:
        """Describe a program; this is no use of it.

        Raises:
            UnknownProcess: there is none with this number.
        """
        return self._find(process_id).info()

    def infos(self) -> tuple[ProcessInfo, ...]:
        """Describe all programs."""
        with self._mutex:
            entries = list(self._entries.values())
        return tuple(entry.info() for entry in entries)

    async def close(self) -> None:
        """End all programs within their grace period and give everything back."""
        with self._mutex:
            entries = list(self._entries.values())
        for entry in entries:
            if entry.session.running:
                entry.expired = "it was ended because the executor was closed"
        try:
            await asyncio.gather(*(entry.session.terminate() for entry in entries))
        finally:  # also when whoever closes is cancelled
            self.abandon()

    def abandon(self) -> None:
        """Kill all programs at once and give everything back; idempotent."""
        with self._mutex:
            self._closed = True
            entries = list(self._entries.values())
        for entry in entries:
            entry.give_back()
        self.pump.stop()

    # -- the table -------------------------------------------------------------------------------------

    def _add(
        self, command: str, session: Conversation, watch: LineWatch, spill: SpillFile | None
    ) -> tuple[Entry, Entry | None]:
        """Return the new entry, and the one that it has displaced.

        Raises:
            ExecutorClosed: the executor was closed meanwhile, by another thread; the program is gone.
        """
        with self._mutex:
            if self._closed:
                session.abandon()
                raise ExecutorClosed("the executor was closed while the program was launched")
            self._last_id += 1
            entry = self._entries[self._last_id] = Entry(self._last_id, command, session, watch, spill)
            evicted = None
            if len(self._entries) > self._limits.count:
                by_use = sorted(self._entries.values(), key=lambda each: (each.waiting > 0, each.used))
                old = by_use[: max(1, len(by_use) - self._limits.protected)]
                evicted = next((each for each in old if not each.session.running), old[0])
                was = "was ended" if evicted.session.running else "had ended, and was forgotten"
                why = f"{was} to make room: {self._limits.count} programs are kept, the least recently used one goes"
                self._remove(evicted, why)
                entry.notes.append(f"{evicted.name} {why}; stop what is no longer needed")
        return entry, evicted

    def _remove(self, entry: Entry, why: str) -> None:
        del self._entries[entry.id]
        self._gone[entry.id] = why
        for process_id in list(self._gone)[:-_REMEMBERED]:
            del self._gone[process_id]

    def _get(self, process_id: int) -> Entry:
        entry = self._find(process_id)
        entry.used = time.monotonic()
        return entry

    def _find(self, process_id: int) -> Entry:
        if not isinstance(process_id, int) or isinstance(process_id, bool):
            raise TypeError(f"process_id must be an int, not {type(process_id).__name__}")
        with self._mutex:
            entry = self._entries.get(process_id)
            if entry is not None:
                return entry
            why = self._gone.get(process_id, "was never launched")
            known = list(self._entries.values())
        shown = ", ".join(f"{each.name}{'' if each.session.running else ', ended'}" for each in known) or "none"
        raise UnknownProcess(f"process {process_id} {why}; there are: {shown}")

    # -- talking ---------------------------------------------------------------------------------------

    async def _news(self, entry: Entry, seconds: float, until: Until, *, typed: str = "") -> ProcessUpdate:
        entry.waiting += 1
        try:
            deadline = time.monotonic() + seconds
            if typed:
                await entry.type(typed, seconds)
            matched = await entry.wait(until, deadline)
        finally:
            entry.waiting -= 1
            entry.used = time.monotonic()
        if until is not None and not matched:
            entry.notes.append(entry.missed(until, seconds))
        update = self._update(entry, matched)
        if update.running and entry.session.tty and draws_screen(update.output):
            update = attrs.evolve(update, screen=(await entry.session.screen()).text)
        return update

    def _update(self, entry: Entry, matched: bool) -> ProcessUpdate:
        session = entry.session
        running = session.running  # before reading, so that an update with an exit code holds the last output
        output = session.read()
        notes, entry.notes = entry.notes, []
        if entry.spill is not None and entry.spill.failure is not None:
            notes.append(entry.spill.failure)
        if entry.expired:
            notes.append(entry.expired)
        elif running:
            notes += self._announcements()
        elif session.leaves_running:
            notes.append(f"what it started still runs; stopping process {entry.id} ends it")
        else:
            entry.give_back()
        return ProcessUpdate(
            command=entry.command,
            process_id=entry.id if running else None,
            exit_code=None if running else session.exit_code,
            output=output.text,
            omitted=output.omitted,
            runtime=session.runtime,
            waits_for_input=session.waits_for_input if running else False,
            matched=matched,
            notes=tuple(notes),
            output_ref=entry.ref,
        )

    # -- limits of time --------------------------------------------------------------------------------

    def _left(self, entry: Entry) -> tuple[float, float, str]:
        """Return how long an entry may still live, the limit that says so, and that limit in words."""
        limits = self._limits
        choices = [(math.inf, math.inf, "")]
        if (life := limits.life) is not None:
            choices.append((life - entry.session.runtime, life, f"a program may run for {life:g} s"))
        if (idle := limits.idle) is not None and not entry.waiting:
            left = idle - (time.monotonic() - entry.used)
            choices.append((left, idle, f"a program that no call is about may run for {idle:g} s"))
        return min(choices)

    def _watch_limits(self) -> None:
        """See to it that what has had its time is ended; called with each new program."""
        with self._mutex:
            planned, self._look_planned = self._look_planned, True
        if not planned:
            self._plan_look()

    def _plan_look(self) -> None:
        # One look for all: one for each would keep what has ended in memory until then.
        with self._mutex:
            running = [entry for entry in self._entries.values() if entry.session.running]
            # While somebody waits for it a program is not idle, and may be as soon as that is over.
            after = min((self._left(entry)[0] for entry in running), default=math.inf)
            after = min(after, self._limits.idle or math.inf)
            self._look_planned = bool(running) and after < math.inf
        if self._look_planned:
            self.pump.run(self._look, after=after)

    def _look(self) -> None:
        """End what has had its time; called in the pump's thread."""
        for entry in self._running():
            left, _, why = self._left(entry)
            if left <= 0:
                entry.expired = f"it was ended because its time was up: {why}"
                entry.give_back()
        self._plan_look()

    def _running(self) -> list[Entry]:
        with self._mutex:
            return [entry for entry in self._entries.values() if entry.session.running]

    def _announcements(self) -> list[str]:
        """Return what is about to be ended because its time is over."""
        found = []
        for each in self._running():
            left, limit, why = self._left(each)
            if left < min(_ANNOUNCED, limit * _ANNOUNCED_PART):
                found.append(f"{each.name} will be ended in {max(left, 0):.0f} s: {why}")
        return found
