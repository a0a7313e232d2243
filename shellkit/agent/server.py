"""An HTTP server on a Unix socket that only this user can reach. `broker` and `presence` say what it answers.

It owns the socket, its directory and the connections, and leaves none of them behind, not even when the process is
killed. It knows nothing of agents.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from typing import Any

from ..errors import ShellkitError
from ..process import reaper
from .http import Disconnected, IncomingRequest
from .private import short_enough

__all__ = ["SOCKET", "PrivateServer"]

_log = logging.getLogger("shellkit")

#: The name of the socket in its directory.
SOCKET = "socket"


class PrivateServer:
    """Answers requests between `open` and `close`.

    Args:
        answer: answers one request; cancelled when the client goes away.
        prefix: of the name of the socket's directory.
    """

    def __init__(self, answer: Callable[[IncomingRequest], Coroutine[Any, Any, None]], prefix: str) -> None:
        self._answer = answer
        self._prefix = prefix
        self._connections: set[asyncio.Task[None]] = set()
        self._directory: str | None = None
        self._server: asyncio.Server | None = None

    @property
    def path(self) -> str:
        """The socket."""
        if self._directory is None:
            raise RuntimeError("there is no socket before `open`")
        return os.path.join(self._directory, SOCKET)

    async def open(self, place: str | None = None) -> None:
        """Begin to answer.

        Args:
            place: where to make the socket's directory; None for the temporary directory, or for /tmp if the name of
                that one is too long for a socket.

        Raises:
            ShellkitError: there can be no socket.
        """
        try:
            # 0700 (mkdtemp(3)), so that nobody else can connect: unix(7) asks for the rights of the directory.
            self._directory = tempfile.mkdtemp(prefix=self._prefix, dir=place or short_enough([tempfile.gettempdir()]))
        except OSError as error:
            raise ShellkitError(
                f"no directory for a socket ({error}); set TMPDIR to one that can be written"
            ) from error
        reaper.watch_directory(os.path.basename(self._directory), self._directory)
        try:
            # Under its name only when it listens: one that refuses is taken for a dead process's.
            self._server = await asyncio.start_unix_server(self._serve, f"{self.path}.new")
            os.rename(f"{self.path}.new", self.path)
        except OSError as error:
            self._remove_directory()
            raise ShellkitError(
                f"no socket in {self._directory} ({error}); set TMPDIR to another directory, with a short name"
            ) from error

    async def close(self) -> None:
        """Break connections off and leave nothing."""
        if self._server is None:
            return
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._remove_directory()

    def _remove_directory(self) -> None:
        assert self._directory is not None
        shutil.rmtree(self._directory, ignore_errors=True)
        reaper.unwatch(os.path.basename(self._directory))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        request = IncomingRequest(reader, writer)
        try:
            try:
                await request.receive()
                # A client that goes away (a sub-agent that was killed) ends what is done for it.
                await request.while_connected(self._answer(request))
            finally:
                await request.close()
        except (Disconnected, asyncio.CancelledError):
            # Cancelled by closing alone; asyncio's streams take a task that ends cancelled for a fault, and log it.
            return
        except Exception:  # noqa: BLE001  (the client sees a broken answer; the others must not suffer)
            _log.exception("a request on %s failed", self._directory)
        finally:
            self._connections.discard(task)  # not before: `close` waits for all of it
