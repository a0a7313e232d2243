"""`Model`: a conversation with a model in the form of one API. `responses` and `chat` implement it, the loop uses it.

A model keeps the history and makes the requests. It never runs a command, and never decides whether to go on.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

import attrs

from .client import Client
from .events import CallFinished, CallRequested, OutputChunk, TextDelta

__all__ = ["Call", "Item", "Model", "Part", "Reply", "tokens"]

#: One entry of the history, plain JSON, as the API takes it.
Item = dict[str, Any]


@attrs.frozen(kw_only=True)
class Call:
    """Something that the model wants to be run.

    Attributes:
        call_id: the model's id; "" if it gave none.
        item: the call as the API has it.
    """

    call_id: str
    item: Item


@attrs.frozen(kw_only=True)
class Reply:
    """One whole reply.

    Attributes:
        items: what becomes part of the history.
        text: what the model said.
        calls: what must be answered, in order.
        input_tokens: tokens that were read; 0 if the server does not say.
        output_tokens: tokens that were made.
        cut_off: why the reply ends too early; "" if it does not.
        id: the server's id of the reply.
        hosted: what the server has run itself.
    """

    items: tuple[Item, ...]
    text: str
    calls: tuple[Call, ...]
    input_tokens: int = 0
    output_tokens: int = 0
    cut_off: str = ""
    id: str = ""
    hosted: tuple[CallRequested | CallFinished, ...] = ()


#: What a turn yields; the reply comes last, and once.
Part = TextDelta | OutputChunk | Reply


class Model(ABC):
    """One conversation.

    Args:
        client: what sends the requests.
        name: the model.
        stream: whether to have replies streamed.

    Attributes:
        history: the conversation so far.
        instructions: sent with every request.
        tools: the declarations of the tools.
    """

    def __init__(self, client: Client, name: str, *, stream: bool) -> None:
        self.name = name
        self.history: list[Item] = []
        self.instructions = ""
        self.tools: Sequence[Mapping[str, Any]] = ()
        self._client = client
        self._stream = stream
        self._record: Callable[[Sequence[Item]], object] = lambda items: None

    @property
    def base_url(self) -> str:
        """See `Client.base_url`."""
        return self._client.base_url

    def record_to(self, record: Callable[[Sequence[Item]], object]) -> None:
        """Have every addition to the history given to `record` before anything else happens."""
        self._record = record

    def say(self, text: str) -> None:
        """Add what the user says."""
        self._add({"role": "user", "content": text})

    def accept(self, reply: Reply) -> None:
        """Add a reply; its calls are open until they are answered."""
        self._add(*reply.items)

    def answer(self, output: Item) -> None:
        """Add the output of a call."""
        self._add(output)

    @abstractmethod
    def turn(self) -> AsyncGenerator[Part, None]:
        """Ask for the next reply. The history stays as it is.

        Raises:
            BrokenReply: the reply is unusable.
            Exception: what the client raises.
        """

    @abstractmethod
    def open_calls(self) -> list[Call]:
        """Return the calls in the history that have no output yet, in order."""

    def _add(self, *items: Item) -> None:
        sendable = [_sendable(item) for item in items]
        self._record(sendable)
        self.history.extend(sendable)


def tokens(usage: object, name: str) -> int:
    """Return a count of tokens; 0 if the server does not say, or says something else."""
    count = getattr(usage, name, None)
    return count if isinstance(count, int) else 0


def _sendable(item: Item) -> Item:
    """Return an item that every later request can hold: without halves of UTF-16 pairs, which JSON can bring."""
    text = json.dumps(item, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        replaced: Item = json.loads(text.encode("utf-8", "replace"))
        return replaced
    return item
