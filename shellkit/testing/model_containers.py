"""Containers as the OpenAI API has them, for the hosted shell: made, looked up, expired, deleted, with files. Pure.

`scripted_model` hands it the requests for `/containers...`; a test adds files and lets containers expire.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from .model_steps import Failure

__all__ = ["Containers"]

_CREATED = 1_700_000_000


class Containers:
    """The containers of one scripted model, whose ids are `cntr_1`, `cntr_2` and so on."""

    def __init__(self) -> None:
        self._containers: dict[str, dict[str, Any]] = {}
        self._files: dict[str, dict[str, tuple[dict[str, Any], bytes]]] = {}
        self._numbers = itertools.count(1)
        self._file_numbers = itertools.count(1)

    def add_file(self, container_id: str, path: str, content: bytes, *, source: str = "assistant") -> str:
        """Put a file into a container, as a command there would, and return its id."""
        name = f"cfile_{next(self._file_numbers)}"
        file = {
            "id": name,
            "object": "container.file",
            "created_at": _CREATED,
            "bytes": len(content),
            "container_id": container_id,
            "path": path,
            "source": source,
        }
        self._files[container_id][name] = (file, content)
        return name

    def expire(self, container_id: str) -> None:
        """Let a container expire, as one does that was idle for too long; its files are gone."""
        self._containers[container_id]["status"] = "expired"
        self._files[container_id].clear()

    def fault(self, container_id: str) -> Failure | None:
        """Return what a request that needs this container is answered with, if it cannot be used."""
        if container_id not in self._containers:
            return Failure(404, f"Container with id '{container_id}' not found.")
        if self._containers[container_id]["status"] == "expired":
            return Failure(400, "Container is expired.")
        return None

    def handle(
        self, method: str, path: str, body: Mapping[str, Any], query: Mapping[str, str]
    ) -> dict[str, Any] | bytes | Failure:
        """Answer a request; the path is what follows the API's prefix."""
        match method, *path.split("/")[1:]:
            case ("POST",):
                return self._create(body)
            case ("GET",):
                return _page(list(self._containers.values()), query)
            case "GET", name if name in self._containers:
                return self._containers[name]
            case "DELETE", name if name in self._containers:
                del self._containers[name], self._files[name]
                return {"id": name, "object": "container.deleted", "deleted": True}
            case _, name, *rest:
                return self.fault(name) or self._file(method, name, rest, body, query)
        return _unknown(method, path)

    def _create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        name = f"cntr_{next(self._numbers)}"
        policy = body.get("network_policy") or {"type": "disabled"}
        self._containers[name] = {
            "id": name,
            "object": "container",
            "created_at": _CREATED,
            "status": "running",
            "name": body.get("name", ""),
            "expires_after": body.get("expires_after", {"anchor": "last_active_at", "minutes": 20}),
            "last_active_at": _CREATED,
            "memory_limit": body.get("memory_limit", "1g"),
            "network_policy": {key: value for key, value in policy.items() if key != "domain_secrets"},
        }
        self._files[name] = {}
        for file_id in body.get("file_ids", ()):
            self.add_file(name, f"/mnt/data/{file_id}", b"", source="user")
        return self._containers[name]

    def _file(
        self, method: str, container_id: str, rest: list[str], body: Mapping[str, Any], query: Mapping[str, str]
    ) -> dict[str, Any] | bytes | Failure:
        files = self._files[container_id]
        match method, *rest:
            case "GET", "files":
                return _page([file for file, _ in files.values()], query)
            case "POST", "files":
                if "file_id" not in body:
                    return Failure(400, "a scripted model takes no uploads, only a file_id; use Containers.add_file")
                name = self.add_file(container_id, f"/mnt/data/{body['file_id']}", b"", source="user")
                return files[name][0]
            case "GET", "files", name if name in files:
                return files[name][0]
            case "GET", "files", name, "content" if name in files:
                return files[name][1]
            case "DELETE", "files", name if name in files:
                del files[name]
                return {"id": name, "object": "container.file.deleted", "deleted": True}
        return _unknown(method, "/".join(["containers", container_id, *rest]))


def _page(items: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of a list that a request asks for by `after` and `limit`."""
    names = [item["id"] for item in items]
    after = query.get("after")
    begin = names.index(after) + 1 if after in names else 0
    end = begin + int(query.get("limit", 20))
    shown = names[begin:end]
    first, last = (shown[0], shown[-1]) if shown else (None, None)
    return {
        "object": "list",
        "data": items[begin:end],
        "first_id": first,
        "last_id": last,
        "has_more": end < len(items),
    }


def _unknown(method: str, path: str) -> Failure:
    return Failure(404, f"There is nothing at {method} /{path}.")
