"""`shellkit agent`: a model at the keyboard, for one task or in conversation.

stdout gets the last message of the model and nothing else; a person at a terminal sees the rest on stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import click

from ..agent import CallRequested, HostedShell, Stopped, Usage
from ..errors import ShellkitError
from ..output.ansi import clean
from .agent_options import AgentOptions
from .agent_setup import OpenAgent, open_agent
from .agent_view import AgentView
from .approver import ConsoleApprover
from .lines import LineReader
from .options import FAILED, INTERRUPTED, USAGE, command_text, session_options, told
from .output import OutputClosed, note, write

__all__ = ["agent"]

_log = logging.getLogger("shellkit")

_REMEDIES = {
    "turns": "the limit of turns is reached; go on with --resume, or raise --max-turns",
    "tokens": "the limit of tokens is reached; go on with --resume, or raise --max-tokens",
    "cancelled": "interrupted",
}


@click.command()
@click.argument("task", required=False)
@click.option("--model", metavar="NAME", help="Which model. Default: $SHELLKIT_MODEL, then $OPENAI_MODEL.")
@click.option(
    "--base-url",
    metavar="URL",
    help="Where the API is: OpenAI's (the default, or $OPENAI_BASE_URL), Azure's "
    "https://RESOURCE.openai.azure.com/openai/v1/, or that of any compatible server.",
)
@click.option(
    "--api", type=click.Choice(["responses", "chat"]), help="Which API the server speaks. Default: responses."
)
@click.option(
    "--approve",
    type=click.Choice(["ask", "policy", "never"]),
    help="Ask before each command (the default), before those that the policy asks about, or never.",
)
@click.option(
    "--policy",
    metavar="FILE",
    help="Refuse what this policy denies. Default with --approve policy: the preset of commands that only read.",
)
@click.option("--audit", metavar="FILE", help="Record each command in this audit log.")
@session_options
@click.option("--resume", metavar="FILE", help="Keep the conversation in this file, and go on with what is in it.")
@click.option("--hosted", is_flag=True, help="Run commands in a container of OpenAI's; none runs here.")
@click.option("--download", metavar="DIR", help="With --hosted: save the files that the model made in this directory.")
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Stop after so many replies. Default: 50.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Stop when so many tokens are used.")
@click.option("--fresh", is_flag=True, help="A sub-agent: start as the parent did, not where its shell stands now.")
@click.option("--log", metavar="FILE", help="Log to this file.")
def agent(**chosen: Any) -> None:
    """Have a model do TASK in a shell of this machine; without TASK, talk to it.

    stdout gets the model's last message. At a terminal you see the commands and their output while they run. Ctrl-C
    ends the running command, and the model is told; pressed while none runs it ends the turn. `-` stands for all of
    stdin as the task.

    The key is taken from OPENAI_API_KEY (on Azure, from AZURE_OPENAI_API_KEY before that) and reaches neither the
    shell nor any log. Without --timeout a command may take ten minutes.

    The model can start sub-agents: `shellkit agent TASK` in its shell. They need no key, ask you through this agent,
    and may not do more than it may.

    The exit code is 0 when the model has come to an end, 1 when it stopped before that, 2 for a wrong call (no key, a
    wrong base URL, an unknown model), 130 after Ctrl-C.

    \b
    shellkit agent 'which of the tests here are slow?'
    shellkit agent --approve policy --workdir ~/project
    """
    with told():
        if chosen["task"] is not None:
            chosen["task"] = command_text(chosen["task"])
        options = AgentOptions(**chosen)
        lines = LineReader("agent-history") if options.task is None and sys.stdin.isatty() else None
        try:
            with contextlib.ExitStack() as stack:
                if lines is not None:
                    stack.enter_context(lines)
                code = _Conversation(options, lines).hold()
        except OutputClosed:
            code = FAILED
        except KeyboardInterrupt:
            code = INTERRUPTED
    sys.exit(code)


class _Conversation:
    """One task, or a person's lines one after another.

    Args:
        options: what the command line says.
        lines: what a person types; None where there is a task or no terminal.
    """

    def __init__(self, options: AgentOptions, lines: LineReader | None) -> None:
        self._options = options
        self._lines = lines
        self._approver = ConsoleApprover(stdin_taken=options.task is None and lines is None)
        self._exit_code = 0

    def hold(self) -> int:
        """Go on until the end; return the exit code."""
        with asyncio.Runner() as runner:
            opening = open_agent(self._options, self._approver)
            opened = runner.run(opening.__aenter__())
            view = AgentView(_console() if opened.parent is None else None)
            try:
                if self._options.task is not None:
                    runner.run(self._turn(opened, view, self._options.task))
                else:
                    self._talk(runner, opened, view)
                if self._options.hosted:
                    assert opened.hosted is not None
                    runner.run(_fetch(opened.hosted, self._options.download))
            finally:
                runner.run(opening.__aexit__(*sys.exc_info()))
            view.usage()
        return self._exit_code

    def _talk(self, runner: asyncio.Runner, opened: OpenAgent, view: AgentView) -> None:
        while self._exit_code != USAGE:
            # Nobody asks for approval while the person writes; but sub-agents in the background go on.
            runner.run(self._approver.free.acquire())
            try:
                with _goes_on(runner.get_loop()):
                    line = self._line()
            except KeyboardInterrupt:
                if self._lines is None:
                    raise
                write(2, "\n")
                continue
            finally:
                self._approver.free.release()
            if line is None:
                if self._lines is not None:
                    write(2, "\n")
                return
            if line.strip():
                runner.run(self._turn(opened, view, line))

    def _line(self) -> str | None:
        if self._lines is not None:
            return self._lines.read("agent> ")
        line = sys.stdin.buffer.readline().decode("utf-8", "replace")
        return line.removesuffix("\n") if line else None

    async def _turn(self, opened: OpenAgent, view: AgentView, task: str) -> None:
        stopped = Stopped(reason="error")
        with _interrupts(opened):
            async with contextlib.aclosing(opened.agent.run(task)) as events:
                async for event in events:
                    view.show(event)
                    if isinstance(event, Usage) and opened.parent is not None:
                        await opened.parent.charge(event.input_tokens, event.output_tokens)
                    if isinstance(event, CallRequested):
                        _log.info("runs %s", event.commands or event.arguments)
                    if isinstance(event, Stopped):
                        stopped = event
        _log.info("stopped: %s %s", stopped.reason, stopped.error)
        self._tell(stopped, view)

    def _tell(self, stopped: Stopped, view: AgentView) -> None:
        if stopped.text and not (view.shown == stopped.text and os.isatty(1)):
            text = clean(stopped.text) if os.isatty(1) else stopped.text
            write(1, text if text.endswith("\n") else f"{text}\n")
        if stopped.reason == "error" and stopped.misconfigured and self._lines is None:
            raise ShellkitError(stopped.error)
        if stopped.reason != "done":
            note(stopped.error or _REMEDIES[stopped.reason])
        self._exit_code = (
            USAGE if stopped.misconfigured else {"done": 0, "cancelled": INTERRUPTED}.get(stopped.reason, FAILED)
        )


def _console() -> Any:
    if not os.isatty(2):
        return None
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _interrupts(opened: OpenAgent) -> Iterator[None]:
    """Let Ctrl-C end the command first and the turn second; what interrupts a sub-agent ends it."""

    def interrupt() -> None:
        if opened.parent is not None or not opened.agent.cancel():
            opened.agent.stop()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, opened.agent.stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)


@contextlib.contextmanager
def _goes_on(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let the loop run in a thread meanwhile; readline works in the main thread only."""
    import threading

    thread = threading.Thread(target=loop.run_forever, name="shellkit-agent")
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _fetch(hosted: HostedShell, directory: str | None) -> None:
    """Say which files the model has made in the container, and save them if they are wanted."""
    for file in await hosted.files():
        if file.source != "assistant":
            continue
        if directory is None:
            note(f"left in the container, which ends now: {file.path} ({file.size} bytes); --download DIR saves it")
            continue
        path = os.path.join(directory, os.path.basename(file.path))
        data = await hosted.read(file)
        try:
            os.makedirs(directory, exist_ok=True)
            with open(path, "wb") as target:  # noqa: ASYNC230  (nothing else runs in the loop)
                target.write(data)
        except OSError as error:
            raise ShellkitError(f"cannot save {path} ({error.strerror}); name another directory") from error
