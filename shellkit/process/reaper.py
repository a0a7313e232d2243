"""Ends a host's shells when the host can no longer do it itself: SIGKILL, a crash, the OOM killer.

One small `sh` per host process reads a pipe from it. While the host lives it learns which sessions there
are; at end-of-file it kills what is left and goes. `PR_SET_PDEATHSIG` is no substitute: it follows the
*thread* that spawned (prctl(2)), and does not reach grandchildren.

The one piece of module-level state in shellkit, because what it guards is the process: the reaper is shared
by all sessions, started with the first and ended with the last.
"""

from __future__ import annotations

import os
import threading

from .spawn import spawn

__all__ = ["unwatch", "watch", "watch_directory"]

_SCRIPT = r"""
trap '' HUP INT QUIT TERM PIPE TSTP
set --
while read -r op cookie pid cgroup; do
  case $op in
  +) set -- "$@" "$cookie $pid $cgroup" ;;
  -) for entry; do shift; case $entry in "$cookie "*) ;; *) set -- "$@" "$entry" ;; esac; done ;;
  esac
done
for round in 1 2 3 4 5 6 7 8; do
  left=
  for entry; do
    cookie=${entry%% *}; entry=${entry#* }; pid=${entry%% *}; cgroup=${entry#* }
    [ "$pid" = - ] && { rm -f "$cgroup"/*; rmdir "$cgroup"; continue; }
    if [ -n "$cgroup" ]; then
      [ -e "$cgroup/cgroup.kill" ] && { echo 1 >"$cgroup/cgroup.kill"; left=1; }
      rmdir "$cgroup"/*/ "$cgroup"
    fi
    # Without a cgroup, or for a shell that was not inside yet.
    grep -qs "SHELLKIT_SESSION=$cookie" "/proc/$pid/environ" && kill -KILL "-$pid" "$pid"
    for file in $(grep -ls "SHELLKIT_SESSION=$cookie" /proc/[0-9]*/environ); do
      file=${file#/proc/}; kill -KILL "${file%%/*}" && left=1
    done
  done
  [ -z "$left" ] && break
  [ "$round" -gt 2 ] && sleep 0.2
done
"""


class _Reaper:
    """The process, and the end of the pipe that keeps it waiting."""

    def __init__(self) -> None:
        reader, self.pipe = os.pipe2(os.O_CLOEXEC)
        try:
            null = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
            try:
                environ = {b"PATH": b"/usr/bin:/bin"}
                self.pid = spawn(["/bin/sh", "-c", _SCRIPT, "shellkit-reaper"], environ, reader, null, null)
            finally:
                os.close(null)
        except BaseException:
            os.close(self.pipe)
            raise
        finally:
            os.close(reader)

    def tell(self, line: str) -> None:
        os.write(self.pipe, line.encode())

    def stop(self) -> None:
        os.close(self.pipe)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:  # the host waits for any child, and was faster
            return


_lock = threading.Lock()
_reaper: _Reaper | None = None
#: What it has been told of each session and directory.
_sessions: dict[str, str] = {}


def watch(cookie: str, shell: int, cgroup: str) -> None:
    """See to it that a session does not outlive this process.

    Args:
        cookie: the session's name in its processes' environment.
        shell: process id of its shell (a new one replaces the old).
        cgroup: directory that holds the session, or "".
    """
    _watch(cookie, f"{shell} {cgroup}")


def watch_directory(name: str, path: str) -> None:
    """See to it that a directory of plain files (a socket, say) does not outlive this process.

    Args:
        name: for `unwatch`; without blanks, and no other's.
        path: the directory.
    """
    _watch(name, f"- {path}")


def _watch(name: str, what: str) -> None:
    with _lock:
        known = name in _sessions
        _sessions[name] = line = f"+ {name} {what}\n"
        _tell(f"- {name}\n{line}" if known else line)


def unwatch(cookie: str) -> None:
    """Forget what has been closed; the last one ends the reaper. Unknown names are ignored."""
    global _reaper
    with _lock:
        if _sessions.pop(cookie, None) is None:
            return
        if _sessions:
            _tell(f"- {cookie}\n")
        elif _reaper is not None:
            ended, _reaper = _reaper, None
            ended.stop()


def _tell(line: str) -> None:
    global _reaper
    if _reaper is not None:
        try:
            _reaper.tell(line)
        except BrokenPipeError:  # somebody killed it
            _reaper.stop()
        else:
            return
    _reaper = _Reaper()
    for known in _sessions.values():
        _reaper.tell(known)


def _forked() -> None:
    # The child must not keep the pipe open: the reaper would then outwait the parent's death.
    global _reaper, _lock
    _lock = threading.Lock()
    _sessions.clear()
    if _reaper is not None:
        os.close(_reaper.pipe)
        _reaper = None


os.register_at_fork(after_in_child=_forked)
