"""The container of OpenAI's hosted shell: made, kept, made again when it has expired, its files read. The loop uses it.

Commands run there because a model asks for it; there is no way to run one from here, and nothing runs on this machine.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING

import attrs

from ..adapters.openai_tools import Container
from .client import Client

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["HostedFile", "HostedShell"]

_log = logging.getLogger("shellkit")


@attrs.frozen(kw_only=True)
class HostedFile:
    """A file in the container.

    Attributes:
        id: for `HostedShell.read`.
        path: where it lies in the container.
        size: in bytes.
        source: who put it there: "user" or "assistant".
    """

    id: str
    path: str
    size: int
    source: str


class HostedShell:
    """A container; an async context manager that deletes what it made.

    Args:
        client: an `openai` client of either kind.
        container_id: a container to use; one is made when it is first needed without it.
        container: what a new one is like.
        name: for the server's list of containers.
        minutes: how long a new one lives when nothing uses it.
    """

    def __init__(
        self,
        client: OpenAI | AsyncOpenAI,
        container_id: str | None = None,
        *,
        container: Container | None = None,
        name: str = "shellkit",
        minutes: int = 20,
    ) -> None:
        self.container_id = container_id
        self._client = Client(client)
        self._made: list[str] = []
        self._wanted = {
            "name": name,
            "expires_after": {"anchor": "last_active_at", "minutes": minutes},
            **(container or Container()).to_dict(),
        }

    async def ensure(self) -> bool:
        """See to it that there is a live container, and return whether a new one had to be made.

        Raises:
            openai.OpenAIError: the server cannot be asked or makes none.
        """
        from openai import NotFoundError

        containers = self._client.client.containers
        if self.container_id is not None:
            try:
                status = (await self._client.call(containers.retrieve, container_id=self.container_id)).status
            except NotFoundError:
                status = "gone"
            if status not in ("expired", "deleted", "gone"):
                return False
            _log.info("the container %s is %s; a new one is made", self.container_id, status)
        self.container_id = (await self._client.call(containers.create, **self._wanted)).id
        self._made.append(self.container_id)
        return True

    async def files(self) -> list[HostedFile]:
        """Return the files in the container; none before it is made."""
        if self.container_id is None:
            return []
        listed = self._client.client.containers.files.list
        if self._client.blocking:
            found = await self._client.call(lambda: list(listed(self.container_id)))
        else:
            found = [file async for file in listed(self.container_id)]
        return [HostedFile(id=file.id, path=file.path, size=file.bytes, source=file.source) for file in found]

    async def read(self, file: HostedFile | str) -> bytes:
        """Return the content of a file: one of `files()`, or its id."""
        file_id = file if isinstance(file, str) else file.id
        retrieve = self._client.client.containers.files.content.retrieve
        content = await self._client.call(retrieve, file_id=file_id, container_id=self.container_id)
        return bytes(content.content)

    async def close(self) -> None:
        """Delete the containers that were made here. One that is gone already is no error."""
        from openai import NotFoundError

        while self._made:
            container_id = self._made.pop()
            try:
                await self._client.call(self._client.client.containers.delete, container_id=container_id)
            except NotFoundError:
                _log.debug("the container %s was gone already", container_id)
            if self.container_id == container_id:
                self.container_id = None

    async def __aenter__(self) -> HostedShell:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
