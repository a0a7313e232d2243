"""Commands of `run` and `repl` on their way through the tool's gate: policy, approval, audit.

It is the same gate that a model's commands go through (`ShellTool`); only what it says is for a person here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..audit import AuditLog
from ..errors import CommandDenied
from ..executors.blocking import BlockingExecutor
from ..executors.local import LocalExecutor
from ..protocol.command import encode_command
from ..result import ShellResult
from ..sessions.base import StreamName
from ..tool import Approver, ShellTool
from .approver import ConsoleApprover, NobodyAsked
from .options import GateOptions, SessionOptions, open_session
from .policy import read_policy

__all__ = ["GatedSession", "LiveLocalExecutor", "open_gated"]

RawListener = Callable[[StreamName, bytes], object]

#: How a refusal goes on for a model; a person knows what to do.
_TO_A_MODEL = " Do not send it again;"


class LiveLocalExecutor(LocalExecutor):
    """A local executor that the gate runs commands on, with their output passed on while they run.

    Attributes:
        listener: gets the output of the next command, or None.
    """

    listener: RawListener | None = None

    async def run(self, command: str, **_: Any) -> ShellResult:
        """Run one command; blocks the loop, which nothing else runs in.

        So Ctrl-C and a closed stdout end the command as they do without the gate. The time-out is `--timeout`, and
        not the most that a model may have.
        """
        if self.listener is None:
            return self.sync().run(command)
        return self.sync().run_into(command, self.listener)


class GatedSession:
    """What `run` and `repl` run commands on when there is a gate.

    Args:
        tool: the gate, made of `executor`.
        executor: what runs the commands.
        loop: the loop that the gate runs in.
    """

    def __init__(self, tool: ShellTool, executor: LiveLocalExecutor, loop: asyncio.AbstractEventLoop) -> None:
        self._tool = tool
        self.executor = executor
        self._loop = loop

    def run(self, command: str) -> ShellResult:
        """As `BlockingExecutor.run`, and raises what `run_into` raises."""
        return self._run(command, None)

    def run_into(self, command: str, listener: RawListener) -> ShellResult:
        """As `BlockingExecutor.run_into`.

        Raises:
            CommandDenied: the gate stayed shut; the message says why. Nothing ran.
            InvalidCommand: no shell can be given this text. Nobody was asked.
        """
        return self._run(command, listener)

    def _run(self, command: str, listener: RawListener | None) -> ShellResult:
        encode_command(command)
        self.executor.listener = listener
        output = self._loop.run_until_complete(self._tool.call({"command": command}))
        if output.result is None:
            raise CommandDenied(output.text.partition(_TO_A_MODEL)[0])
        return output.result


@contextlib.contextmanager
def open_gated(
    options: SessionOptions, gate: GateOptions, name: str, *, stdin_taken: bool
) -> Iterator[BlockingExecutor | GatedSession]:
    """Start a session, with a gate before it if `gate` wants one; the files of the gate are opened first.

    Args:
        options: what was said on the command line about the session.
        gate: and about the gate.
        name: what the audit log calls the tool.
        stdin_taken: the commands come from stdin; see `ConsoleApprover`.

    Raises:
        PolicyError: the policy file cannot be used.
        AuditError: the audit log cannot be written.
    """
    if not gate.wanted:
        with open_session(options) as session:
            yield session
        return
    approver: Approver = ConsoleApprover(stdin_taken=stdin_taken) if gate.approve else NobodyAsked()
    policy = None if gate.policy is None else read_policy(gate.policy)
    with contextlib.ExitStack() as stack:
        audit = None if gate.audit is None else stack.enter_context(AuditLog(gate.audit))
        executor = stack.enter_context(open_session(options, LiveLocalExecutor)).executor
        assert isinstance(executor, LiveLocalExecutor)
        tool = executor.as_tool(
            name=name,
            approval="policy" if policy is not None else "always" if gate.approve else "never",
            approver=approver,
            policy=policy,
            acknowledge_unsafe=True,  # with --audit alone: these are the user's own commands
            audit=audit,
        )
        # No asyncio.Runner: it turns Ctrl-C into a cancellation, which code that blocks does not see.
        loop = stack.enter_context(contextlib.closing(asyncio.new_event_loop()))
        yield GatedSession(tool, executor, loop)
