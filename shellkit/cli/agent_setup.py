"""Put an agent together: client or parent, shell, gate, broker, transcript. Called by `agent`.

It shows nothing, but for a log that cannot be written.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs

from ..agent import Agent, HostedShell, Transcript, default_instructions
from ..agent.broker import Broker
from ..agent.parent import Parent
from ..agent.presence import Presence
from ..agent.private import private_directory
from ..agent.terms import Invitation, Terms
from ..audit import AuditLog
from ..errors import ShellkitError
from ..executors.local import LocalExecutor
from ..policy import READ_ONLY
from ..policy.confinement import Confinement
from ..tool import Approver, Tool
from .agent_options import AgentOptions, first_terms, open_client
from .options import refusal
from .output import note
from .policy import policy_of

__all__ = ["OpenAgent", "open_agent"]

_log = logging.getLogger("shellkit")

_SUB_AGENTS = """\
A part of the task that can be done apart may be given to a sub-agent: run `shellkit agent 'TASK'` in the shell. It \
starts in the shell's directory with the exported variables, knows nothing of this conversation, and prints nothing \
but its last message; so say in TASK all that it needs and what it shall answer. Several run side by side: \
`shellkit agent 'A' > a.txt & shellkit agent 'B' > b.txt & wait`. It takes minutes: give the call a long time-out."""
_RESUMED = """\
The conversation was resumed: the shell is a new one, in which directory, variables and jobs of the earlier commands \
are gone, and so are the programs. Files are as they were left."""


@attrs.frozen
class OpenAgent:
    """An agent that is ready.

    Attributes:
        agent: the agent.
        terms: what it works under.
        parent: whose sub-agent it is, or None.
        hosted: its container, if it has one.
    """

    agent: Agent
    terms: Terms
    parent: Parent | None
    hosted: HostedShell | None


@asynccontextmanager
async def open_agent(options: AgentOptions, approver: Approver) -> AsyncIterator[OpenAgent]:
    """Start an agent, and end it with everything it started.

    Args:
        options: what the command line says.
        approver: who is asked about commands; a sub-agent asks its parent instead.

    Raises:
        ShellkitError: it cannot start; the message names the remedy. `AgentRefused`, `PolicyError`, `AuditError`,
            `TranscriptError` and `SpawnError` are among them.
    """
    invited = Invitation.from_environment(os.environ)
    async with AsyncExitStack() as stack:
        parent = None
        if invited is not None:
            if options.task is None:
                raise ShellkitError("a sub-agent needs a task: shellkit agent 'TASK'")
            parent = await stack.enter_async_context(Parent(invited, options.task, **options.for_parent()))
        terms = first_terms(options) if parent is None else parent.terms
        _log_to(terms.log, "agent" if parent is None else f"sub-agent {parent.number}")
        transcript = None if options.resume is None else stack.enter_context(Transcript(options.resume))
        client = await stack.enter_async_context(open_client(options)) if parent is None else parent.client
        tools = hosted = instructions = None
        if options.hosted:
            hosted = await stack.enter_async_context(HostedShell(client))
        else:
            host: Parent | Broker | None = parent
            if host is None:
                host = Broker(client, terms, approver, charge=lambda *tokens: agent.charge(*tokens))
                await stack.enter_async_context(host)
            executor = _executor(options, terms, host.invitation)
            await stack.enter_async_context(executor)
            await _be_found(executor, 0 if parent is None else parent.number, stack)
            audit = None if terms.audit is None else stack.enter_context(AuditLog(terms.audit))
            tools = _tools(executor, options, terms, approver if parent is None else parent, audit)
            instructions = await default_instructions(tools)
            if parent is None or parent.may_delegate:
                instructions += f"\n\n{_SUB_AGENTS}"
            if transcript is not None and transcript.items:
                instructions += f"\n\n{_RESUMED}"
        try:
            agent = Agent(
                client,
                terms.model,
                tools,
                api=terms.api,
                form="hosted" if options.hosted else "function",
                instructions=instructions,
                max_turns=terms.max_turns,
                max_tokens=terms.max_tokens,
                transcript=transcript,
                hosted=hosted,
            )
        except ValueError as error:  # what the options ask for does not go together
            raise refusal(error) from error
        yield OpenAgent(agent, terms, parent, hosted)


def _executor(options: AgentOptions, terms: Terms, invitation: Invitation) -> LocalExecutor:
    environment: dict[str, str | None] = {}
    if options.fresh:
        environment = {**dict.fromkeys(os.environ), **terms.environment}
    try:
        return LocalExecutor(
            mode=options.mode,  # type: ignore[arg-type]  # click.Choice has checked it
            shell=options.shell,
            workdir=terms.workdir,
            confinement=terms.confinement,
            env={**environment, **invitation.variables(os.environ)},
            timeout=options.timeout,
            spill_dir=_spill_directory(terms.workdir),
            record=options.record,
        )
    except ValueError as error:
        raise refusal(error) from error


def _spill_directory(workdir: str) -> str | None:
    """Return where output goes that is too large; not below the working directory, where commands would meet it."""
    here = Confinement("root", os.fsencode(workdir), os.path.realpath)
    for base in (tempfile.gettempdir(), "/var/tmp"):  # noqa: S108  (`private_directory` makes it safe)
        if workdir == "/" or not here.contains(os.fsencode(base)):
            with contextlib.suppress(ShellkitError):
                return os.path.join(private_directory(base), "output")
    return None


async def _be_found(executor: LocalExecutor, number: int, stack: AsyncExitStack) -> None:
    try:
        await stack.enter_async_context(Presence(executor.processes, number))
    except ShellkitError as error:
        _log.warning("`shellkit ps` will not list this agent: %s", error)


def _tools(
    executor: LocalExecutor, options: AgentOptions, terms: Terms, approver: Approver, audit: AuditLog | None
) -> tuple[Tool[Any, Any], ...]:
    policy = None if terms.policy is None else policy_of(terms.policy, options.policy or "the policy of the parent")
    return executor.as_tools(
        approval="always" if terms.approve == "ask" else terms.approve,
        approver=approver,
        typing=terms.typing,
        policy=READ_ONLY if policy is None and terms.approve == "policy" else policy,
        acknowledge_unsafe=True,  # --approve never says so
        audit=audit,
        on_timeout="background",
    )


class _LogFile(logging.FileHandler):
    """Says once that its disk is full, where logging would print a traceback for each line."""

    _told = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._told:
            self._told = True
            note(f"cannot log to {self.baseFilename} ({error.strerror}); make room, or name another with --log")


def _log_to(path: str | None, who: str) -> None:
    """Send all that is logged to a file, or nowhere: stdout and stderr are for the last message and for errors."""
    logging.captureWarnings(True)
    root = logging.getLogger()
    if path is None:
        root.addHandler(logging.NullHandler())  # else warnings go to stderr (logging.lastResort)
        return
    try:
        # For the user's eyes only: tasks and commands are in it.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        handler = _LogFile(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ShellkitError(f"cannot log to {path} ({error.strerror}); name another file with --log") from error
    handler.setFormatter(logging.Formatter(f"%(asctime)s {who} %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
