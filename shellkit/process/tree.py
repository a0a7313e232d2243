"""Who belongs to whom: the processes of the running command, of earlier jobs, and of the session as a whole.

Two ways of knowing, one interface:
- `CgroupContainment` knows everything, `setsid` and daemons included.
- `ScanContainment` goes by parentage and by a cookie in the environment. It misses a process that left its
  parent *and* cleared its environment (`env -i setsid ...`): best effort, and `shellkit doctor` says so.

Sessions call it; it never waits and never decides when to kill (that is the ladder in `sessions/turn.py`).
"""

from __future__ import annotations

import contextlib
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable

from . import procfs
from .cgroup import Cgroup, own_cgroup

__all__ = ["CgroupContainment", "Containment", "JobGroup", "ScanContainment", "containment", "send"]


def send(pids: Iterable[int], number: int) -> None:
    """Send a signal to each process; those that are gone, or belong to another user, are passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class JobGroup(ABC):
    """What one finished command left running."""

    @abstractmethod
    def pids(self) -> list[int]:
        """Return the processes that are still alive."""

    @abstractmethod
    def kill(self) -> None:
        """Send SIGKILL to all of them."""

    def remove(self) -> None:  # noqa: B027  (only a cgroup has something to remove)
        """Give back what the group needed; its processes must be gone."""


class Containment(ABC):
    """The processes of one session."""

    #: Whether nothing can escape.
    complete: bool
    #: The cgroup directory that holds all, for the reaper; "" without cgroups.
    path: str = ""

    @abstractmethod
    def enter(self, shell: int) -> None:
        """Take in a shell that has just been started and has not run anything."""

    @abstractmethod
    def command_starts(self) -> None:
        """Account for a command about to be started: what lives now is not part of it."""

    @abstractmethod
    def running(self, shell: int) -> list[int]:
        """Return the processes of the running command, the shell excluded."""

    @abstractmethod
    def left_behind(self, shell: int, *, shell_alive: bool) -> bool:
        """Return whether the command that has just ended left processes; cheap, called after every command."""

    @abstractmethod
    def set_aside(self, shell: int) -> JobGroup | None:
        """Make a group of what the finished command left running; None if it is gone by now."""

    @abstractmethod
    def everything(self) -> list[int]:
        """Return all processes of the session, jobs included."""

    @abstractmethod
    def kill_everything(self) -> None:
        """Send SIGKILL to all processes of the session."""

    @abstractmethod
    def close(self) -> None:
        """Kill what is left and give everything back; idempotent."""


def containment(cookie: str) -> Containment:
    """Return the best containment that this process may use."""
    if (parent := own_cgroup()) is not None:
        with contextlib.suppress(OSError):
            return CgroupContainment(parent, cookie)
    return ScanContainment(cookie)


class _CgroupJob(JobGroup):
    def __init__(self, cgroup: Cgroup) -> None:
        self._cgroup = cgroup

    def pids(self) -> list[int]:
        return self._cgroup.pids()

    def kill(self) -> None:
        self._cgroup.kill()

    def remove(self) -> None:
        self._cgroup.remove()


class CgroupContainment(Containment):
    """Everything a session started, in cgroups of its own."""

    complete = True

    def __init__(self, parent: str, cookie: str) -> None:
        self._root = Cgroup(f"{parent}/shellkit-{cookie}")
        self.path = self._root.path
        self._session = Cgroup(f"{self.path}/session")
        self._jobs: list[Cgroup] = []
        self._count = 0

    def enter(self, shell: int) -> None:
        self._session.add(shell)

    def command_starts(self) -> None:
        # Whatever is in `session` beside the shell belongs to the command: earlier ones were set aside.
        return

    def running(self, shell: int) -> list[int]:
        return [pid for pid in self._session.pids() if pid != shell]

    def left_behind(self, shell: int, *, shell_alive: bool) -> bool:
        return bool(self.running(shell))

    def set_aside(self, shell: int) -> JobGroup | None:
        self._count += 1
        group = Cgroup(f"{self.path}/job-{self._count}")
        # A process that forks while it is being moved leaves its child behind: look again. Bounded,
        # because a fork bomb would win every round; what stays is then killed with the next command.
        for _ in range(32):
            pids = self.running(shell)
            if not pids:
                break
            for pid in pids:
                group.add(pid)
        if not group.pids():
            group.remove()
            return None
        self._jobs.append(group)
        return _CgroupJob(group)

    def everything(self) -> list[int]:
        return [pid for group in (self._session, *self._jobs) if group._procs >= 0 for pid in group.pids()]

    def kill_everything(self) -> None:
        self._root.kill()

    def close(self) -> None:
        self.kill_everything()
        for group in (*self._jobs, self._session, self._root):
            group.remove()


class _ScannedJob(JobGroup):
    def __init__(self, members: dict[int, procfs.Stat]) -> None:
        self._members = members

    def pids(self) -> list[int]:
        now = procfs.processes()
        self._members = {
            pid: entry for pid, entry in now.items() if entry.state != "Z" and _descends(entry, self._members, now)
        }
        return list(self._members)

    def kill(self) -> None:
        send(self.pids(), signal.SIGKILL)


class ScanContainment(Containment):
    """What can be known from parentage and the environment."""

    complete = False

    def __init__(self, cookie: str) -> None:
        self._entry = b"SHELLKIT_SESSION=" + cookie.encode()
        self._shell = 0
        self._earlier: dict[int, procfs.Stat] = {}
        self._started = 0

    def enter(self, shell: int) -> None:
        self._shell = shell

    def command_starts(self) -> None:
        self._started = _ticks_since_boot()

    def running(self, shell: int) -> list[int]:
        now = procfs.processes()
        own = self._mine(shell, now)
        return [pid for pid, entry in own.items() if not self._is_earlier(entry, now)]

    def left_behind(self, shell: int, *, shell_alive: bool) -> bool:
        if not shell_alive:
            return bool(self.running(shell))
        earlier = self._earlier
        return any(pid not in earlier for pid in procfs.children(shell))

    def set_aside(self, shell: int) -> JobGroup | None:
        now = procfs.processes()
        members = {pid: e for pid, e in self._mine(shell, now).items() if not self._is_earlier(e, now)}
        if not members:
            return None
        self._earlier = {pid: e for pid, e in self._earlier.items() if now.get(pid) == e} | members
        return _ScannedJob(members)

    def everything(self) -> list[int]:
        now = procfs.processes()
        own = self._mine(self._shell, now)
        shell = now.get(self._shell)
        alive = shell is not None and shell.state != "Z" and procfs.has_environment(self._shell, self._entry)
        return [*own, self._shell] if alive else list(own)

    def kill_everything(self) -> None:
        send(self.everything(), signal.SIGKILL)

    def close(self) -> None:
        # Killing one process may let another fork: look until nothing is found, a few times at most.
        for _ in range(16):
            pids = self.everything()
            if not pids:
                return
            send(pids, signal.SIGKILL)

    def _mine(self, shell: int, now: dict[int, procfs.Stat]) -> dict[int, procfs.Stat]:
        """The session's processes but for the shell: descendants, earlier jobs' included, and cookie bearers."""
        anchors = {shell: now[shell]} if shell in now else {}
        anchors.update((pid, e) for pid, e in self._earlier.items() if now.get(pid, e).started == e.started)
        mine = {}
        for pid, entry in now.items():
            if pid == shell or entry.state == "Z" or pid == os.getpid():
                continue
            if _descends(entry, anchors, now) or procfs.has_environment(pid, self._entry):
                mine[pid] = entry
        return mine

    def _is_earlier(self, entry: procfs.Stat, now: dict[int, procfs.Stat]) -> bool:
        """Whether the process, or one of its ancestors below the shell, was there before the command started."""
        seen: procfs.Stat | None = entry
        while seen is not None and seen.pid not in (self._shell, 0, 1):
            known = self._earlier.get(seen.pid)
            if known is not None and known.started == seen.started:
                return True
            if seen.started < self._started and procfs.has_environment(seen.pid, self._entry):
                return True
            seen = now.get(seen.parent)
        return False


def _descends(entry: procfs.Stat, anchors: dict[int, procfs.Stat], now: dict[int, procfs.Stat]) -> bool:
    seen: procfs.Stat | None = entry
    for _ in range(len(now) + 1):
        if seen is None:
            return False
        anchor = anchors.get(seen.pid)
        if anchor is not None and anchor.started == seen.started:
            return True
        seen = now.get(seen.parent)
    return False


def _ticks_since_boot() -> int:
    # Rounded down, as the kernel does for the start time: a process of the same tick counts as later.
    with open("/proc/uptime", "rb", buffering=0) as file:
        seconds = float(file.read(64).split()[0])
    return int(seconds * os.sysconf("SC_CLK_TCK")) - 1
