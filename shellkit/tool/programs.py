"""The tools for programs that run on while a model talks to them: start, type, list, stop, read.

They stand behind the gate of the conversation's `ShellTool`, as `Executor.as_tools` makes them. Starting is judged and
approved like a command. Typing is approved as `typing` says; whatever it says, Ctrl-C needs nobody, and what is typed
while the program asks for a password shows nowhere.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import attrs

from ..errors import CommandDenied, UnknownProcess
from ..output.page import OutputPage
from ..policy.approvals import displayed
from ..process.update import ProcessInfo, ProcessUpdate
from .base import OnOutput, ProgramRunner, ToolOutput, Wanted
from .gate import Gate
from .program_schema import (
    EXEC_COMMAND,
    LIST_PROCESSES,
    READ_OUTPUT,
    STOP_PROCESS,
    WRITE_STDIN,
    Launch,
    Look,
    Page,
    parse_launch,
    parse_look,
    parse_page,
)
from .schema import InvalidArguments
from .tool import ShellTool, Tool

__all__ = [
    "ExecCommand",
    "ListProcesses",
    "ReadOutput",
    "StopProcess",
    "TypingMode",
    "WriteStdin",
    "program_tools",
]

#: Whether typing into a program is approved: every time, once for each program, or never.
TypingMode = Literal["always", "first", "never"]

_CTRL_C = "\x03"
_NOBODY_ASKED = "needs no approval"
_UNSEEN = "the program asks for a secret"


class _ProgramTool(Tool):
    """What the tools for programs share.

    Args:
        name: what the model calls it.
        gate: the conversation's.
        runner: the executor.
    """

    def __init__(self, name: str, gate: Gate, runner: ProgramRunner) -> None:
        super().__init__(name, gate)
        self._runner = runner

    def _known(self, process_id: int) -> ProcessInfo:
        """Return the program, or tell the model which ones there are."""
        try:
            return self._runner.process(process_id)
        except UnknownProcess as error:
            raise InvalidArguments(f"Not run: {error}") from None

    def _told(self, update: ProcessUpdate, wanted: Look, notes: list[str]) -> ToolOutput:
        if wanted.shortened_from is not None:
            notes.append(
                f"yield_time_ms was reduced from {wanted.shortened_from * 1000:.0f} to the most, "
                f"{wanted.yield_time * 1000:.0f}."
            )
        if notes:
            update = attrs.evolve(update, notes=(*update.notes, *notes))
        return ToolOutput(text=update.for_model(max_tokens=wanted.max_tokens), update=update)


class ExecCommand(_ProgramTool):
    """Launch a program, and come back while it runs on."""

    @property
    def description(self) -> str:
        return (
            "Launch a program and get what it has printed so far. Unlike run_shell it may run on after the call: the "
            "answer then holds a session_id for write_stdin, and the program keeps running. For servers, watchers, "
            "REPLs, debuggers, password prompts and builds that take minutes.\n"
            "- The call returns when the program ends, when it waits for input, when `until` has come, or after "
            "yield_time_ms; returning stops nothing.\n"
            "- It starts in a new shell in the directory where run_shell stands; variables set there are not seen.\n"
            "- stdout and stderr come together. Only so many programs are kept, and the least recently used one goes: "
            "stop what you no longer need."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return EXEC_COMMAND.parameters()

    def _validate(self, arguments: object) -> Launch:
        return self.gate.placed(parse_launch(arguments, self._runner.workdir))

    async def _run(self, wanted: Launch, on_output: OnOutput | None) -> ProcessUpdate:
        return await self._runner.launch(
            wanted.command, tty=wanted.tty, workdir=wanted.workdir, yield_time=wanted.yield_time, until=wanted.until
        )

    def _render(self, result: ProcessUpdate, wanted: Launch, notes: list[str]) -> ToolOutput:
        return self._told(result, wanted, notes)


@attrs.frozen(kw_only=True)
class _Typing(Look):
    """Something to type, or nothing.

    Attributes:
        secret: what to type where `command` only says how long it is, since nobody may see it.
    """

    secret: str | None = attrs.field(default=None, repr=False)

    @property
    def judged(self) -> str:
        return self.command if self.secret is None else self.secret

    def edited(self, command: str) -> _Typing:
        if self.secret is None:
            return attrs.evolve(self, command=command)
        return attrs.evolve(self, command=_hidden(command, _UNSEEN), secret=command)


class WriteStdin(_ProgramTool):
    """Type to a program, or wait for news of it.

    Args:
        name: what the model calls it.
        gate: the conversation's.
        runner: the executor.
        typing: "always" has every text approved; "first" the first one for each program; "never" none.
    """

    def __init__(self, name: str, gate: Gate, runner: ProgramRunner, typing: TypingMode) -> None:
        if typing not in get_args(TypingMode):
            raise ValueError(f"typing must be 'always', 'first' or 'never', not {typing!r}")
        super().__init__(name, gate, runner)
        self._typing = typing
        self._approved: set[int] = set()

    @property
    def description(self) -> str:
        return (
            "Type to a program that exec_command has launched, or, without chars, wait for news of it; get what it has "
            "printed since the last call.\n"
            "- Do not poll in a loop: say in `until` what you wait for ('exit', or a line's pattern), with a "
            "yield_time_ms of up to 300000.\n"
            "- Ctrl-C (\\u0003) interrupts a program with and without a terminal; Ctrl-D (\\u0004) ends its input.\n"
            f"- {_TYPING[self._typing]}"
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return WRITE_STDIN.parameters()

    def _validate(self, arguments: object) -> _Typing:
        given = WRITE_STDIN.read(arguments)
        looking = parse_look(given)
        known = self._known(given.session_id)
        chars = given.chars or ""
        reader = f"process {known.process_id}: {displayed(known.command, 200)}"
        if not chars.strip(_CTRL_C):
            return _Typing(command=chars, reader=reader, granted=_NOBODY_ASKED, **looking)
        if not known.running:
            command = _hidden(chars, "the program has ended")  # which is told, and takes nothing
            return _Typing(command=command, reader=reader, granted=_NOBODY_ASKED, **looking)
        granted = self._typing == "never" or (self._typing == "first" and known.process_id in self._approved)
        return _Typing(
            command=_hidden(chars, _UNSEEN) if known.asks_secret else chars,
            secret=chars if known.asks_secret else None,
            hidden=known.asks_secret,
            reader=reader,
            granted=f"typing={self._typing}" if granted else "",
            **looking,
        )

    async def _run(self, wanted: _Typing, on_output: OnOutput | None) -> ProcessUpdate:
        if not wanted.granted:
            self._approved.add(wanted.process_id)
        if wanted.secret is not None and not self._known(wanted.process_id).asks_secret:
            # Approval may take minutes. At a prompt that has timed out the password would be shown, and run.
            raise CommandDenied(
                "the program does not ask for a secret any more, so nothing was typed; wait for its news, then decide"
            )
        chars = wanted.command if wanted.secret is None else wanted.secret
        return await self._runner.write(wanted.process_id, chars, yield_time=wanted.yield_time, until=wanted.until)

    def _render(self, result: ProcessUpdate, wanted: _Typing, notes: list[str]) -> ToolOutput:
        return self._told(result, wanted, notes)


_TYPING = {
    "always": "A person may have to approve what is typed; a refusal comes back as text with the reason.",
    "first": "A person may have to approve the first text that is typed into each program.",
    "never": "What is typed needs no approval.",
}


def _hidden(chars: str, why: str) -> str:
    return f"({len(chars)} characters, not shown: {why})"


class ListProcesses(_ProgramTool):
    """List the programs that were launched."""

    @property
    def description(self) -> str:
        return (
            "List the programs that exec_command has launched, with their session_id, whether they run, and how long."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return LIST_PROCESSES.parameters()

    def _validate(self, arguments: object) -> Wanted:
        LIST_PROCESSES.read(arguments)
        return Wanted(command="", reader="the list of processes", granted=_NOBODY_ASKED)

    async def _run(self, wanted: Wanted, on_output: OnOutput | None) -> tuple[ProcessInfo, ...]:
        return self._runner.processes()

    def _render(self, result: tuple[ProcessInfo, ...], wanted: Wanted, notes: list[str]) -> ToolOutput:
        lines = [known.for_model() for known in result] or ["No program was launched."]
        return ToolOutput(text="\n".join([*lines, *(f"[note: {note}]" for note in notes)]))


class StopProcess(_ProgramTool):
    """End a program and everything that it started."""

    @property
    def description(self) -> str:
        return (
            "End a program that exec_command has launched, and everything that it started; get the rest of its output."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return STOP_PROCESS.parameters()

    def _validate(self, arguments: object) -> Look:
        known = self._known(STOP_PROCESS.read(arguments).session_id)
        reader = f"process {known.process_id}: {displayed(known.command, 200)}"
        return Look(command="", process_id=known.process_id, reader=reader, granted=_NOBODY_ASKED, yield_time=0.0)

    async def _run(self, wanted: Look, on_output: OnOutput | None) -> ProcessUpdate:
        return await self._runner.stop(wanted.process_id)

    def _render(self, result: ProcessUpdate, wanted: Look, notes: list[str]) -> ToolOutput:
        return self._told(result, wanted, notes)


class ReadOutput(_ProgramTool):
    """Read in an output that was too large to be returned whole."""

    @property
    def description(self) -> str:
        return (
            "Read a part of an output that was too large to be returned whole, by the ref that the answer has named: "
            "from a byte, some lines, the lines that match a pattern, or the end. Give one of offset, first_line, "
            "pattern and tail."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return READ_OUTPUT.parameters()

    def _validate(self, arguments: object) -> Page:
        return parse_page(arguments, _NOBODY_ASKED)

    async def _run(self, wanted: Page, on_output: OnOutput | None) -> OutputPage:
        return await self._runner.read_output(wanted.ref, **wanted.part)

    def _render(self, result: OutputPage, wanted: Page, notes: list[str]) -> ToolOutput:
        return ToolOutput(text="\n".join([result.for_model(), *(f"[note: {note}]" for note in notes)]))


def program_tools(shell: ShellTool, runner: ProgramRunner, typing: TypingMode) -> tuple[Tool, ...]:
    """Return the tools that stand behind the gate of `shell`, by the names that models know.

    Args:
        shell: the conversation's.
        runner: the executor.
        typing: see `WriteStdin`.
    """
    gate = shell.gate
    return (
        ExecCommand("exec_command", gate, runner),
        WriteStdin("write_stdin", gate, runner, typing),
        ListProcesses("list_processes", gate, runner),
        StopProcess("stop_process", gate, runner),
        ReadOutput("read_output", gate, runner),
    )
