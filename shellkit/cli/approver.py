"""The approvers of the command line: a person at the terminal, or nobody.

The gate calls them with a request and gets a decision. What a decision means, and what is remembered of it, is the
gate's part. They never run anything, and they never read an answer from anything but a terminal.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..policy.approvals import ApprovalRequest, Decision, displayed
from .terminal import Terminal, Unanswered

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ConsoleApprover", "NobodyAsked"]

_SHOWN = 500  # characters of what is shown beside the command


class NobodyAsked:
    """Refuses what needs approval, and says how to be asked."""

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Refuse."""
        return Decision(approved=False, reason=f"{request.reason.rstrip('.')}; with --approve you are asked")


class ConsoleApprover:
    """Asks the person at the terminal: yes, no with a reason, always this prefix, or edit.

    Where there is no terminal it refuses; end-of-file and Ctrl-C at the question refuse, too. The event loop goes on
    while the person thinks, and stands still while they edit.

    Args:
        stdin_taken: stdin is where the commands come from, so its not being a terminal says nothing: ask at the
            controlling terminal. Else who redirects stdin says that nobody is there.

    Attributes:
        free: held while a question stands on the terminal; whoever else uses that holds it meanwhile.
    """

    def __init__(self, *, stdin_taken: bool = False) -> None:
        self._stdin_taken = stdin_taken
        self.free = asyncio.Lock()

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Ask, once the questions of others are answered."""
        async with self.free:
            return await self._ask_at_terminal(request)

    async def _ask_at_terminal(self, request: ApprovalRequest) -> Decision:
        try:
            terminal = Terminal.open(controlling=self._stdin_taken)
        except OSError:
            where = "this process has none" if self._stdin_taken else "stdin is none"
            return Decision(
                approved=False,
                reason=f"it needs approval, and there is no terminal to ask at ({where}); run it at a terminal, or "
                "let a policy decide: --policy FILE",
            )
        with terminal:
            try:
                terminal.forget_typed()  # what was typed before the question is no answer to it
                _show(request, terminal.console())
                return await _ask(request, terminal)
            except Unanswered as why:
                return Decision(approved=False, reason=str(why))
            except OSError as error:
                return Decision(approved=False, reason=f"the terminal is gone ({error.strerror})")


def _show(request: ApprovalRequest, console: Console) -> None:
    from rich.padding import Padding
    from rich.syntax import Syntax

    lexer, question = ("text", "May this be typed?") if request.typed else ("bash", "May this run?")
    code = Syntax(request.display, lexer, theme="ansi_dark", background_color="default", word_wrap=True)
    isolation = "no isolation" if request.isolation == "none" else f"isolation: {request.isolation}"
    # A sub-agent's request comes from outside: nothing in it may draw on the terminal.
    shell = displayed(f"{request.shell}, {isolation}", _SHOWN)
    console.print(f"\n{question}", style="bold")
    console.print(Padding(code, (0, 0, 0, 4)))
    where = f"into  {shell}" if request.typed else f"in    {displayed(request.workdir or '?', _SHOWN)} ({shell})"
    console.print(f"  {where}", soft_wrap=True)
    console.print(f"  why   {displayed(request.reason, 2 * _SHOWN)}", soft_wrap=True)


async def _ask(request: ApprovalRequest, terminal: Terminal) -> Decision:
    prefix = request.prefix
    words = "" if prefix is None else displayed(" ".join(prefix), _SHOWN)
    always = "" if prefix is None else f", [a]lways `{words}` here"
    # A line from the terminal says neither that a text has no line end nor what key is no character.
    instead = ", [t]ype it yourself" if request.secret else "" if request.typed else ", [e]dit"
    while True:
        answer = (await terminal.line(f"[y]es, [n]o{always}{instead}? ")).strip().lower()
        if answer in ("y", "yes"):
            return Decision(approved=True, reason="yes, at the terminal")
        if answer in ("n", "no"):
            return Decision(approved=False, reason=await _reason(terminal))
        if answer in ("a", "always") and prefix is not None:
            return Decision(approved=True, reason=f"always `{words}`, at the terminal", scope="prefix", prefix=prefix)
        if answer in ("t", "type") and request.secret:
            typed = await terminal.line("not shown while you type: ", echo=False)
            return Decision(approved=True, reason="typed at the terminal", command=f"{typed}\n")
        if answer in ("e", "edit") and not request.typed:
            command = await _edited(request, terminal)
            if command == request.command:
                return Decision(approved=True, reason="yes, at the terminal")
            if command.strip():
                return Decision(approved=True, reason="edited at the terminal", command=command)
            terminal.say("There is nothing left to run.\n")
        else:
            terminal.say("Answer with one of the letters in brackets.\n")


async def _reason(terminal: Terminal) -> str:
    try:
        return (await terminal.line("reason: ")).strip()
    except Unanswered:  # it is refused in any case
        return ""


async def _edited(request: ApprovalRequest, terminal: Terminal) -> str:
    # A line editor does not show what `display` had to escape or to count; then the command is typed anew.
    if request.display == request.command and terminal.edits:
        return terminal.edit(request.command)
    return await terminal.line("the command to run instead: ")
