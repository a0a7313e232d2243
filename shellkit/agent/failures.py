"""What the exceptions of an `openai` client mean, as one line for a person. The loop ends a run with it."""

from __future__ import annotations

import logging

import attrs

from .client import BrokenReply

__all__ = ["EXPLAINED", "Failure", "explain"]

_log = logging.getLogger("shellkit")

#: The type of an error that the broker of a sub-agent has explained: what it says is all that there is to say.
EXPLAINED = "shellkit"


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
    if getattr(error, "type", None) == EXPLAINED:
        return Failure(said, status < 500)
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
