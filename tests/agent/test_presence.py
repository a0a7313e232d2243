"""Agents that can be found: what they tell, what is left of dead ones, and directories that nobody else may enter."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shellkit import ShellkitError
from shellkit.agent.http import IncomingRequest
from shellkit.agent.presence import Presence, RunningAgent, running_agents
from shellkit.agent.private import private_directory, runtime_directory
from shellkit.agent.server import PrivateServer
from shellkit.process.update import ProcessInfo


@pytest.fixture(scope="module", autouse=True)
def _of_last_resort() -> None:
    """Make the directory in /tmp beforehand: it is this user's, and stays."""
    private_directory("/tmp")


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime directory with a name that is short enough for sockets (unix(7): 108 bytes)."""
    with tempfile.TemporaryDirectory() as directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        yield Path(directory)


def test_a_running_agent(runtime: Path) -> None:
    """Issue 5.7: an agent that runs tells its programs; one that has ended leaves nothing to be found by."""
    program = ProcessInfo(process_id=1, pid=17, command="python3 -q", tty=True, waits_for_input=True)

    async def main() -> None:
        async with Presence(lambda: [program]), Presence(list, number=2):
            agents = await asyncio.to_thread(running_agents)
            assert sorted(agents, key=lambda agent: agent.number or 0) == [
                RunningAgent(pid=os.getpid(), number=0, processes=(program,)),
                RunningAgent(pid=os.getpid(), number=2),
            ]
        assert await asyncio.to_thread(running_agents) == []

    asyncio.run(main())
    assert os.listdir(runtime_directory()) == []


def test_it_takes_no_orders() -> None:
    """Issue 5.7: the socket tells what runs and nothing else; what is no HTTP does not trouble it."""

    async def told(path: str, request: bytes) -> bytes:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(request)
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return answer

    async def main() -> None:
        async with Presence(list):
            (name,) = os.listdir(runtime_directory())
            path = os.path.join(runtime_directory(), name, "socket")
            for line in (b"GET / HTTP/1.1", b"POST /processes HTTP/1.1", b"GET /agents HTTP/1.1"):
                assert await told(path, line + b"\r\nHost: x\r\n\r\n") == b"HTTP/1.1 404 \r\n"
            assert await told(path, b"what?\r\n\r\n") == b""
            assert len(await asyncio.to_thread(running_agents)) == 1

    asyncio.run(main())


def left_by(pid: int) -> tuple[socket.socket, Path]:
    """Return a listening socket of an agent, and its directory."""
    place = Path(runtime_directory(), f"agent-{pid}-abc")
    place.mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place / "socket"))
    listening.listen()
    return listening, place


def test_what_a_dead_agent_left(runtime: Path) -> None:
    """Issue 5.7: a stale socket is passed over and removed; an agent that is about to begin is left alone."""
    listening, place = left_by(1)
    listening.close()
    beginning = Path(runtime_directory(), "agent-2-abc")
    beginning.mkdir()
    Path(runtime_directory(), "agent-x-abc").mkdir()  # nobody's
    assert running_agents() == []
    assert not place.exists()
    assert beginning.exists()


@pytest.mark.parametrize(
    "answer", [None, b"", b"HTTP/1.1 200 OK\r\n\r\nno JSON", b'HTTP/1.1 200 OK\r\n\r\n{"number": 0, "processes": [{}]}']
)
def test_one_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, answer: bytes | None) -> None:
    """Issue 5.7: an agent that is stopped, or is another version, holds nothing up and is named."""
    monkeypatch.setattr("shellkit.agent.presence._PATIENCE", 0.05 if answer is None else 5)
    listening, place = left_by(7)

    async def main() -> None:
        asking = asyncio.create_task(asyncio.to_thread(running_agents))
        if answer is not None:
            connection, _ = await asyncio.to_thread(listening.accept)
            with connection:
                connection.recv(1)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                await asking
        assert await asking == [RunningAgent(pid=7, number=None)]

    with listening:
        asyncio.run(main())
    assert place.exists()


def test_a_directory_of_ones_own(tmp_path: Path) -> None:
    """Security: what others may enter, or may have put there, is not used, and the message names the remedy."""
    path = Path(private_directory(str(tmp_path)))
    assert path.stat().st_mode & 0o777 == 0o700
    assert private_directory(str(tmp_path)) == str(path)
    path.chmod(0o755)
    with pytest.raises(ShellkitError, match="open to others, or is theirs; remove it, or set TMPDIR"):
        private_directory(str(tmp_path))
    path.rmdir()
    path.symlink_to(tmp_path)
    with pytest.raises(ShellkitError, match="open to others"):
        private_directory(str(tmp_path))
    path.unlink()
    (tmp_path / "file").touch()
    with pytest.raises(ShellkitError, match=r"cannot use .* set TMPDIR to another directory"):
        private_directory(str(tmp_path / "file"))


def test_without_a_runtime_directory(monkeypatch: pytest.MonkeyPatch, runtime: Path) -> None:
    """Issue 5.7: where there is no XDG_RUNTIME_DIR, or not any more, the sockets are below TMPDIR."""
    monkeypatch.setattr(tempfile, "tempdir", str(runtime))
    for value in ("", "/missing", "."):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        assert runtime_directory() == str(runtime / f"shellkit-{os.geteuid()}")


def test_no_room_for_a_socket() -> None:
    """Bad input: where no directory can be made, the message says so and names the remedy."""
    server = PrivateServer(IncomingRequest.end, "x-")
    with pytest.raises(ShellkitError, match="set TMPDIR to one that can be written"):
        asyncio.run(server.open("/proc"))
    with pytest.raises(RuntimeError, match="before `open`"):
        assert server.path


def test_too_long_a_name(runtime: Path) -> None:
    """Bad input: a directory whose name is too long for a socket is refused with the remedy, and left empty."""
    long = runtime / ("x" * 100)
    long.mkdir()
    server = PrivateServer(IncomingRequest.end, "x-")
    with pytest.raises(ShellkitError, match="set TMPDIR to another directory, with a short name"):
        asyncio.run(server.open(str(long)))
    assert os.listdir(long) == []


@pytest.mark.parametrize("length", [1, *range(38, 50), 89])
def test_names_of_any_length(monkeypatch: pytest.MonkeyPatch, runtime: Path, length: int) -> None:
    """Issue 5.7: where XDG_RUNTIME_DIR, or TMPDIR too, has a long name, an agent and who looks for it use another."""
    directory = runtime / ("x" * length)
    directory.mkdir()

    async def main() -> None:
        async with Presence(list, number=length):
            found = await asyncio.to_thread(running_agents)
            assert RunningAgent(pid=os.getpid(), number=length) in found

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", str(runtime))
    asyncio.run(main())
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    asyncio.run(main())
