"""What every test gets: the proof that it left nothing behind, a shell to run commands in, and ways to wait.

`requires("zsh")` skips a test whose program or module is absent; where the environment variable
SHELLKIT_REQUIRE (comma-separated names) lists it, its absence is a failure, so that CI cannot skip by accident.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("shellkit.testing.contract")  # before any test module imports shellkit.testing

from shellkit import BlockingExecutor, LocalExecutor  # noqa: E402  (after the line above)
from shellkit.process.cgroup import own_cgroup  # noqa: E402  (as above)

# -- programs that may be absent --------------------------------------------------------------------------


def _present(name: str) -> bool:
    if name == "cgroup":
        return own_cgroup() is not None
    return shutil.which(name) is not None or importlib.util.find_spec(name) is not None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "requires(name, ...): programs, modules or 'cgroup' that the test cannot do without"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    needed = [name for marker in item.iter_markers("requires") for name in marker.args]
    absent = [name for name in needed if not _present(name)]
    if not absent:
        return
    demanded = os.environ.get("SHELLKIT_REQUIRE", "").split(",")
    if refused := sorted(set(absent) & set(demanded)):
        pytest.fail(f"SHELLKIT_REQUIRE lists {', '.join(refused)}, which is not here", pytrace=False)
    pytest.skip(f"{', '.join(absent)} is not here")


# -- nothing is left behind -------------------------------------------------------------------------------


class Traces:
    """What this process has made that carries shellkit's name. An audit hook cannot be removed, so there is one."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.cookies: set[bytes] = set()
        sys.addaudithook(self._see)

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("os.mkdir", "tempfile.mkdtemp", "tempfile.mkstemp") and "shellkit-" in os.fsdecode(args[0]):
            self.paths.add(os.fsdecode(args[0]))
        elif event == "os.posix_spawn":
            # None when `subprocess` starts a program with our own environment (Python 3.13).
            self.cookies.update(value for name, value in (args[2] or {}).items() if name == b"SHELLKIT_SESSION")


_TRACES = Traces()


def _descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the descriptor of the listing itself
            continue
    return found


def _processes() -> set[str]:
    """Return this process's children, and whatever carries the cookie of one of its sessions, as 'pid command'."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc") if _TRACES.cookies else _children()):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                cookie = file.read().rpartition(b"SHELLKIT_SESSION=")[2].partition(b"\0")[0]
            if cookie in _TRACES.cookies or pid in _children():
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    found.add(f"{pid} {file.read().replace(bytes(1), b' ').decode('utf-8', 'replace')}")
        except OSError:  # it has gone meanwhile, or is another user's
            continue
    return found


def _children() -> set[str]:
    found: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as file:
            found.update(file.read().split())
    return found


def _temporary_files() -> set[str]:
    mine = {path for path in _TRACES.paths if os.path.exists(path)}
    here = {str(path) for path in Path(tempfile.gettempdir()).glob("shellkit-*") if str(path) in _TRACES.paths}
    return mine | here


def _everything() -> dict[str, set[Any]]:
    return {
        "descriptors": {f"{fd} -> {target}" for fd, target in _descriptors().items()},
        "threads": {thread.name for thread in threading.enumerate()},
        "processes": _processes(),
        "cgroups and temporary files": _temporary_files(),
    }


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Prove that no process, descriptor, thread, task, cgroup or temporary file outlives the test."""
    tasks: list[str] = []
    cancel_all = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]

    def see_tasks(loop: asyncio.AbstractEventLoop) -> None:
        tasks.extend(repr(task) for task in asyncio.all_tasks(loop))
        cancel_all(loop)

    monkeypatch.setattr(asyncio.runners, "_cancel_all_tasks", see_tasks)
    before = _everything()
    _TRACES.cookies.clear()
    _TRACES.paths.clear()
    yield
    give_up = time.monotonic() + 2.0
    while True:
        now = _everything()
        left = {kind: sorted(found - before[kind]) for kind, found in now.items() if found - before[kind]}
        if not left or time.monotonic() > give_up:
            break
        time.sleep(0.005)
    assert not left, f"left behind: {left}"
    assert not tasks, f"tasks that outlived their main coroutine: {tasks}"


# -- shells -----------------------------------------------------------------------------------------------

OpenShell = Callable[..., BlockingExecutor]


@pytest.fixture(params=["persistent", "stateless"])
def mode(request: pytest.FixtureRequest) -> str:
    """The two modes, for rules that hold in both."""
    return str(request.param)


@pytest.fixture(params=[pytest.param("cgroup", marks=pytest.mark.requires("cgroup")), "scan"])
def containment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The two ways of knowing what a session started, for rules that hold with both."""
    if request.param == "scan":
        monkeypatch.setattr("shellkit.process.tree.own_cgroup", lambda: None)
    return str(request.param)


@pytest.fixture
def open_shell(tmp_path: Path) -> Iterator[OpenShell]:
    """Return a function that opens a bash in `tmp_path`, unconfined, with any option; closed after the test."""
    opened: list[BlockingExecutor] = []

    def open_one(**options: Any) -> BlockingExecutor:
        if "workdir" not in options:
            options = {"workdir": tmp_path, "confinement": "off", **options}
        shell = LocalExecutor(**{"shell": "bash", **options}).sync()
        opened.append(shell)
        return shell

    yield open_one
    for shell in opened:
        shell.close()


@pytest.fixture
def shell(open_shell: OpenShell) -> BlockingExecutor:
    """A persistent bash in `tmp_path`."""
    return open_shell()


@pytest.fixture
def either(open_shell: OpenShell, mode: str) -> BlockingExecutor:
    """A bash in `tmp_path`, once persistent and once stateless."""
    return open_shell(mode=mode)


# -- waiting ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def eventually() -> Callable[..., None]:
    """Return a function that waits until a predicate holds and fails when it does not within some seconds."""

    def wait(predicate: Callable[[], object], seconds: float = 5.0) -> None:
        give_up = time.monotonic() + seconds
        while not predicate():
            assert time.monotonic() < give_up, f"not within {seconds} s: {predicate}"
            time.sleep(0.005)

    return wait


@pytest.fixture(scope="session")
def checkpointed(eventually: Callable[..., None]) -> Callable[[BlockingExecutor], None]:
    """Return a function that waits until the idle session has taken a new checkpoint (contract D4)."""

    def wait(shell: BlockingExecutor) -> None:
        session: Any = shell.executor._session
        last = session._checkpoint
        shell.run("(exit $?)")  # idle time begins anew; `$?` stays as it was
        eventually(lambda: session._checkpoint is not None and session._checkpoint is not last)

    return wait


_COUNTER = itertools.count()


class Sleeps:
    """Sleep lengths that no other process on the machine uses, to find processes by."""

    def __init__(self) -> None:
        self.lengths: list[str] = []

    def __call__(self) -> str:
        self.lengths.append(f"38{os.getpid() % 1000:03}.{next(_COUNTER):05}1")
        return self.lengths[-1]

    def left(self) -> list[str]:
        """Return what of it runs; the shells whose text mentions a length do not count."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            found += [f"{pid} sleep {length}" for length in self.lengths if length.encode() in words[1:]]
        return found


@pytest.fixture
def sleeps() -> Sleeps:
    """Return a maker of sleep lengths by which processes can be found."""
    return Sleeps()
