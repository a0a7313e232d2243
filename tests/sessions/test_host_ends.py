"""The host ends without closing, forks, or is killed: nothing of ours stays (G3, G4)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shellkit
from shellkit import BlockingExecutor, ExecutorUnavailable, LocalExecutor

ROOT = str(Path(shellkit.__file__).parent.parent)


def host(script: str, **variables: str) -> subprocess.Popen[str]:
    """Start a Python program that uses shellkit."""
    environ = {**os.environ, "PYTHONPATH": ROOT, **variables}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


OPEN = """
    import asyncio, os, signal, sys, threading, time
    import shellkit.process.tree
    if {scan}: shellkit.process.tree.own_cgroup = lambda: None
    from shellkit import LocalExecutor
    executor = LocalExecutor(mode={mode!r}, shell="bash")
    shell = executor.sync()
    shell.run("sleep {a} & (setsid sleep {b} &)")
    def until_closed():
        try:
            shell.run("sleep 600")
        except shellkit.ExecutorClosed:
            pass
    from shellkit.process import reaper
    print("up", reaper._reaper.pid, executor._session.containment.path or "/none", flush=True)
"""


def leftovers(mark: str) -> list[str]:
    """Return the processes whose command line or environment holds `mark`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in text:
            found.append(pid)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("scan", [pytest.param(False, marks=pytest.mark.requires("cgroup")), True])
@pytest.mark.parametrize(
    "busy",
    [
        "",
        "shell.run('sleep {c}; while :; do sleep 1; done')",
        "shell.run('trap \"\" INT TERM HUP; while :; do :; done')",
    ],
)
def test_a_killed_host_leaves_nothing(
    mode: str, scan: bool, busy: str, sleeps: Any, eventually: Callable[..., None]
) -> None:
    """G4: 5 s after the host was SIGKILLed no shell, job, detached process, reaper or cgroup of it exists."""
    script = OPEN + f"    {busy or 'time.sleep(600)'}\n"
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    with host(
        script.format(scan=scan, mode=mode, a=sleeps(), b=sleeps(), c=sleeps()), SHELLKIT_TEST_MARK=mark
    ) as process:
        assert process.stdout is not None
        _, reaper, cgroup = process.stdout.readline().split()
        eventually(lambda: len(sleeps.left()) >= (3 if "sleep" in busy else 2))
        process.kill()
    eventually(lambda: not sleeps.left() and not leftovers(mark), 5.0)
    eventually(lambda: not Path(cgroup).exists() and not Path(f"/proc/{reaper}").exists(), 5.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(3)",
        "raise RuntimeError('bye')",
        "os.kill(os.getpid(), signal.SIGINT)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGHUP)",
        "os._exit(0)",
        "threading.Thread(target=until_closed, daemon=True).start(); time.sleep(0.2)",
        "asyncio.run(executor.run('true'))",
        "del executor, shell",
    ],
)
def test_a_host_that_ends_without_closing(mode: str, ending: str, sleeps: Any, eventually: Callable[..., None]) -> None:
    """G3: however the interpreter ends, nothing is left, it does not hang, and it says nothing of its own."""
    script = OPEN.format(scan=False, mode=mode, a=sleeps(), b=sleeps()) + f"    {ending}\n"
    process = host(script)
    out, err = process.communicate(timeout=20)
    assert out
    if "raise" not in ending and "SIGINT" not in ending:
        assert err == ""
    eventually(lambda: not sleeps.left(), 5.0)


def test_a_forked_child_gets_a_clear_error(either: BlockingExecutor, tmp_path: Path, sleeps: Any) -> None:
    """G4: in a forked child the executor says what is wrong; the parent's session and jobs are untouched."""
    either.run("kept=5")
    job = either.run(f"sleep {sleeps()} & true")
    answer, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            try:
                either.run("touch child-ran")
            except ExecutorUnavailable as error:
                os.write(told, str(error).encode())
                code = 0
            either.close()
        finally:
            os._exit(code)
    os.close(told)
    _, status = os.waitpid(pid, 0)
    text = os.read(answer, 4096).decode()
    os.close(answer)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "forked child" in text
    assert "make a new executor" in text
    assert either.run("ls; echo $kept").stdout in ("5\n", "\n")
    assert len(sleeps.left()) == (1 if job.background and job.background[0].running else 0)


def test_a_forked_child_that_exits_ends_nothing(sleeps: Any) -> None:
    """G4: a child that leaves by `sys.exit`, finalizers and all, takes nothing of its parent's along."""
    script = OPEN.format(scan=False, mode="persistent", a=sleeps(), b=sleeps()) + textwrap.indent(
        textwrap.dedent("""
            pid = os.fork()
            if pid == 0:
                sys.exit(0)
            os.waitpid(pid, 0)
            import multiprocessing
            child = multiprocessing.get_context("fork").Process(target=print, args=("child",))
            child.start(); child.join()
            result = shell.run("echo alive")
            assert (result.stdout, result.shell_state) == ("alive\\n", "alive"), result
            alive = sum("sleep" in open(f"/proc/{p}/cmdline").read() for p in result.background or ())
            print("fine")
            print(len([p for p in os.listdir("/proc") if p.isdigit() and os.path.exists(f"/proc/{p}/cmdline")
                       and any(x in open(f"/proc/{p}/cmdline").read() for x in ("LENGTHS",))]))
            shell.close()
        """).replace('"LENGTHS",', "".join(f"{length!r}, " for length in sleeps.lengths)),
        "    ",
    )
    process = host(script)
    out, err = process.communicate(timeout=30)
    assert err == ""
    assert "fine" in out
    assert int(out.split()[-1]) >= 2
    assert sleeps.left() == []


def test_a_forked_child_may_open_its_own(sleeps: Any) -> None:
    """G4: after a fork the child may open executors of its own, which end with it."""
    script = OPEN.format(scan=False, mode="persistent", a=sleeps(), b=sleeps()) + textwrap.indent(
        textwrap.dedent("""
            pid = os.fork()
            if pid == 0:
                with LocalExecutor(shell="bash").sync() as own:
                    ok = own.run("echo own").stdout == "own\\n"
                os._exit(0 if ok else 1)
            assert os.waitpid(pid, 0)[1] == 0
            assert shell.run("echo parent").stdout == "parent\\n"
            shell.close()
            print("fine")
        """),
        "    ",
    )
    out, err = host(script).communicate(timeout=30)
    assert err == ""
    assert out.endswith("fine\n")
    assert sleeps.left() == []


def test_a_killed_reaper_is_no_loss(shell: BlockingExecutor, eventually: Callable[..., None]) -> None:
    """G4: sessions work although somebody killed the process that guards them, and closing works too."""
    shell.run("true")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"shellkit-reaper" in Path(f"/proc/{pid}/cmdline").read_bytes() and (
                Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
            ):
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            continue
    assert shell.run("echo a").stdout == "a\n"
    shell.restart()
    with LocalExecutor(shell="bash").sync() as other:
        assert other.run("echo b").stdout == "b\n"
    assert shell.run("exit 3").exit_code == 3
    assert shell.run("echo c").stdout == "c\n"


def test_children_inherit_nothing_of_the_host(either: BlockingExecutor, tmp_path: Path) -> None:
    """B4, G: descriptors of the host, inheritable ones and those of other sessions, do not reach a command."""
    import socket

    with (
        socket.socket() as listening,
        open(tmp_path / "held", "w") as held,
        LocalExecutor(shell="bash").sync() as other,
    ):
        listening.listen()
        listening.set_inheritable(True)
        os.set_inheritable(held.fileno(), True)
        other.run("true")
        listing = either.run("ls -l /proc/self/fd").stdout
    assert "socket" not in listing
    assert "held" not in listing
    assert len(listing.splitlines()) == 5  # "total", 0, 1, 2 and the one that `ls` opened
