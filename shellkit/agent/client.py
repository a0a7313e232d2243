"""Call an `openai` client, blocking or not, and say what its exceptions mean. Used by the models and the hosted shell.

A blocking client is called in a thread, and a thread cannot be stopped: when such a call is cancelled the caller goes
on at once, while the thread lives until the server answers or the client's own time-out is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["BrokenReply", "Client", "Failure", "explain"]

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


# -- what went wrong ----------------------------------------------------------------------------------------


@attrs.frozen
class Failure:
    """Why there is no reply.

    Attributes:
        text: one line that names the remedy; never holds the key.
        misconfigured: whether the key, the base URL or the model's name is wrong.
    """

    text: str
    misconfigured: bool = False


def explain(error: Exception, *, base_url: str, model: str) -> Failure:
    """Say what an exception of the client means, and what to do.

    Args:
        error: what a call raised, after the client's own retries.
        base_url: where the client sends its requests.
        model: the model that was asked.
    """
    import openai

    body = getattr(error, "body", None)  # the message beside it has the status before it
    said = _one_line((isinstance(body, dict) and body.get("message")) or getattr(error, "message", None) or error)
    status, code = getattr(error, "status_code", 0), getattr(error, "code", None)
    if isinstance(error, BrokenReply):
        return Failure(f"{base_url}: {said}", error.misconfigured)
    if isinstance(error, openai.APITimeoutError):
        return Failure(f"{base_url} did not answer in time; try again, or give the client a longer timeout")
    # h11's own words quote the header, and with it the key.
    no_ascii = isinstance(error, UnicodeEncodeError) and error.encoding == "ascii"
    if no_ascii or type(error.__cause__).__name__ == "LocalProtocolError":
        what = "the API key, or a header of the client, holds a character that HTTP does not allow"
        return Failure(f"{base_url} cannot be asked: {what}; set OPENAI_API_KEY anew", True)
    if isinstance(error, openai.APIConnectionError):
        cause = _one_line(error.__cause__ or error)
        if "Connect" in type(error.__cause__).__name__:  # httpx2's ConnectError: no request was sent
            return Failure(f"{base_url} cannot be reached ({cause}); check the base URL and the network", True)
        return Failure(f"the connection to {base_url} broke before the reply was whole ({cause}); try again")
    if status == 401:  # the message is left out: it may quote the key
        return Failure(f"{base_url} does not accept the API key; set OPENAI_API_KEY to one that is valid there", True)
    if status in (404, 405) or code == "model_not_found":
        remedy = "check the model's name and the base URL (it mostly ends in /v1)"
        return Failure(f"{base_url} has no model {model!r}, or not this API ({said}); {remedy}", True)
    if status == 403:
        return Failure(f"{base_url} does not let this key use {model!r} ({said}); ask for access, or use another", True)
    if status == 429:
        return Failure(f"{base_url} limits the rate, or the quota is used up ({said}); wait, then try again")
    if code == "context_length_exceeded":
        return Failure(f"{base_url}: the conversation is too long for {model!r} by now ({said}); begin a new one")
    if isinstance(error, openai.APIStatusError):
        return Failure(
            f"{base_url} answers {status} ({said}); {'try again later' if status >= 500 else 'change what is asked'}"
        )
    if isinstance(error, openai.OpenAIError):
        return Failure(f"{base_url} failed ({said}); try again")
    # Not the client's own: a reply that is no JSON, a transport that an older client does not wrap, a mistake here.
    _log.error("a request to the model failed", exc_info=error)
    return Failure(f"the request to {base_url} failed ({type(error).__name__}: {said}); try again")


def _one_line(text: object) -> str:
    line = " ".join(str(text).split())
    if line.startswith("<"):
        return "a page of HTML"
    return line if len(line) <= 500 else line[:500] + "..."
