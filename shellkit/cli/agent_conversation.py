"""Hold the conversation of `shellkit agent`: one task, or a person's lines one after another. Called by `agent`.

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
from functools import partial
from typing import Any

from ..agent import CallRequested, HostedShell, Stopped, Usage
from ..errors import ShellkitError
from ..output.ansi import clean
from .agent_options import AgentOptions
from .agent_setup import OpenAgent, open_agent
from .agent_view import AgentView
from .approver import ConsoleApprover
from .ending import close_when_ended, ending_signals
from .lines import LineReader
from .options import FAILED, INTERRUPTED, USAGE
from .output import note, write

__all__ = ["Conversation"]

_log = logging.getLogger("shellkit")

_REMEDIES = {
    "turns": "the limit of turns is reached; go on with --resume, or raise --max-turns",
    "tokens": "the limit of tokens is reached; go on with --resume, or raise --max-tokens",
    "cancelled": "interrupted",
}


class Conversation:
    """A conversation with one agent.

    Args:
        options: what the command line says.
        lines: what a person types; None where there is a task or no terminal.
    """

    def __init__(self, options: AgentOptions, lines: LineReader | None) -> None:
        self._options = options
        self._lines = lines
        self._approver = ConsoleApprover(stdin_taken=options.task is None and lines is None)
        self._exit_code = 0
        self._ended_by: int | None = None

    def hold(self) -> int:
        """Go on until the end; return the exit code."""
        close_when_ended()
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
        while self._exit_code != USAGE and self._ended_by is None:
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
        with self._interrupts(opened):
            async with contextlib.aclosing(opened.agent.run(task)) as events:
                async for event in events:
                    # Not while a sub-agent's question stands: what a command prints could pass for a part of it.
                    async with self._approver.free:
                        view.show(event)
                    if isinstance(event, Usage) and opened.parent is not None:
                        await opened.parent.charge(event.input_tokens, event.output_tokens)
                    if isinstance(event, CallRequested):
                        _log.info("%s %s %s", event.name, event.commands, event.reader)
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
        if self._ended_by is not None:
            self._exit_code = 128 + self._ended_by

    @contextlib.contextmanager
    def _interrupts(self, opened: OpenAgent) -> Iterator[None]:
        """Let Ctrl-C end the command first and the turn second; what interrupts a sub-agent ends it."""

        def interrupt() -> None:
            if opened.parent is not None or not opened.agent.cancel():
                opened.agent.stop()

        def end(number: int) -> None:
            self._ended_by = number
            opened.agent.stop()

        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ending_signals())}
        for number in before:
            handler = interrupt if number == signal.SIGINT else partial(end, number)
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number, earlier in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, earlier)


def _console() -> Any:
    if not os.isatty(2):
        return None
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


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
