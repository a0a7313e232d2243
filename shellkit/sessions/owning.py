"""What every session owns, whatever its mode, and how it gives it back: processes, pipes, a thread, descriptors.

A command's turn is here as well, which takes some of each.

`finish` is the polite end, within the grace period; `abandon` the sudden one, when the interpreter exits or nobody
holds the executor any more. Both leave nothing behind (contract G3).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Callable

from ..process import reaper
from ..process.pipes import PipeSource, pipe_source
from ..process.tree import Containment, containment
from .attendant import Attendant
from .base import RunCall, Session, SessionSettings
from .drive import Procedure
from .ending import Farewell
from .live import LiveShell
from .preparing import prepare_call
from .starting import Starter
from .stop import StopRequest
from .turn import LastTurn, Turn

__all__ = ["OwningSession"]


class OwningSession(Session):
    """The part of a session that owns things.

    Args:
        settings: how to start and run shells.
        when_idle: called in the attendant's thread when the session has been idle for a moment.
        keeps_state: whether its shells print their state when they end.
    """

    def __init__(self, settings: SessionSettings, when_idle: Callable[[], None], *, keeps_state: bool) -> None:
        self._settings = settings
        self._cookie = secrets.token_hex(8)
        with contextlib.ExitStack() as undo:  # for a host that runs out of descriptors half-way
            self._stop = StopRequest()
            undo.callback(self._stop.close)
            self._pipes: PipeSource = pipe_source()
            undo.callback(self._pipes.close)
            self._attendant = Attendant(when_idle)
            undo.callback(self._attendant.stop)
            #: To end a session takes a descriptor (/proc is listed, cgroup.kill written) in the thread that ends it,
            #: and in the attendant's; a host that has none left gets these.
            self._reserve: tuple[int, ...] = os.pipe2(os.O_CLOEXEC)
            undo.callback(self._use_reserve)
            self._containment: Containment = containment(self._cookie)
            undo.pop_all()
        self._starter = Starter(
            settings, self._containment, self._pipes, self._attendant, self._stop, self._cookie, keeps_state=keeps_state
        )
        self._live: LiveShell | None = None
        self._finished = False
        self._mutex = threading.Lock()

    @property
    def finished(self) -> bool:
        return self._finished

    @property
    def containment(self) -> Containment:
        """The processes of the session."""
        return self._containment

    def request_stop(self, *, for_good: bool) -> None:
        self._stop.request(for_good=for_good)

    def _take_turn(self, kind: type[Turn], live: LiveShell, call: RunCall, exit_code: int) -> Procedure[Turn]:
        """Run a command in a shell; `$?` is `exit_code` when it starts."""
        yield from self._starter.take_in_first(live, call.text)
        files: list[int] = []
        begin = live.machine.begin_last if kind is LastTurn else live.machine.begin
        try:
            line = begin(prepare_call(live, self._settings, self._pipes, call, exit_code, files))
            self._containment.command_starts()
            turn = kind(
                live,
                line,
                call.timeout,
                self._settings.grace,
                lingers=b">(" in call.text,
                hands_over=call.on_timeout == "background",
            )
            yield turn
        finally:
            for fd in files:
                os.close(fd)
        return turn

    def finish(self) -> Procedure[None]:
        if self._finished:
            return
        self._use_reserve()
        # An idle dash keeps a SIGTERM until its next line: the spare would cost 0.6 of the grace.
        self._starter.close(self._settings.grace / 4)
        yield Farewell(self._live, self._containment, self._settings.grace, everything=True)
        self.abandon()

    def abandon(self) -> None:
        with self._mutex:
            if self._finished:
                return
            self._finished = True
        self._use_reserve()
        self._containment.kill_everything()
        live, self._live = self._live, None
        if live is not None:
            self._starter.discard(live)
        self._starter.close()
        self._attendant.stop()
        self._starter.close()  # one that was being made when the attendant was told to stop
        self._containment.close()
        reaper.unwatch(self._cookie)
        self._pipes.close()
        self._stop.close()

    def _use_reserve(self) -> None:
        reserve, self._reserve = self._reserve, ()
        for fd in reserve:
            os.close(fd)
