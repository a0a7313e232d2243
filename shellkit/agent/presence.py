"""Which agents of this user run, and which programs in them: each answers on a socket, and `shellkit ps` asks all.

The sockets lie in `runtime_directory`, each in a directory of its own that names the agent's process. They tell what
runs and take no orders; `broker` is another socket, for sub-agents.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import attrs

from ..process.update import ProcessInfo
from .http import IncomingRequest
from .private import runtime_directory
from .server import SOCKET, PrivateServer

__all__ = ["Presence", "RunningAgent", "running_agents"]

_PREFIX = "agent-"
#: Seconds. An agent answers at once, unless it is stopped, or lets a person edit a command.
_PATIENCE = 2.0


class Presence:
    """Makes an agent findable; an async context manager.

    Args:
        processes: returns the agent's programs.
        number: which sub-agent it is; 0 for an agent that a person has started.
    """

    def __init__(self, processes: Callable[[], Iterable[ProcessInfo]], number: int = 0) -> None:
        self._processes = processes
        self._number = number
        self._server = PrivateServer(self._answer, f"{_PREFIX}{os.getpid()}-")

    async def __aenter__(self) -> Presence:
        """Begin to answer.

        Raises:
            ShellkitError: there can be no socket.
        """
        await self._server.open(runtime_directory())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.close()

    async def _answer(self, request: IncomingRequest) -> None:
        if (request.method, request.path) != ("GET", "/processes"):
            await request.reply(404, {"error": "only GET /processes is answered here"})
            return
        processes = [attrs.asdict(process) for process in self._processes()]
        await request.reply(200, {"number": self._number, "processes": processes})


@attrs.frozen(kw_only=True)
class RunningAgent:
    """An agent of this user's.

    Attributes:
        pid: its process.
        number: which sub-agent it is; 0 for one that a person has started; None if it does not answer.
        processes: its programs, ended ones included.
    """

    pid: int
    number: int | None
    processes: tuple[ProcessInfo, ...] = ()


def running_agents() -> list[RunningAgent]:
    """Return this user's agents, and remove what dead ones have left; blocks.

    Raises:
        ShellkitError: see `runtime_directory`.
    """
    place = runtime_directory()
    found = []
    for name in sorted(os.listdir(place)):
        if (named := re.match(rf"{_PREFIX}(\d+)-", name)) is None:  # somebody else's
            continue
        path, pid = os.path.join(place, name, SOCKET), int(named[1])
        try:
            told = _ask(path)
            processes = tuple(ProcessInfo(**each) for each in told["processes"])
            found.append(RunningAgent(pid=pid, number=told["number"], processes=processes))
        except FileNotFoundError:  # it begins, or has just ended
            continue
        except ConnectionRefusedError:
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)
        except (OSError, http.client.HTTPException, ValueError, TypeError, KeyError):  # or it is another version
            found.append(RunningAgent(pid=pid, number=None))
    return found


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("agent", timeout=_PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _ask(path: str) -> dict[str, Any]:
    with contextlib.closing(_Connection(path)) as connection:
        connection.request("GET", "/processes")
        told: dict[str, Any] = json.load(connection.getresponse())
    return told
