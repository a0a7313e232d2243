"""Who approves: a person at the terminal, a function of the host, or nobody. An approver is one async call.

They compose: `TimeLimit(Console(), 60)`. What a decision means, and what is remembered of it, is the gate's part.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol

from ..policy.approvals import ApprovalRequest, Decision

__all__ = ["AllowAll", "Approver", "Callback", "DenyAll", "TimeLimit", "approver_name"]


class Approver(Protocol):
    """Answers approval requests."""

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Decide. Raising is a refusal. While it waits, later calls of the tool wait too, so it must not make one."""


def approver_name(approver: Approver) -> str:
    """Return what the audit log calls an approver: the name of the function, or of the class."""
    return str(getattr(approver, "__name__", type(approver).__name__))


class DenyAll:
    """Refuses every request.

    Args:
        reason: told to the model.
    """

    def __init__(self, reason: str = "nobody is there to approve commands") -> None:
        self._reason = reason

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Refuse."""
        return Decision(approved=False, reason=self._reason)


class AllowAll:
    """Approves every request: the model then does whatever this user may do.

    Args:
        acknowledge_unsafe: must be True, so that nobody gets here by accident.

    Raises:
        ValueError: it is not.
    """

    def __init__(self, *, acknowledge_unsafe: bool = False) -> None:
        if acknowledge_unsafe is not True:
            raise ValueError(
                "AllowAll approves whatever a model asks for, without isolation; pass acknowledge_unsafe=True "
                "if that is what you want"
            )

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Approve."""
        return Decision(approved=True, reason="approved without a question")


class Callback:
    """Asks a function of the host.

    Args:
        function: takes the request, returns a `Decision` or a bool; may be a coroutine function.
    """

    def __init__(self, function: Callable[[ApprovalRequest], Decision | bool | Awaitable[Decision | bool]]) -> None:
        self._function = function

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Ask the function."""
        answer = self._function(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, Decision):
            return answer
        if isinstance(answer, bool):
            return Decision(approved=answer, reason="" if answer else "refused by the host")
        raise TypeError(f"an approval function must return a Decision or a bool, not {type(answer).__name__}")


class TimeLimit:
    """Refuses when another approver takes too long.

    Args:
        approver: who is asked.
        seconds: how long to wait.

    Raises:
        ValueError: `seconds` is no positive number.
    """

    def __init__(self, approver: Approver, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"a time limit is a positive number of seconds, not {seconds!r}")
        self._approver = approver
        self._seconds = seconds

    async def __call__(self, request: ApprovalRequest) -> Decision:
        """Ask, but not for ever."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._approver(request)
        except TimeoutError:
            return Decision(approved=False, reason=f"nobody answered within {self._seconds:g} s")
