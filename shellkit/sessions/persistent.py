"""A session on one long-lived shell that outlives the shells it uses up (contract D).

What `run` does: have a shell (a new one gets the state of the last) -> arrange what holds for this command ->
let it take its turn -> see what it left behind -> undo the arrangement -> bring a strayed shell back -> result.
Each step that waits is an exchange; this file says in which order and what they mean, never how to wait.
"""

from __future__ import annotations

import os
import re
import signal

from ..errors import ExecutorClosed, InvalidWorkdir, ShellkitError, SpawnError
from ..process.tree import send
from ..protocol.state import Checkpoint
from ..result import ShellResult, ShellState
from .base import RunCall, SessionSettings
from .drive import Procedure, drive_blocking
from .ending import Farewell
from .exchange import Exchange
from .leftovers import hand_over, set_aside
from .live import LiveShell
from .outcome import Outcome, build_result
from .owning import OwningSession
from .preparing import run_startup_commands
from .turn import Turn
from .turnstile import Turnstile

__all__ = ["PersistentSession"]


#: An `exit` with a number, as a user writes it.
_EXIT = re.compile(rb"(?:^|[;&|{\n]|\bthen|\bdo|\belse)\s*exit\s+(\d{1,3})\b")


#: How often a command that was never read is given to the next shell.
_MOST_RERUNS = 2
#: Commands that can leave a shell in which no command runs.
_DISABLING = re.compile(rb"\b(?:set|ulimit|restricted_shell|prlimit)\b")


class PersistentSession(OwningSession):
    """Run commands in one shell that keeps its state from command to command.

    Args:
        settings: how to start and run shells.
        turnstile: lets one procedure through at a time; the attendant passes it as well.
    """

    def __init__(self, settings: SessionSettings, turnstile: Turnstile) -> None:
        super().__init__(settings, self._take_idle_checkpoint, keeps_state=True)
        self._turnstile = turnstile
        self._checkpoint: Checkpoint | None = None
        self._checkpoint_is_new = False
        self._started_before = False
        self._pending_settle: tuple[bytes | None, tuple[str, ...]] | None = None
        self._exit_code = 0
        self._workdir: bytes | None = None
        self._workdir_key: tuple[bytes, bytes | None] | None = None
        self._patience = settings.start_timeout
        self._may_be_unfit = False
        self._broken_off = False
        self._reruns = 0
        self._late_notes: list[str] = []
        #: What was found when a shell was started ahead of the first command.
        self._start_notes: list[str] = []

    @property
    def workdir(self) -> bytes | None:
        return self._workdir

    # -- procedures ------------------------------------------------------------------------------------

    def start(self) -> Procedure[None]:
        self._stop.procedure_starts()
        if self._live is None:
            yield from self._open_shell(self._start_notes)

    def run(self, call: RunCall) -> Procedure[ShellResult]:
        try:
            return (yield from self._run(call))
        except (ShellkitError, ValueError):
            raise
        except BaseException:  # KeyboardInterrupt comes anywhere: nobody knows what has been done, and what not
            self._broken_off = True
            raise

    def _run(self, call: RunCall) -> Procedure[ShellResult]:
        self._stop.procedure_starts()
        outcome = Outcome(call)
        yield from self._have_shell(outcome)
        if call.on_timeout == "background" and not self._checkpoint_is_new:
            yield from self._print_state()  # what the next shell gets, if this command keeps its own
            yield from self._have_shell(outcome)
        live = self._live
        if live is None:  # the interpreter is about to exit, and has ended everything
            raise ExecutorClosed("the executor was closed before the command started")
        before = self._workdir
        arranged = call.workdir is not None or bool(call.env)
        if arranged:
            yield from self._arrange(live, call, before)
        self._checkpoint_is_new = False
        turn = yield from self._take_turn(Turn, live, call, self._exit_code)
        if turn.unread and not turn.cut_short and self._reruns < _MOST_RERUNS:
            # The shell was ending already (set -t) and never saw the line: it is for the next one.
            self._reruns += 1
            self._drop(live)
            why = "The shell ended before it had read the command, which ran in the next one."
            self._state_after_death(turn.checkpoint, self._late_notes, why)
            return (yield from self.run(call))
        self._reruns = 0
        outcome.take(turn)
        leave = hand_over if turn.handed_over else set_aside
        leave(live, turn, outcome, self._containment, self._attendant, self._settings.grace)
        if turn.handed_over:
            return self._without_shell(turn, outcome)
        if turn.ended:
            self._bury(live, turn, outcome)
        else:
            assert turn.finished is not None
            self._exit_code = turn.finished.exit_code or 0
            if turn.recoveries:
                self._note_recovery(live, turn, outcome)
            elif live.machine.dialect.may_shadow(call.text):
                yield Exchange(live, live.machine.watch(call.text))
            unfit = yield from self._is_unfit(turn, call)
            if unfit:  # the command did not run
                return (yield from self.run(call))
        if arranged:
            yield from self._settle()
        self._see_where(turn)
        yield from self._confine(before, outcome.notes)
        outcome.workdir = self._workdir
        self._attendant.session_idle()
        if self._stop.for_good:
            raise ExecutorClosed("the executor was closed while the command ran", build_result(outcome, turn))
        return build_result(outcome, turn)

    def restart(self) -> Procedure[None]:
        self._stop.procedure_starts()
        if self._live is not None:
            farewell = Farewell(self._live, None, self._settings.grace, everything=False)
            yield farewell
            self._drop(self._live)
        self._checkpoint = None
        self._pending_settle = None
        self._exit_code = 0
        self._start_notes.clear()
        yield from self._open_shell(self._start_notes)

    # -- having a shell --------------------------------------------------------------------------------

    def _have_shell(self, outcome: Outcome) -> Procedure[None]:
        if self._broken_off:
            yield from self._end_broken_off(outcome)
        if self._live is not None and self._live.process.exit_code() is not None:
            self._drop(self._live)
            outcome.shell_state = self._state_after_death(None, outcome.notes, "The shell had ended while it was idle.")
        if self._late_notes:
            outcome.shell_state = "restored"
            outcome.notes += self._late_notes
            self._late_notes.clear()
        outcome.notes += self._start_notes
        self._start_notes.clear()
        if self._live is None:
            yield from self._open_shell(outcome.notes)

    def _end_broken_off(self, outcome: Outcome) -> Procedure[None]:
        """End the shell that the last call was broken off with, and what that left; it prints its state."""
        live = self._live
        if live is not None:
            send(self._containment.running(), signal.SIGKILL)
            farewell = Farewell(live, None, self._settings.grace, everything=False)
            yield farewell
            self._drop(live)
            why = "The last call was broken off in the middle (KeyboardInterrupt), and its shell replaced."
            outcome.shell_state = self._state_after_death(farewell.checkpoint, outcome.notes, why)
        self._broken_off = False

    def _open_shell(self, notes: list[str]) -> Procedure[None]:
        live = yield from self._starter.open(self._starting_directory(notes))
        with self._mutex:
            self._live = live
        self._workdir_key = None
        try:
            yield from run_startup_commands(live, self._settings, self._containment, notes)
        except SpawnError:
            self._drop(live)
            raise
        if self._checkpoint is not None:
            if not (yield from self._restore(live, self._checkpoint, notes)):
                return (yield from self._open_shell(notes))
            self._starter.prepare(self._settings.workdir)
        self._started_before = True
        if self._live is not None:
            self._workdir = _real_directory(live) or self._workdir
            yield from self._settle()
            yield from self._confine(None, notes)

    def _starting_directory(self, notes: list[str]) -> bytes:
        workdir = self._settings.workdir
        if os.path.isdir(workdir) or not self._started_before:
            return workdir
        parent = workdir
        while not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        notes.append(
            f"The working directory {os.fsdecode(workdir)} is gone; the shell stands in {os.fsdecode(parent)}."
        )
        return parent

    def _restore(self, live: LiveShell, checkpoint: Checkpoint, notes: list[str]) -> Procedure[bool]:
        """Give the new shell the state of the old one; False if another one must be tried, with less of it."""
        inherited = [os.fsdecode(name) for name in self._settings.environment()]
        script = live.machine.restore(checkpoint, inherited)
        path, fd = self._pipes.file(script)
        try:
            done = Exchange(
                live, live.machine.send(live.machine.dialect.run_script(live.machine.link, path)), self._patience
            )
            yield done
        finally:
            os.close(fd)
        if done.ended:
            self._drop(live)
            self._checkpoint = checkpoint.without_traps()
            if self._checkpoint == checkpoint:
                self._checkpoint = None
                raise SpawnError(
                    "the new shell ended while it was given the state of the old one; run again to start afresh"
                )
            notes.append("A trap of the old shell ended the new one at once; another one has its state without traps.")
        return not done.ended

    # -- one command -----------------------------------------------------------------------------------

    def _arrange(self, live: LiveShell, call: RunCall, before: bytes | None) -> Procedure[None]:
        undo = (before if call.workdir is not None else None, tuple(call.env))
        dialect = live.machine.dialect
        for forcibly in (False, True):
            link = live.machine.link
            if forcibly:  # a builtin that the user has switched off or hidden, perhaps
                yield Exchange(live, live.machine.send(dialect.recover(link, forcibly=True)), self._patience)
            line = live.machine.send(dialect.arrange(link, call.workdir, call.env))
            exchange = Exchange(live, line, self._patience)
            self._pending_settle = undo
            yield exchange
            if exchange.ended:
                self._drop(live)
                self._pending_settle = None
                raise SpawnError(
                    "the shell ended while it was prepared for the command, which did not run; run it again"
                )
            if exchange.finished is not None and exchange.finished.exit_code == 0:
                return
            yield from self._settle()
            if self._live is None:
                raise SpawnError(
                    "the shell ended while it was prepared for the command, which did not run; run it again"
                )
        if call.workdir is not None and not os.path.isdir(call.workdir):
            raise InvalidWorkdir(f"working directory does not exist: {os.fsdecode(call.workdir)}")
        raise ValueError(
            "the shell refused workdir or env for this command, which did not run: is one of "
            f"{sorted(call.env)} readonly there, or may {os.fsdecode(call.workdir or b'the directory')} not be entered?"
        )

    def _settle(self) -> Procedure[None]:
        live, pending = self._live, self._pending_settle
        if live is None or pending is None:
            return
        dialect, link = live.machine.dialect, live.machine.link
        exchange = Exchange(live, live.machine.send(dialect.settle(link, *pending)), self._patience)
        yield exchange
        self._pending_settle = None
        if exchange.ended:
            self._drop(live)
        else:
            self._workdir = _real_directory(live) if pending[0] is None else pending[0]

    # -- what it left behind ---------------------------------------------------------------------------

    def _without_shell(self, turn: Turn, outcome: Outcome) -> ShellResult:
        """Account for a command that runs on in its shell: the next one gets a new shell with the state before it."""
        with self._mutex:
            self._live = None
        self._pending_settle = None
        if self._checkpoint is None:
            self._workdir = self._settings.workdir
            outcome.shell_state = "restarted"
            outcome.notes.append("It keeps its shell; the next command gets a new one, without the state of this one.")
        else:
            self._checkpoint_workdir()
            outcome.shell_state = "restored"
            missing = self._settings.dialect.not_restored
            outcome.notes.append(
                "It keeps its shell; the next command gets a new one, with the state from before it"
                + (f", except for: {missing}." if missing else ".")
            )
        outcome.workdir = self._workdir
        return build_result(outcome, turn)

    def _bury(self, live: LiveShell, turn: Turn, outcome: Outcome) -> None:
        """Account for the end of the shell: what is kept of its state, and what the caller must be told."""
        checkpoint = turn.checkpoint
        self._exit_code = outcome.exit_code or 0
        why = ""
        if turn.lost:
            why = "The shell no longer answered (set -n, or a trap that skips every command) and was replaced."
        outcome.shell_state = self._state_after_death(checkpoint, outcome.notes, why)
        by_signal = live.process.signalled
        if checkpoint is not None and checkpoint.errexit and not by_signal and _errexit_fired(turn, outcome.call.text):
            self._checkpoint = checkpoint.without_errexit()
            outcome.notes.append(
                "errexit (set -e) ended the shell at a failing command; it is off again in the new one."
            )
        self._checkpoint_workdir()
        self._drop(live)

    def _state_after_death(self, checkpoint: Checkpoint | None, notes: list[str], why: str) -> ShellState:
        if why:
            notes.append(why)
        if checkpoint is not None:
            self._checkpoint = checkpoint
            missing = self._settings.dialect.not_restored
            if missing:
                notes.append(f"The shell ended; a new one has its state, except for: {missing}.")
            return "restored"
        self._pending_settle = None  # what is known of the state is from before it
        if self._checkpoint is not None:
            notes.append(
                "The shell ended without saving its state (killed, replaced by exec, or an EXIT trap of its own); a "
                "new one has the state of the last moment it was idle. What this command itself changed is lost."
            )
            return "restored"
        notes.append(
            "The shell ended without saving its state, which is gone: working directory, variables, functions and "
            "options are those of a new session. Set them again."
        )
        self._workdir = self._settings.workdir
        return "restarted"

    def _checkpoint_workdir(self) -> None:
        if self._checkpoint is not None and self._checkpoint.workdir:
            self._workdir = self._checkpoint.workdir

    def _is_unfit(self, turn: Turn, call: RunCall) -> Procedure[bool]:
        """Find out whether a command that failed without a word could run at all; replace the shell if not."""
        self._may_be_unfit |= _DISABLING.search(call.text) is not None
        silent = turn.stdout.buffer.total == turn.stderr.buffer.total == 0
        if not (self._may_be_unfit and silent and turn.finished is not None and turn.finished.exit_code):
            return False
        yield from self._print_state()
        return self._live is None or self._live.process.exit_code() is not None

    def _note_recovery(self, live: LiveShell, turn: Turn, outcome: Outcome) -> None:
        self._workdir_key = None
        if turn.recoveries == 1 and not live.machine.link.shadowed:
            return  # nothing was in the way: bash gives a line up at some errors (`exit 1 2`), the report included
        outcome.notes.append(
            "A function or setting of this shell stood in the way of reporting the command's end; shellkit went "
            "round it. If you redefined printf, eval, command or builtin, rename your function."
        )

    # -- where it stands -------------------------------------------------------------------------------

    def _see_where(self, turn: Turn) -> None:
        live = self._live
        if live is None or turn.finished is None:
            return
        reported = turn.finished.workdir
        actual = live.workdir()
        if (reported, actual) != self._workdir_key:
            self._workdir_key = (reported, actual)
            self._workdir = _agreed(reported, actual, live.process.pid)

    def _confine(self, before: bytes | None, notes: list[str]) -> Procedure[None]:
        confinement = self._settings.confinement
        if confinement.mode == "off" or self._live is None:
            return
        actual = _real_directory(self._live)
        back = confinement.way_back(actual, before)
        if back is not None and not os.path.isdir(back):
            back = confinement.root
        if back is None or not os.path.isdir(back):
            return
        left = self._workdir
        self._pending_settle = (back, ())
        yield from self._settle()
        self._workdir_key = None
        if confinement.mode == "root" and before is not None:
            notes.append(
                f"The command left the working directory (for {os.fsdecode(left or b'elsewhere')}); "
                f"the shell is back in {os.fsdecode(back)}."
            )

    # -- the idle checkpoint ---------------------------------------------------------------------------

    def _take_idle_checkpoint(self) -> None:
        """Called in the attendant's thread."""
        if self._stop.for_good or not self._turnstile.try_enter():
            return
        try:
            drive_blocking(self._print_state())
        finally:
            self._turnstile.leave()

    def _print_state(self) -> Procedure[None]:
        live = self._live
        if live is None or self._finished:
            return
        live.quick = False  # it is not, and nobody waits; nor is the first command after a pause
        exchange = Checkpointing(live, live.machine.checkpoint(), self._settings.start_timeout)
        yield exchange
        if exchange.checkpoint is not None:
            self._checkpoint = exchange.checkpoint
            self._checkpoint_is_new = True
        if exchange.ended or exchange.checkpoint is None:
            return  # `_have_shell` notices the end, and tells the next caller
        if reason := live.machine.dialect.why_unusable(exchange.checkpoint):
            self._late_notes.append(f"The shell was replaced: {reason}. The new one has its state, without that.")
            live.process.kill_shell()
            live.wait_for_end()
            self._drop(live)

    # -- small parts -----------------------------------------------------------------------------------

    def _drop(self, live: LiveShell) -> None:
        with self._mutex:
            if self._live is live:
                self._live = None
        self._starter.release(live)


class Checkpointing(Exchange):
    """Ask an idle shell for its state."""

    def _answered(self) -> bool:
        return self.checkpoint is not None


def _errexit_fired(turn: Turn, text: bytes) -> bool:
    # No shell tells a trap whether `exit` or errexit ended it (bash's BASH_COMMAND is the wrapper's `eval`).
    by_exit = turn.exit_code in [int(number) for number in _EXIT.findall(text)]
    return bool(turn.exit_code) and not turn.cut_short and not by_exit


def _real_directory(live: LiveShell) -> bytes | None:
    path = live.workdir()
    return None if path is None or path.endswith(b" (deleted)") else path


def _agreed(reported: bytes, actual: bytes | None, pid: int) -> bytes:
    """Return the shell's own name of its directory if it is true, else the kernel's."""
    if actual is None or reported == actual:
        return reported
    try:
        if os.path.samestat(os.stat(reported), os.stat(b"/proc/%d/cwd" % pid)):
            return reported
    except OSError:
        pass
    return reported if actual.endswith(b" (deleted)") and reported else actual
