"""`shellkit demo`: a tour of what a session survives, on real commands, without account or network.

The tour is data: steps, each with its promise and how to tell that it was kept.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs
import click

from ..executors.base import Executor
from ..executors.local import LocalExecutor
from ..result import ShellResult
from .options import FAILED, INTERRUPTED, told

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["STEPS", "Step", "demo"]

#: Lines of a result that are shown.
_SHOWN = 6
#: What a command that is going to be cancelled prints when it is under way.
_UNDER_WAY = "working"


@attrs.frozen
class Step:
    """One thing to show.

    Attributes:
        title: what it is about.
        commands: run one after another in the tour's session.
        kept: whether the results are what was promised.
        promise: a sentence about what happened.
        timeout: seconds for each command.
        cancel: whether the first command is cancelled once it has printed something.
    """

    title: str
    commands: tuple[str, ...]
    kept: Callable[[Sequence[ShellResult]], bool]
    promise: str
    timeout: float = 20.0
    cancel: bool = False


STEPS = (
    Step(
        "State is kept from command to command",
        ("export GREETING=hello; cd /tmp", 'echo "$GREETING from $PWD"'),
        lambda r: r[1].stdout == "hello from /tmp\n",
        "The variable and the directory of the first command are there in the second.",
    ),
    Step(
        "A stray quote",
        ('echo "unbalanced', "echo still here"),
        lambda r: r[0].exit_code not in (0, None) and bool(r[0].stderr) and r[1].stdout == "still here\n",
        "The shell's own syntax error is the result; nothing waits for the missing quote.",
    ),
    Step(
        "A command that reads stdin",
        ("cat; echo done",),
        lambda r: r[0].stdout == "done\n",
        "Stdin is empty unless input is given, so nothing can wait for a person who is not there.",
    ),
    Step(
        "exit ends the shell, not the session",
        ("exit 3", 'echo "$GREETING from $PWD"'),
        lambda r: r[0].exit_code == 3 and r[0].shell_state == "restored" and r[1].stdout == "hello from /tmp\n",
        "The exit code is reported, and a new shell has the state of the old one.",
    ),
    Step(
        "A time-out of one second",
        ("echo before; sleep 60; echo never", 'echo "$GREETING from $PWD"'),
        lambda r: r[0].timed_out and r[0].stdout == "before\n" and r[1].stdout == "hello from /tmp\n",
        "What it had printed is kept, the rest of the command did not run, and the state is still there.",
        timeout=1.0,
    ),
    Step(
        "Far too much output",
        ("seq 1 3000000",),
        lambda r: r[0].truncated and r[0].stdout.startswith("1\n2\n") and r[0].stdout.endswith("\n3000000\n"),
        "Head and tail are kept and the bytes between them counted; memory stays bounded, the command is not slowed.",
    ),
    Step(
        "A background job",
        ("sleep 60 & echo started", "echo next"),
        lambda r: (
            bool(r[0].background) and r[0].background[0].running and r[0].duration < 5 and r[1].stdout == "next\n"
        ),
        "The call returned at once with a handle on the job, which runs on while other commands do.",
    ),
    Step(
        "A cancelled command",
        (f"echo {_UNDER_WAY}; sleep 60; echo never", "echo ready"),
        lambda r: r[0].exit_code is None and r[1].stdout == "ready\n" and r[1].duration < 5,
        "The caller's task was cancelled: the command and what it started are gone, and the session is free.",
        cancel=True,
    ),
)


@click.command()
@click.option(
    "--shell", metavar="SHELL", help="Name or path of the shell. Default: $SHELLKIT_SHELL, then bash, then sh."
)
def demo(shell: str | None) -> None:
    """Show in a few seconds what a session survives, on real commands.

    Needs no account and no network. The exit code is 0 if everything went as promised, else 1.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    try:
        with told():
            kept = asyncio.run(_tour(console, shell))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stdout = None  # else Python flushes it once more, and complains
        sys.exit(FAILED)
    console.print(f"\ndemo: {kept} of {len(STEPS)} as promised", style="bold")
    sys.exit(0 if kept == len(STEPS) else FAILED)


async def _tour(console: Console, shell: str | None) -> int:
    executor = LocalExecutor(shell=shell)
    kept = 0
    async with executor:
        console.print(f"One session of {executor.shell.name} ({executor.shell.program}).", style="dim")
        for number, step in enumerate(STEPS, start=1):
            console.print(f"\n{number}. {step.title}", style="bold")
            results = [
                await _run(console, executor, command, step, cancel=step.cancel and not position)
                for position, command in enumerate(step.commands)
            ]
            as_promised = step.kept(results)
            kept += as_promised
            console.print(
                f"   {'as promised' if as_promised else 'NOT AS PROMISED'}: ", end="", style=_style(as_promised)
            )
            console.print(step.promise)
            for result in results:
                for job in result.background:
                    await job.stop()
    return kept


def _style(as_promised: bool) -> str:
    return "green" if as_promised else "bold red"


async def _run(console: Console, executor: Executor, command: str, step: Step, *, cancel: bool) -> ShellResult:
    console.print(f"   $ {command}", style="cyan")
    if cancel:
        result = await _cancelled(executor, command, step.timeout)
        ended = "cancelled"
    else:
        result = await executor.run(command, timeout=step.timeout)
        ended = f"exit code {result.exit_code}, {result.duration * 1000:.1f} ms"
    for line in _excerpt(result):
        console.print(f"     {line}")
    if result.truncated:
        ended += f", {result.stdout_omitted} bytes left out"
    if result.shell_state != "alive":
        ended += f", shell {result.shell_state}"
    ended += "".join(f", in the background: {', '.join(map(str, job.pids))}" for job in result.background)
    console.print(f"     [{ended}]", style="dim")
    return result


async def _cancelled(executor: Executor, command: str, timeout: float) -> ShellResult:
    """Cancel a command once it has printed something; return what it had printed, as a result without exit code."""
    heard: list[str] = []
    under_way = asyncio.Event()

    def listen(_: str, text: str) -> None:
        heard.append(text)
        under_way.set()

    task = asyncio.ensure_future(executor.run(command, timeout=timeout, on_output=listen))
    waiting = asyncio.ensure_future(under_way.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    task.cancel()
    waiting.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return ShellResult(command=command, stdout="".join(heard))


def _excerpt(result: ShellResult) -> list[str]:
    lines = (result.stdout + result.stderr).splitlines()
    if len(lines) <= _SHOWN:
        return [line[:200] for line in lines]
    middle = [line for line in lines if line.startswith("[... ")][:1]
    half = _SHOWN // 2
    return [*lines[:half], *(middle or ["..."]), *lines[-half:]]
