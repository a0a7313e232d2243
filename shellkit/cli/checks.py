"""What `shellkit doctor` looks at. Each check tries the thing itself and returns what it found as a value.

A check never raises, changes nothing, and gives back whatever it opened.
"""

from __future__ import annotations

import os
import platform
import resource
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Literal

import attrs

from ..errors import ShellkitError
from ..executors.local import LocalExecutor
from ..policy.approvals import displayed
from ..process.tree import containment
from ..resolver import resolve
from ..result import ShellResult

__all__ = ["Check", "Status", "all_checks"]

Status = Literal["ok", "limited", "refused", "absent", "failed"]

_GROUPS = ("Session", "Shells", "Isolation", "Limits", "Environment")

#: Shells that shellkit can speak to; the others are mentioned where they are installed.
_FAMILIES = ("bash", "dash", "busybox", "zsh", "ksh", "mksh", "sh")
_OTHERS = ("fish", "nu", "tcsh", "pwsh", "xonsh", "elvish")
#: Pipes of a session that hold data: stdin, the control channel, stdout, stderr. 16 pages each (pipe(7)).
_PIPE_PAGES = 4 * 16
#: dash tells its version to nobody; busybox is asked by its help.
_VERSIONS = 'echo "${BASH_VERSION-}${ZSH_VERSION-}${KSH_VERSION-}"'
#: Fewer sessions than this are worth a word.
_FEW = 50


@attrs.frozen
class Check:
    """What one look has found.

    Attributes:
        group: what it belongs to, as a heading.
        name: what was looked at.
        status: "ok"; "limited" (works, but less than it could); "refused" (shellkit will not use it);
            "absent" (not there, and not needed); "failed" (no session works).
        found: a fact.
        remedy: what to do about it; "" if nothing needs to be done.
    """

    group: str
    name: str
    status: Status
    found: str
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return plain values for JSON."""
        return attrs.asdict(self)


def all_checks() -> list[Check]:
    """Look at everything."""
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    session = list(_session(descriptors))
    checks = [_system(), *_shells(), *_isolation(), *_limits(), *session]
    return sorted(checks, key=lambda check: _GROUPS.index(check.group))


# -- a session, really run -----------------------------------------------------------------------------


def _system() -> Check:
    found = f"{platform.system()} {platform.release()}, {platform.machine()}, Python {platform.python_version()}"
    if sys.platform == "linux":
        return Check("Session", "system", "ok", found)
    return Check("Session", "system", "failed", found, "use Linux; on Windows a WSL distribution is one")


def _session(descriptors: int) -> Iterator[Check]:
    try:
        executor = LocalExecutor(timeout=10.0)
        with executor.sync() as session:
            session.run("SHELLKIT_DOCTOR=kept")
            ended = session.run("exit 3")
            after = session.run("echo $SHELLKIT_DOCTOR $$")
            kept, _, pid = after.stdout.strip().partition(" ")
            in_use = len(os.listdir("/proc/self/fd")) - descriptors
            children = _access_to(pid)
    except (ShellkitError, ValueError, OSError) as error:
        yield Check("Session", "runs", "failed", " ".join(str(error).split()), "mend what the message names")
        return
    found = f"{executor.shell.name} ({executor.shell.program}) outlived `exit 3` with its state"
    if (ended.exit_code, kept) == (3, "kept"):
        yield Check("Session", "runs", "ok", found)
    else:
        yield Check("Session", "runs", "failed", f"`exit 3` gave {_shown(ended)}, then {_shown(after)}", _REPORT)
    yield children
    yield _open_files(in_use)
    yield _environment(executor)


_REPORT = "report this with the output of shellkit doctor --json"


def _shown(result: ShellResult) -> str:
    return f"exit code {result.exit_code} and {result.stdout[:40]!r}"


def _environment(executor: LocalExecutor) -> Check:
    removed = executor.environment().removed
    if not removed:
        return Check("Environment", "names left out", "ok", "none: no name looks like a secret or a start-up hook")
    names = displayed(", ".join(removed))  # a name may hold anything but "=" and NUL
    return Check("Environment", "names left out", "ok", names, "keep_env=[NAME] passes what commands need")


# -- shells --------------------------------------------------------------------------------------------


def _shells() -> Iterator[Check]:
    for family in _FAMILIES:
        if (path := _where(family)) is not None:
            yield _try_shell(family, path)
        else:
            yield Check("Shells", family, "absent", "not installed", f"install the package {family}, if you want it")
    for name in _OTHERS:
        if (path := _where(name)) is not None:
            yield _try_shell(name, path)


def _where(name: str) -> str | None:
    try:
        return resolve([name], environ=os.environ).program
    except (ShellkitError, ValueError):  # refused, or not there: `which` tells these apart
        return shutil.which(name)


def _try_shell(name: str, path: str) -> Check:
    try:
        with LocalExecutor(shell=[path], timeout=10.0, start_timeout=5.0).sync() as session:  # noqa: S604  (its purpose)
            ask = f"{shlex.quote(path)} --help 2>&1" if name == "busybox" else _VERSIONS
            version = _version(session.run(ask).stdout)
            kept = session.run("a=1").ok and session.run('test "$a" = 1').ok
    except (ShellkitError, ValueError, OSError) as error:
        return Check("Shells", name, "refused", f"{path}: {' '.join(str(error).split())}")
    if not kept:
        return Check("Shells", name, "limited", f"{path} does not keep a variable", _REPORT)
    return Check("Shells", name, "ok", f"{path}, {version or 'does not tell its version'}")


def _version(printed: str) -> str:
    first = printed.strip().partition("\n")[0]
    return first.removeprefix("Version ").removeprefix("@(#)").removesuffix(" multi-call binary.")


# -- isolation -----------------------------------------------------------------------------------------


def _isolation() -> Iterator[Check]:
    yield Check(
        "Isolation",
        "LocalExecutor",
        "limited",
        f"commands run as {_user()} with all that this user may do",
        "run shellkit itself in a container or as an unprivileged user if commands are not trusted",
    )
    yield _containment()
    yield _tries("pidfd", lambda: os.pidfd_open(os.getpid()), "needs Linux 5.3, and a seccomp profile that allows it")
    yield _tries("memfd", lambda: os.memfd_create("shellkit"), "needs Linux 3.17, and a seccomp profile that allows it")
    for program, package in (("bwrap", "bubblewrap"), ("docker", "docker.io"), ("podman", "podman")):
        path = shutil.which(program)
        if path is not None:
            yield Check("Isolation", program, "ok", path)
        else:
            yield Check("Isolation", program, "absent", "not installed", f"install {package} to keep commands apart")


def _user() -> str:
    return "root" if os.geteuid() == 0 else f"user {os.geteuid()}"


def _containment() -> Check:
    group = containment(f"doctor-{secrets.token_hex(4)}")
    complete, path = group.complete, group.path
    group.close()
    if complete:
        return Check("Isolation", "kill", "ok", f"complete: a cgroup holds all that a command starts ({path})")
    return Check(
        "Isolation",
        "kill",
        "limited",
        "best effort, by parentage and environment: what leaves its parent and clears its environment survives",
        "let shellkit make cgroups (v2, Linux 5.14): systemd-run --user --scope -p Delegate=yes COMMAND",
    )


def _tries(name: str, open_it: Callable[[], int], remedy: str) -> Check:
    try:
        os.close(open_it())
    except (OSError, AttributeError) as error:
        return Check("Isolation", name, "failed", str(error), remedy)
    return Check("Isolation", name, "ok", "available")


def _access_to(pid: str) -> Check:
    """Whether /proc tells what a child does: it is how a shell that has lost its wrapper is noticed."""
    scope = _read("/proc/sys/kernel/yama/ptrace_scope")
    yama = "Yama is off" if scope is None else f"Yama ptrace_scope is {scope}"
    try:
        for name in ("environ", "syscall"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                file.read(1)
    except OSError as error:
        found = f"/proc/{pid} of a child: {error.strerror}; {yama}"
        remedy = "sysctl kernel.yama.ptrace_scope=1 (or mount /proc without hidepid)"
        return Check("Isolation", "/proc of children", "limited", found, remedy)
    return Check("Isolation", "/proc of children", "ok", f"readable ({yama})")


# -- limits --------------------------------------------------------------------------------------------


def _open_files(each: int) -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = max(0, soft - 20) // max(1, each)
    found = f"{soft} (at most {hard}); a session takes {each}: room for about {room} sessions"
    remedy = "" if room >= _FEW else f"ulimit -n {min(hard, 4096) if hard > 0 else 4096}, before starting Python"
    return Check("Limits", "open files", "ok" if room >= _FEW else "limited", found, remedy)


def _limits() -> Iterator[Check]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    enough = soft == resource.RLIM_INFINITY or soft >= 4 * _FEW
    shown = "no limit" if soft == resource.RLIM_INFINITY else str(soft)
    remedy = "" if enough else "ulimit -u 4096, or raise nproc in /etc/security/limits.conf"
    yield Check("Limits", "processes", "ok" if enough else "limited", f"{shown} for this user", remedy)
    pages = _read("/proc/sys/fs/pipe-user-pages-soft")
    if pages is not None and pages.isdigit():
        yield _pipe_pages(int(pages))


def _pipe_pages(pages: int) -> Check:
    name = "pipe-user-pages-soft"
    if pages == 0 or os.geteuid() == 0:
        return Check("Limits", name, "ok", f"{pages}; no limit for {'root' if pages else 'anybody'}")
    room = pages // _PIPE_PAGES
    found = f"{pages}: after about {room} sessions new pipes hold two pages and output drains slower (pipe(7))"
    remedy = "" if room >= _FEW else "sysctl fs.pipe-user-pages-soft=65536"
    return Check("Limits", name, "ok" if room >= _FEW else "limited", found, remedy)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None
