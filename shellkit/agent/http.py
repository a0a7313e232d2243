"""One HTTP request on a stream, from the server's side: h11 knows the protocol, asyncio brings the bytes.

For the broker only. It knows nothing of agents. One connection carries one request: on a Unix socket a new connection
costs next to nothing, and whatever comes after the request is the news that the client has gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine
from typing import Any

import h11

__all__ = ["Disconnected", "IncomingRequest"]

_BLOCK = 65536
#: Bytes. A conversation with a model is sent anew each time; more than this no model takes.
_LARGEST = 64 << 20


class Disconnected(Exception):
    """The client has gone, or does not speak HTTP."""


class IncomingRequest:
    """A request that has arrived whole, and the way to answer it.

    Attributes:
        method: "POST" ...
        path: without the query.
        bearer: what `Authorization: Bearer` holds, or "".
        body: all of it.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)
        self.method = ""
        self.path = ""
        self.bearer = ""
        self.body = b""

    async def receive(self) -> None:
        """Read the request.

        Raises:
            Disconnected: there is none.
        """
        body = bytearray()
        try:
            while not isinstance(event := self._http.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    self._http.receive_data(await self._reader.read(_BLOCK))
                elif isinstance(event, h11.Request):
                    self.method = event.method.decode()
                    self.path = event.target.decode().partition("?")[0]
                    self.bearer = dict(event.headers).get(b"authorization", b"").decode().removeprefix("Bearer ")
                elif isinstance(event, h11.Data) and len(body) + len(event.data) <= _LARGEST:
                    body += event.data
                else:
                    raise Disconnected
        except (h11.RemoteProtocolError, OSError, UnicodeDecodeError) as error:
            raise Disconnected from error
        self.body = bytes(body)

    async def while_connected(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work of answering, and give it up when the client goes away."""
        working = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not working.done():
                working.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await gone
            with contextlib.suppress(asyncio.CancelledError):
                await working

    # -- answering -------------------------------------------------------------------------------------

    async def start(self, status: int, content_type: str) -> None:
        """Begin an answer of unknown length."""
        headers = [("Content-Type", content_type), ("Transfer-Encoding", "chunked"), ("Connection", "close")]
        await self._write(self._http.send(h11.Response(status_code=status, headers=headers)))

    async def send(self, data: bytes) -> None:
        """Send a part of the answer; returns when the client has taken most of it."""
        await self._write(self._http.send(h11.Data(data=data)))

    async def end(self) -> None:
        """End the answer. Without it the client sees that something is missing."""
        await self._write(self._http.send(h11.EndOfMessage()))

    async def reply(self, status: int, value: object) -> None:
        """Answer with JSON."""
        await self.start(status, "application/json")
        await self.send(json.dumps(value).encode())
        await self.end()

    async def close(self) -> None:
        """Close the connection. A client that does not read an answer holds nothing up that was cut short."""
        transport = self._writer.transport
        if self._http.our_state not in (h11.DONE, h11.MUST_CLOSE):
            transport.abort()
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except asyncio.CancelledError:
            transport.abort()
            raise
        except OSError:
            return

    async def _write(self, data: bytes | None) -> None:
        if data:
            try:
                self._writer.write(data)
                await self._writer.drain()
            except OSError as error:
                raise Disconnected from error
