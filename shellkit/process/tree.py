"""Who belongs to whom: the processes of the running command, of earlier jobs, and of the session as a whole.

Two ways of knowing, one interface:
- `CgroupContainment` knows everything, `setsid` and daemons included. A shell goes in some 50 ms after its start,
  not at once: a process that moves between cgroups makes the kernel wait for an RCU grace period, 5-20 ms here,
  during which no process of the whole system can fork or exit.
- `ScanContainment` goes by parentage and by a cookie in the environment. It misses a process that left its
  parent *and* cleared its environment (`env -i setsid ...`): best effort, and `shellkit doctor` says so.

Sessions call it; it never waits and never decides when to kill (that is the ladder in `sessions/turn.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
import time
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

    def __init__(self) -> None:
        #: The shells themselves: the one in use, and one that may wait for its turn.
        #: Replaced, never changed: another thread may be going through it.
        self.shells: frozenset[int] = frozenset()

    def announce(self, shell: int) -> None:
        """Account for a shell that has just been started; `enter` follows."""
        self.shells |= {shell}

    def is_outside(self, shell: int) -> bool:
        """Return whether something that this shell starts may still escape for want of `enter`."""
        return False

    @abstractmethod
    def enter(self, shell: int) -> None:
        """Take a shell in, and what it has started meanwhile. May block for some 20 ms: call it in a thread."""

    def leave(self, shell: int) -> None:
        """Account for a shell that has ended."""
        self.shells -= {shell}

    @abstractmethod
    def command_starts(self) -> None:
        """Account for a command about to be started: what lives now is not part of it."""

    @abstractmethod
    def running(self) -> list[int]:
        """Return the processes of the running command, shells excluded."""

    @abstractmethod
    def left_behind(self, shell: int, *, shell_alive: bool, likely: bool) -> bool:
        """Return whether the command that has just ended left processes; cheap, called after every command.

        Args:
            shell: the shell that ran it.
            shell_alive: whether that shell is still there.
            likely: whether the command looks as if it could have; where asking is dear, it decides.
        """

    @abstractmethod
    def set_aside(self, shell: int) -> JobGroup | None:
        """Make a group of what the command that `shell` ran left running; None if it is gone by now."""

    @abstractmethod
    def hand_over(self, shell: int) -> JobGroup | None:
        """Make a group of a shell and the command that it runs, and stop counting it among the shells."""

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
    """Return the best containment that this process may use.

    Raises:
        OSError: the host has no descriptors left; that is no reason to take a lesser one.
    """
    if (parent := own_cgroup()) is not None:
        try:
            return CgroupContainment(parent, cookie)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
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
        super().__init__()
        self._root = Cgroup(f"{parent}/shellkit-{cookie}")
        self.path = self._root.path
        try:
            if not os.path.exists(f"{self.path}/cgroup.kill"):  # a kernel before 5.14
                raise OSError(errno.ENOTSUP, "this kernel cannot kill a cgroup")
            self._session = Cgroup(f"{self.path}/session")
        except OSError:
            self._root.remove()
            raise
        self._jobs: list[Cgroup] = []
        self._count = 0
        #: Knows what belongs to shells that are not inside yet, and to jobs that they left.
        self._scan = ScanContainment(cookie)
        self._outside: set[int] = set()
        self._ran_outside = False
        self._entering = threading.Lock()

    def announce(self, shell: int) -> None:
        super().announce(shell)
        self._scan.announce(shell)
        self._outside.add(shell)

    def is_outside(self, shell: int) -> bool:
        return shell in self._outside

    def enter(self, shell: int) -> None:
        with self._entering:
            if shell not in self._outside:  # it has ended meanwhile, or was in a hurry
                return
            self._session.add(shell)
            for pid in self._loose():
                self._session.add(pid)
            self._outside.discard(shell)
            # Once all is inside, what it forks is inside, too, and no scan (5 ms with 200 processes) can find more.
            if not self._outside and not set(self._scan.everything()).difference(self._inside()):
                self._ran_outside = False

    def _inside(self) -> list[int]:
        return [pid for group in (self._session, *self._jobs) for pid in group.pids()]

    def _loose(self) -> list[int]:
        """What belongs to the running command and is in none of the cgroups."""
        inside = set(self._inside())
        return [pid for pid in self._scan.running() if pid not in inside]

    def leave(self, shell: int) -> None:
        super().leave(shell)
        self._scan.leave(shell)
        self._outside.discard(shell)

    def command_starts(self) -> None:
        # Whatever is in `session` beside the shells belongs to the command: earlier ones were set aside.
        if self._outside:
            self._ran_outside = True
            self._scan.command_starts()

    def running(self) -> list[int]:
        inside = [pid for pid in self._session.pids() if pid not in self.shells]
        return [*inside, *self._loose()] if self._outside else inside

    def left_behind(self, shell: int, *, shell_alive: bool, likely: bool) -> bool:
        if shell in self._outside:
            return self._scan.left_behind(shell, shell_alive=shell_alive, likely=likely)
        return any(pid not in self.shells for pid in self._session.pids())

    def set_aside(self, shell: int) -> JobGroup | None:
        with self._entering:  # or `enter`, in its thread, takes for the running command's what is a job by now
            return self._scan.set_aside(shell) if shell in self._outside else self._move_aside()

    def hand_over(self, shell: int) -> JobGroup | None:
        with self._entering:
            if shell in self._outside:
                group = self._scan.hand_over(shell)
                self.leave(shell)
                return group
            self.leave(shell)
            return self._move_aside()

    def _move_aside(self) -> JobGroup | None:
        self._count += 1
        group = Cgroup(f"{self.path}/job-{self._count}")
        # A process that forks while it is being moved leaves its child behind: look again. Bounded,
        # because a fork bomb would win every round; what stays is then killed with the next command.
        for _ in range(32):
            pids = self.running()
            if not pids:
                break
            for pid in pids:
                group.add(pid)
        if not group.pids():
            group.remove()
            return None
        self._jobs = [*(job for job in self._jobs if not job.removed), group]
        return _CgroupJob(group)

    def everything(self) -> list[int]:
        inside = self._inside()
        return list({*inside, *self._scan.everything()}) if self._needs_scan() else inside

    def kill_everything(self) -> None:
        self._root.kill()
        if self._needs_scan():
            self._scan.kill_everything()

    def _needs_scan(self) -> bool:
        # What a shell started before it was inside, and what lost its parent, only a scan can find.
        return bool(self._outside) or self._ran_outside

    def close(self) -> None:
        if self._needs_scan():
            self._scan.close()
        self._root.kill()
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
        super().__init__()
        self._entry = b"SHELLKIT_SESSION=" + cookie.encode()
        #: What is older knows nothing of the cookie, and need not be asked: most of the processes of a machine.
        self._made = _ticks_since_boot()
        self._earlier: dict[int, procfs.Stat] = {}
        self._started = 0
        self._children: dict[int, procfs.Children] = {}

    def announce(self, shell: int) -> None:
        super().announce(shell)
        self._children[shell] = procfs.Children(shell)

    def enter(self, shell: int) -> None:
        return

    def leave(self, shell: int) -> None:
        super().leave(shell)
        if (children := self._children.pop(shell, None)) is not None:
            children.close()

    def command_starts(self) -> None:
        self._started = _ticks_since_boot()

    def running(self) -> list[int]:
        now = procfs.processes()
        return [pid for pid, entry in self._mine(now).items() if not self._is_earlier(entry, now)]

    def left_behind(self, shell: int, *, shell_alive: bool, likely: bool) -> bool:
        if not shell_alive:
            return likely and bool(self.running())
        if likely:  # what has lost its parent is no child of the shell
            return bool(self.running())
        earlier = self._earlier
        return any(pid not in earlier for pid in self._children[shell].read())

    def set_aside(self, shell: int) -> JobGroup | None:
        return self._make_earlier(procfs.processes(), {})

    def hand_over(self, shell: int) -> JobGroup | None:
        now = procfs.processes()
        group = self._make_earlier(now, {shell: now[shell]} if shell in now else {})
        self.leave(shell)
        return group

    def _make_earlier(self, now: dict[int, procfs.Stat], more: dict[int, procfs.Stat]) -> JobGroup | None:
        members = more | {pid: e for pid, e in self._mine(now).items() if not self._is_earlier(e, now)}
        if not members:
            return None
        self._earlier = {pid: e for pid, e in self._earlier.items() if _same(now.get(pid), e)} | members
        return _ScannedJob(members)

    def everything(self) -> list[int]:
        now = procfs.processes()
        shells = [pid for pid in self.shells if self._is_live_shell(pid, now)]
        return [*self._mine(now), *shells]

    def kill_everything(self) -> None:
        send(self.everything(), signal.SIGKILL)

    def close(self) -> None:
        # Killing one process may let another fork: look until nothing is found, a few times at most.
        for _ in range(16):
            pids = self.everything()
            if not pids:
                return
            send(pids, signal.SIGKILL)

    def _is_live_shell(self, pid: int, now: dict[int, procfs.Stat]) -> bool:
        entry = now.get(pid)
        return entry is not None and entry.state != "Z" and self._bears_cookie(entry)

    def _bears_cookie(self, entry: procfs.Stat) -> bool:
        for _ in range(8):
            bears = procfs.has_environment(entry.pid, self._entry)
            if bears is not None or entry.parent == _KTHREADD or entry.started < self._started:
                return bool(bears)
            time.sleep(0.0002)  # in the middle of execve(2), which takes some tenths of a millisecond
        return False

    def _mine(self, now: dict[int, procfs.Stat]) -> dict[int, procfs.Stat]:
        """The session's processes but for its shells: descendants, of jobs too, and bearers of the cookie."""
        anchors = {pid: now[pid] for pid in self.shells if pid in now}
        anchors.update((pid, entry) for pid, entry in self._earlier.items() if _same(now.get(pid), entry))
        return {
            pid: entry
            for pid, entry in now.items()
            if pid not in self.shells
            and pid != os.getpid()
            and entry.state != "Z"
            and entry.started >= self._made
            and (_descends(entry, anchors, now) or self._bears_cookie(entry))
        }

    def _is_earlier(self, entry: procfs.Stat, now: dict[int, procfs.Stat]) -> bool:
        """Whether the process, or one of its ancestors below the shell, was there before the command started."""
        seen: procfs.Stat | None = entry
        while seen is not None and seen.pid not in self.shells and seen.pid > 1:
            if _same(seen, self._earlier.get(seen.pid)):
                return True
            if seen.started < self._started and self._bears_cookie(seen):
                return True
            seen = now.get(seen.parent)
        return False


def _same(one: procfs.Stat | None, other: procfs.Stat | None) -> bool:
    """Whether both are the same process: a number is used again, a number and a start time are not."""
    return one is not None and other is not None and (one.pid, one.started) == (other.pid, other.started)


def _descends(entry: procfs.Stat, anchors: dict[int, procfs.Stat], now: dict[int, procfs.Stat]) -> bool:
    seen: procfs.Stat | None = entry
    for _ in range(len(now) + 1):
        if seen is None:
            return False
        if _same(seen, anchors.get(seen.pid)):
            return True
        seen = now.get(seen.parent)
    return False


#: The parent of all kernel threads (kthreadd), which have no environment.
_KTHREADD = 2

_TICKS = os.sysconf("SC_CLK_TCK")


def _ticks_since_boot() -> int:
    # Rounded down, as the kernel does for the start time: a process of the same tick counts as later.
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS) - 1
