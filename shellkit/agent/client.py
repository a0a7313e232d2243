"""Call an `openai` client, blocking or not. The models and the hosted shell do; `failures` explains what it raises.

A blocking client is called in a thread, and a thread cannot be stopped: when such a call is cancelled the caller goes
on at once, while the thread lives until the server answers or the client's own time-out is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["BrokenReply", "Client"]

_log = logging.getLogger("shellkit")


class BrokenReply(Exception):
    """The server's reply cannot be used; the message says why, and what to do.

    Args:
        message: one line.
        misconfigured: whether this cannot be the API at all.
    """

    def __init__(self, message: str, *, misconfigured: bool = False) -> None:
        super().__init__(message)
        self.misconfigured = misconfigured


class Client:
    """An `openai` client of either kind, called from a coroutine.

    Args:
        client: `openai.OpenAI`, `openai.AsyncOpenAI`, or the Azure ones.

    Raises:
        TypeError: it is something else, such as `client.with_raw_response`.
    """

    def __init__(self, client: OpenAI | AsyncOpenAI) -> None:
        from openai import AsyncOpenAI, OpenAI

        if not isinstance(client, OpenAI | AsyncOpenAI):
            raise TypeError(f"the client must be an openai.OpenAI or openai.AsyncOpenAI, not {type(client).__name__}")
        self.client: Any = client
        self.blocking = not isinstance(client, AsyncOpenAI)

    @property
    def base_url(self) -> str:
        """Where requests go, for messages: without a password."""
        return str(self.client.base_url.copy_with(userinfo=b""))

    async def call(self, method: Callable[..., Any], **parameters: Any) -> Any:
        """Return what a method of the client returns.

        Raises:
            BrokenReply: the server answers with a page, not with the API's JSON.
        """
        if self.blocking:
            answer = await _in_thread(lambda: method(**parameters))
        else:
            answer = await method(**parameters)
        if isinstance(answer, str):  # what the package makes of any other content type
            raise _no_api()
        return answer

    async def stream(self, method: Callable[..., Any], **parameters: Any) -> AsyncGenerator[Any, None]:
        """Yield the events of a streamed reply. Close the iterator to let go of the connection."""
        events = await self.call(method, **parameters, stream=True)
        if not self.blocking:
            try:
                _check_stream(events)
                async for event in events:
                    yield event
            finally:
                await events.close()
                await _unwind(events)
            return
        reading = False
        try:
            _check_stream(events)
            while True:
                reading = True
                event = await _in_thread(lambda: next(events, None), abandoned=events.close)
                reading = False
                if event is None:
                    return
                yield event
        finally:
            if not reading:  # else the thread that reads closes it
                events.close()


async def _unwind(events: AsyncIterator[Any]) -> None:
    """End the generators within a stream of the package that has been closed, so that none is left to the collector.

    One that was left early is part of a circle (`AsyncStream._iterator`, openai 3.57) until garbage is collected, maybe
    when the event loop is closing; it ends when it reads on. One that was read to the end of a chat has let go of
    those within, which the loop closes in its next rounds.
    """
    try:
        async for _ in events:
            pass
    except Exception as error:  # noqa: BLE001  (it reads what is closed; the reply has been dealt with)
        _log.debug("a closed stream was unwound: %r", error)
    await asyncio.sleep(0)


def _check_stream(events: Any) -> None:
    if "html" in events.response.headers.get("content-type", ""):
        raise _no_api()


def _no_api() -> BrokenReply:
    return BrokenReply("the server answers with a page, not as the API does; check the base URL", misconfigured=True)


async def _in_thread(function: Callable[[], Any], *, abandoned: Callable[[], object] | None = None) -> Any:
    """Call in a thread; after a cancellation, what the call returned is closed there, or `abandoned` called."""
    outcome: Future[Any] = Future()

    def work() -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001  (raised in the coroutine that waits)
            outcome.set_exception(error)

    try:
        await asyncio.to_thread(work)
    except asyncio.CancelledError:
        outcome.add_done_callback(lambda _: _let_go(outcome, abandoned))
        outcome.cancel()  # it may wait for a free thread
        raise
    return outcome.result()


def _let_go(outcome: Future[Any], abandoned: Callable[[], object] | None) -> None:
    if abandoned is not None:
        abandoned()
    elif (
        not outcome.cancelled()
        and outcome.exception() is None
        and (close := getattr(outcome.result(), "close", None)) is not None
    ):
        close()
