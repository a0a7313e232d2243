"""`shellkit demo`: an agent at work, without account or network: what it survives, and what a person sees of it.

Only the model is not real: it follows a script. The conversation goes over HTTP on loopback, by the `openai` client and
the agent that `shellkit agent` uses; every command is run. The tour is data (`STEPS`): what the user says, what the
model wants, what was promised and how to tell that it was kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import click

from ..executors.local import LocalExecutor
from ..policy import ApprovalRequest, Decision, loads
from ..policy.environ import filter_environment
from ..tool import ToolOutput
from .ending import close_when_ended
from .options import FAILED, INTERRUPTED, told

if TYPE_CHECKING:
    from rich.console import Console

    from ..agent import Agent, Event

__all__ = ["STEPS", "Step", "demo"]

#: Lines of an output that are shown.
_SHOWN = 6
_MODEL, _SUB_MODEL = "scripted-model", "scripted-sub-model"
#: Everything runs but `rm`, about which the demo's person is asked.
_POLICY = """\
policy.default = "allow"
policy.writes = true
[[rule]]
prefix = ["rm"]
decision = "ask"
reason = "it deletes"
"""
_KEEP = "the build is still needed"
_COUNT = "how many lines has poem.txt?"


@attrs.frozen
class Step:
    """One thing to show.

    Attributes:
        title: what it is about.
        task: what the user says.
        commands: what the model has run, one after the other.
        says: the model's last message.
        kept: whether what the model was told of the commands is what was promised.
        promise: a sentence about what happened.
        timeout: seconds for each command.
        interrupt: whether the command is interrupted once it has printed something, as by Ctrl-C.
    """

    title: str
    task: str
    commands: tuple[str, ...]
    says: str
    kept: Callable[[Sequence[ToolOutput]], bool]
    promise: str
    timeout: float | None = None
    interrupt: bool = False


STEPS = (
    Step(
        "An approval",
        "clean up",
        ("mkdir build; echo draft > notes.txt; ls", "rm -r build", "rm notes.txt", "ls"),
        "notes.txt is gone; the build stays.",
        lambda o: o[1].result is None and _KEEP in o[1].text and _stdout(o[3]) == "build\n",
        "The policy asks about rm; the model was told why one was refused, and did the other.",
    ),
    Step(
        "State is kept from command to command",
        "greet me from /tmp",
        ("export GREETING=hello; cd /tmp", 'echo "$GREETING from $PWD"'),
        "hello from /tmp",
        lambda o: _stdout(o[1]) == "hello from /tmp\n",
        "The variable and the directory of the first command are there in the second.",
    ),
    Step(
        "A failure, and the way out of it",
        "print a line",
        ('echo "unbalanced', 'echo "balanced"'),
        "A quote was missing.",
        lambda o: o[0].result is not None and not o[0].result.ok and _stdout(o[1]) == "balanced\n",
        "The shell's own syntax error went back to the model, which mended it; nothing waited for the missing quote.",
    ),
    Step(
        "exit ends the shell, not the session",
        "leave with exit code 3",
        ("exit 3", 'echo "$GREETING from $PWD"'),
        "The shell is gone, and I am still here.",
        lambda o: (
            o[0].result is not None
            and (o[0].result.exit_code, o[0].result.shell_state) == (3, "restored")
            and _stdout(o[1]) == "hello from /tmp\n"
        ),
        "The exit code is reported, and a new shell has the state of the old one.",
    ),
    Step(
        "A time-out of one second",
        "wait a minute",
        ("echo before; sleep 60; echo never",),
        "It takes too long.",
        lambda o: o[0].result is not None and o[0].result.timed_out and _stdout(o[0]) == "before\n",
        "What it had printed is kept, and the rest of the command did not run.",
        timeout=1.0,
    ),
    Step(
        "A command that is interrupted",
        "wait a minute once more",
        ("echo working; sleep 60; echo never", 'echo "$GREETING from $PWD"'),
        "You stopped it.",
        lambda o: o[0].result is None and "interrupted" in o[0].text and _stdout(o[1]) == "hello from /tmp\n",
        "Ctrl-C ends the command and what it started; the model is told, and goes on in the same session.",
        interrupt=True,
    ),
    Step(
        "Far too much output",
        "count to three million",
        ("seq 1 3000000",),
        "Three million.",
        lambda o: o[0].result is not None and o[0].result.truncated and _stdout(o[0]).endswith("\n3000000\n"),
        "Head and tail are kept and the bytes between them counted; memory stays bounded, the command is not slowed.",
    ),
    Step(
        "A sub-agent",
        "have another agent count the lines",
        (
            "cd - > /dev/null; printf 'one\\ntwo\\nthree\\n' > poem.txt",
            f"shellkit agent --model {_SUB_MODEL} '{_COUNT}'",
        ),
        "It says three.",
        lambda o: _stdout(o[1]) == "poem.txt has 3 lines.\n",
        "Another process with its own conversation, in the same directory, without a key; its last message came back.",
    ),
)


@click.command()
@click.option(
    "--shell", metavar="SHELL", help="Name or path of the shell. Default: $SHELLKIT_SHELL, then bash, then sh."
)
def demo(shell: str | None) -> None:
    """Show in a few seconds an agent at work, on real commands.

    Needs no account and no network: the model follows a script. The exit code is 0 if everything went as promised,
    else 1.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    close_when_ended()  # there is a directory to remove
    try:
        with told():
            kept = asyncio.run(_tour(console, shell))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    console.print(f"\ndemo: {kept} of {len(STEPS)} as promised", style="bold")
    sys.exit(0 if kept == len(STEPS) else FAILED)


async def _tour(console: Console, shell: str | None) -> int:
    async with contextlib.AsyncExitStack() as stack:
        person = _Person(console)
        executor, agent = await _agent(stack, shell, person)
        console.print(
            f"A scripted model at one session of {executor.shell.name} ({executor.shell.program}).", style="dim"
        )
        kept = 0
        for number, step in enumerate(STEPS, start=1):
            console.print(f"\n{number}. {step.title}", style="bold")
            outputs = await _Show(console, agent, step).play()
            as_promised = len(outputs) == len(step.commands) and step.kept(outputs)
            kept += as_promised
            style = "green" if as_promised else "bold red"
            console.print(f"   {'as promised' if as_promised else 'NOT AS PROMISED'}: ", end="", style=style)
            console.print(step.promise)
    return kept


async def _agent(stack: contextlib.AsyncExitStack, shell: str | None, person: _Person) -> tuple[LocalExecutor, Agent]:
    """Start the model, the broker for the sub-agent, the shell and the agent, as `agent_setup` does."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    from ..agent import Agent
    from ..agent.broker import Broker
    from ..agent.terms import Terms
    from ..testing.loopback import serve
    from ..testing.scripted_model import ScriptedModel

    workdir = stack.enter_context(tempfile.TemporaryDirectory(prefix="shellkit-demo-"))
    base_url = stack.enter_context(serve(ScriptedModel(_script())))
    # Without the proxies of the environment: the server is in this process.
    http = DefaultAsyncHttpxClient(trust_env=False)
    client = await stack.enter_async_context(AsyncOpenAI(base_url=base_url, api_key="none", http_client=http))
    terms = Terms(
        model=_MODEL,
        approve="policy",
        policy=_POLICY,
        workdir=workdir,
        environment=filter_environment(os.environ).variables,
    )
    broker = await stack.enter_async_context(Broker(client, terms, person))
    executor = LocalExecutor(
        shell=shell, workdir=workdir, confinement="off", env=broker.invitation.variables(os.environ)
    )
    await stack.enter_async_context(executor)
    tool = executor.as_tool(approval="policy", approver=person, policy=loads(_POLICY))
    return executor, Agent(client, terms.model, tool)


def _script() -> Callable[[dict[str, Any]], Any]:
    """Return what the model answers: to the agent the steps in order, to its sub-agent a count."""
    from ..testing.scripted_model import function_call, message

    def call(command: str, timeout: float | None = None) -> list[Any]:
        return [function_call("run_shell", {"command": command, "timeout": timeout, "workdir": None})]

    def replies() -> Iterator[list[Any]]:
        for step in STEPS:
            for command in step.commands:
                yield call(command, step.timeout)
            yield [message(step.says)]

    main = replies()
    sub = iter([call("wc -l < poem.txt"), [message("poem.txt has 3 lines.")]])
    return lambda body: next(sub if body["model"] == _SUB_MODEL else main)


class _Person:
    """An approver: the person that the demo plays. It shows what is asked and what it answers."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Answer."""
        refuse = "build" in request.command
        answer = f"no, {_KEEP}" if refuse else "yes"
        self._console.print(f"     may this run? {request.reason}. The person says: {answer}", style="yellow")
        return Decision(approved=not refuse, reason=_KEEP if refuse else "")


class _Show:
    """Plays one step and shows its events.

    Args:
        console: where.
        agent: the agent.
        step: the step.
    """

    def __init__(self, console: Console, agent: Agent, step: Step) -> None:
        self._console = console
        self._agent = agent
        self._step = step
        self._outputs: list[ToolOutput] = []

    async def play(self) -> list[ToolOutput]:
        """Return what the model was told of each command."""
        self._console.print(f"   user: {self._step.task}")
        async with contextlib.aclosing(self._agent.run(self._step.task)) as events:
            async for event in events:
                self._show(event)
        return self._outputs

    def _show(self, event: Event) -> None:
        from ..agent import CallFinished, CallRequested, Message, OutputChunk, Stopped

        match event:
            case CallRequested(commands=commands):
                for command in commands:
                    self._console.print(f"   $ {command}", style="cyan")
            case OutputChunk() if self._step.interrupt and not self._outputs:
                self._agent.cancel()
            case CallFinished(output=output):
                self._outputs.append(output)
                for line in _excerpt(output):
                    self._console.print(f"     {line}")
                self._console.print(f"     [{_ending(output)}]", style="dim")
            case Message(text=text):
                self._console.print(f"   model: {text}")
            case Stopped(reason="error", error=error):
                self._console.print(f"   {error}", style="bold red")


def _stdout(output: ToolOutput) -> str:
    return "" if output.result is None else output.result.stdout


def _ending(output: ToolOutput) -> str:
    result = output.result
    if result is None:
        return "not run" if output.text.startswith("Not run") else "interrupted"
    ended = f"exit code {result.exit_code}, {result.duration * 1000:.1f} ms"
    if result.timed_out:
        ended += ", time-out"
    if result.truncated:
        ended += f", {result.stdout_omitted} bytes left out"
    if result.shell_state != "alive":
        ended += f", shell {result.shell_state}"
    return ended


def _excerpt(output: ToolOutput) -> list[str]:
    result = output.result
    lines = (output.text if result is None else result.stdout + result.stderr).splitlines()
    if len(lines) <= _SHOWN:
        return [line[:200] for line in lines]
    middle = [line for line in lines if line.startswith("[... ")][:1]
    half = _SHOWN // 2
    return [*lines[:half], *(middle or ["..."]), *lines[-half:]]
