"""What both kinds of session do before a command: its endpoints and files, and a new shell's startup commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from ..errors import SpawnError
from ..process.pipes import PipeSource
from ..process.room import room_for
from ..process.tree import Containment
from ..protocol.base import Call
from .base import RunCall, SessionSettings, StreamName
from .drive import Procedure
from .exchange import Exchange
from .live import LiveShell
from .outcome import Outcome
from .turn import Turn

if TYPE_CHECKING:
    from .recording import Recorder

__all__ = ["prepare_call", "run_startup_commands"]


def prepare_call(
    live: LiveShell, settings: SessionSettings, pipes: PipeSource, call: RunCall, exit_code: int, files: list[int]
) -> Call:
    """Give a command its pipes, its input and, if it is long, a file.

    Args:
        live: the shell that will run it.
        settings: where its output is kept if it is too large, and what records it.
        pipes: where files come from.
        call: the command.
        exit_code: what `$?` shall be when it starts.
        files: gets the descriptors of what was made; the caller closes them when the command has ended.
    """
    stdout, stderr = live.open_captures()
    recorder = settings.recorder
    if recorder is not None:
        recorder.command(call.command)
    stdout.listeners, stderr.listeners = _listeners(call, "stdout", recorder), _listeners(call, "stderr", recorder)
    if settings.spills is not None:
        stdout.spill, stderr.spill = settings.spills.file(), settings.spills.file()
    endpoints = live.endpoints(merge_stderr=call.merge_stderr)
    if call.input:
        endpoints = attrs.evolve(endpoints, stdin=_file(pipes, call.input, files))
    path = _file(pipes, call.text, files) if len(call.text) > live.machine.dialect.longest_inline else None
    return Call(call.text, endpoints, path, exit_code)


def _listeners(
    call: RunCall, stream: StreamName, recorder: Recorder | None
) -> tuple[Callable[[memoryview], object], ...]:
    caller = () if call.listener is None else (partial(call.listener, stream),)
    return caller if recorder is None else (*caller, recorder.stream())


def _file(pipes: PipeSource, content: bytes, files: list[int]) -> bytes:
    with room_for("a command's input or text cannot be put into a file"):
        path, fd = pipes.file(content)
    files.append(fd)
    return path


def run_startup_commands(
    live: LiveShell, settings: SessionSettings, containment: Containment, notes: list[str]
) -> Procedure[None]:
    """Run what every new shell runs first; one that fails is noted.

    Raises:
        SpawnError: one of them ended the shell, or did not end.
    """
    for command in settings.startup_commands:
        call = RunCall(command=command, text=command.encode(), timeout=settings.start_timeout)
        stdout, stderr = live.open_captures()
        containment.command_starts()
        line = live.machine.begin(Call(call.text, live.endpoints(merge_stderr=False)))
        turn = Turn(live, line, call.timeout, settings.grace)
        yield turn
        outcome = Outcome(call)
        outcome.take(turn)
        said = (stderr.buffer.text() or stdout.buffer.text()).strip()[-300:]
        live.discard_output()
        if turn.ended:
            how = f"ended the shell (exit code {outcome.exit_code})"
            if turn.expired:
                how = f"did not end within start_timeout ({settings.start_timeout:g} s)"
            raise SpawnError(f"a startup command {how}: {command}{f'; it said: {said}' if said else ''}")
        if not turn.recoveries and live.machine.dialect.may_shadow(call.text):
            yield Exchange(live, live.machine.watch(call.text))
        if outcome.exit_code:
            notes.append(f"Startup command failed with exit code {outcome.exit_code}: {command!r}. {said}".rstrip())
