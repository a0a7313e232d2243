"""A session that gives every command a fresh shell, mostly one that was started ahead.

Nothing persists but background jobs, which belong to the session. The shell ends with its command: its exit
status is the result, and an EXIT trap of the user's writes to the command's output.
"""

from __future__ import annotations

import os

from ..errors import ExecutorClosed, InvalidWorkdir, SpawnError
from ..result import ShellResult
from .base import RunCall, SessionSettings
from .drive import Procedure
from .exchange import Exchange
from .leftovers import hand_over, set_aside
from .live import LiveShell
from .outcome import Outcome, build_result
from .owning import OwningSession
from .preparing import run_startup_commands
from .turn import LastTurn
from .turnstile import Turnstile

__all__ = ["StatelessSession"]


class StatelessSession(OwningSession):
    """Run every command in a shell of its own.

    Args:
        settings: how to start and run shells.
        turnstile: lets one procedure through at a time; unused here, since nothing happens between commands.
    """

    def __init__(self, settings: SessionSettings, turnstile: Turnstile) -> None:
        super().__init__(settings, lambda: None, keeps_state=False)

    @property
    def workdir(self) -> bytes | None:
        return self._settings.workdir

    def start(self) -> Procedure[None]:
        self._stop.procedure_starts()
        # Asking for a shell and giving it back as the spare would save nothing; a failure must show, though.
        live = yield from self._starter.open(self._settings.workdir)
        self._starter.keep(live, self._settings.workdir)

    def run(self, call: RunCall) -> Procedure[ShellResult]:
        self._stop.procedure_starts()
        outcome = Outcome(call)
        live = yield from self._starter.open(self._settings.workdir)
        self._live = live
        handed_over = False
        try:
            yield from run_startup_commands(live, self._settings, self._containment, outcome.notes)
            yield from self._arrange(live, call)
            turn = yield from self._take_turn(LastTurn, live, call, 0)
            outcome.take(turn)
            handed_over = turn.handed_over
            leave = hand_over if handed_over else set_aside
            leave(live, turn, outcome, self._containment, self._attendant, self._settings.grace)
        finally:
            self._live = None
            if not handed_over:
                self._starter.discard(live)
            # Not earlier: starting it beside the command would slow the command down by as much as it saves.
            self._starter.prepare(self._settings.workdir)
        outcome.workdir = call.workdir or self._settings.workdir
        result = build_result(outcome, turn)
        if self._stop.for_good:
            raise ExecutorClosed("the executor was closed while the command ran", result)
        return result

    def restart(self) -> Procedure[None]:
        yield from self.start()

    # -- one command -----------------------------------------------------------------------------------

    def _arrange(self, live: LiveShell, call: RunCall) -> Procedure[None]:
        if call.workdir is None and not call.env:
            return
        dialect, link = live.machine.dialect, live.machine.link
        exchange = Exchange(
            live, live.machine.send(dialect.arrange(link, call.workdir, call.env)), self._settings.start_timeout
        )
        yield exchange
        if exchange.finished is None or exchange.finished.exit_code != 0:
            if call.workdir is not None:
                raise InvalidWorkdir(f"cannot enter the working directory {os.fsdecode(call.workdir)}; nothing ran")
            raise SpawnError("the shell refused the variables of env for this command, which did not run")
