"""Ask a shell what it is, with one command, and remember the answer.

Called when a tool is described to a model. A probe that goes wrong says nothing instead of raising: what could not be
found out is None, and no tool is kept from a model because some program hangs.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from typing import Protocol

import attrs

from ..policy.confinement import ConfinementMode
from ..resolver import Family
from ..result import ShellResult
from ..sessions.base import Mode
from ..sessions.turnstile import Turnstile
from .base import ShellEnvironment
from .scripts import DEFAULT_TOOLS, check_tools, probe_script, read_answer

__all__ = ["CommandRunner", "EnvironmentProbe", "probe"]

_log = logging.getLogger("shellkit")


class CommandRunner(Protocol):
    """What a probe needs of an executor."""

    async def run(self, command: str, *, timeout: float | None = ...) -> ShellResult:
        """Run one command from start to end."""


async def probe(
    executor: CommandRunner,
    family: Family,
    *,
    mode: Mode = "persistent",
    confinement: ConfinementMode = "off",
    tools: Iterable[str] = DEFAULT_TOOLS,
    timeout: float = 5.0,
) -> ShellEnvironment:
    """Find out, with one command, what a shell and its machine are.

    The session is left as it was: `$?`, working directory, variables, functions, options, jobs. (PowerShell's `$?`
    and cmd's errorlevel are lost.) Each tool has three fifths of `timeout` to tell its version, all at once.

    Args:
        executor: what runs commands in that shell.
        family: the shell's dialect, `executor.shell.family`.
        mode: whether the shell lives across commands.
        confinement: what becomes of a command that leaves the working directory.
        tools: names of programs to look for; repetitions but for case are dropped.
        timeout: seconds for the whole probe, queueing excluded.

    Returns:
        What was found. Whatever failed is None; if the shell did not answer at all, `answered` is false.

    Raises:
        TypeError, ValueError: a name or `timeout` is wrong. Nothing ran.
    """
    names, limit = check_tools(tools), _check_timeout(timeout) * 0.6
    facts = ShellEnvironment(family=family, mode=mode, confinement=confinement, answered=False)
    try:
        result = await executor.run(probe_script(family, names, limit), timeout=timeout)
    except Exception as error:  # noqa: BLE001  (whatever it is, a tool without a description helps nobody)
        _log.warning("the shell could not be asked what it is: %s: %s", type(error).__name__, error)
        return attrs.evolve(facts, tools=dict.fromkeys(names))
    await _stop_leftovers(result)
    if result.timed_out:
        _log.warning("asking the shell what it is took more than %g s; what it said until then is used", timeout)
    workdir = None if result.workdir is None else result.workdir.encode("utf-8", "replace").decode("utf-8")
    return attrs.evolve(facts, workdir=workdir, **read_answer(result.stdout, names))


class EnvironmentProbe:
    """Asks once and remembers; from any event loop or thread.

    Callers that come while the shell is being asked share the answer. An answer that did not come, or a call that was
    cancelled, is not remembered: the next caller asks again.

    Args: as for `probe`, which says what they mean and what they raise.
    """

    def __init__(
        self,
        executor: CommandRunner,
        family: Family,
        *,
        mode: Mode = "persistent",
        confinement: ConfinementMode = "off",
        tools: Iterable[str] = DEFAULT_TOOLS,
        timeout: float = 5.0,
    ) -> None:
        self._executor = executor
        self._family = family
        self._mode = mode
        self._confinement = confinement
        self._tools = check_tools(tools)
        self._timeout = _check_timeout(timeout)
        self._turnstile = Turnstile()
        self._known: ShellEnvironment | None = None
        self._latest: ShellEnvironment | None = None
        self._probes = 0

    @property
    def known(self) -> ShellEnvironment | None:
        """What is remembered; None before the first answer."""
        return self._known

    async def get(self) -> ShellEnvironment:
        """Return what is remembered, or ask first."""
        if self._known is not None:
            return self._known
        seen = self._probes
        await self._turnstile.enter()
        try:
            # Whoever waited while another asked takes that answer, be it none: asking again would take as long.
            if self._latest is None or self._probes == seen:
                await self._ask()
            assert self._latest is not None
            return self._known or self._latest
        finally:
            self._turnstile.leave()

    async def refresh(self) -> ShellEnvironment:
        """Ask again and return the answer; one that did not come does not replace what is remembered."""
        await self._turnstile.enter()
        try:
            return await self._ask()
        finally:
            self._turnstile.leave()

    async def _ask(self) -> ShellEnvironment:
        found = await probe(
            self._executor,
            self._family,
            mode=self._mode,
            confinement=self._confinement,
            tools=self._tools,
            timeout=self._timeout,
        )
        self._latest = found
        self._probes += 1
        if found.answered:
            self._known = found
        return found


async def _stop_leftovers(result: ShellResult) -> None:
    """End what the probed programs left running, such as a child of one that was killed."""
    for job in result.background:
        try:
            await job.stop()
        except Exception as error:  # noqa: BLE001  (the answer is there; a process too many is no reason to lose it)
            _log.warning("a program that the probe started may still run: %s", error)


def _check_timeout(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout is a number of seconds, not {type(timeout).__name__}")
    if not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"timeout must be a finite number of seconds above 0, not {timeout}")
    return float(timeout)
