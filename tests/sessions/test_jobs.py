"""What a command leaves running (I1-I3)."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, LocalExecutor
from shellkit.process.tree import CgroupContainment, JobGroup

Eventually = Callable[..., None]


@pytest.mark.parametrize(
    "command",
    [
        "sleep S & echo started",
        "sh -c 'sleep S &'; echo started",
        "nohup sleep S & echo started",
        "bash -c 'sleep S & sleep 0.05; echo started'",
        "(sleep S; echo never) & echo started",
        "(setsid sleep S &) ; echo started",
        "sleep S | cat & echo started",
        "{ sleep S; } > file & echo started",
        "sleep S >&- 2>&- <&- & echo started",
        "coproc { sleep S; }; echo started",
        "exec 7> >(sleep S); echo started",
        "sleep S & disown; echo started",
        "f() { sleep S & }; f; echo started",
        "x=$(sleep S >/dev/null 2>&1 & echo started); echo $x",
        "set -m; sleep S & echo started",
    ],
)
def test_a_job_holds_nothing_up(
    either: BlockingExecutor, containment: str, command: str, sleeps: Any, eventually: Any
) -> None:
    """I1: a command returns when it has ended, whatever it leaves running and whatever that holds; `close` ends it."""
    result = either.run(command.replace("S", sleeps()), timeout=10)
    assert result.stdout.startswith("started\n")
    assert (result.exit_code, result.timed_out) == (0, False)
    assert result.duration < 2
    (job,) = result.background
    eventually(sleeps.left)  # the child may not have come to its `exec` yet
    assert job.running
    assert either.run("echo next").stdout == "next\n"
    either.close()
    assert sleeps.left() == []


def test_a_job_is_one_object(shell: BlockingExecutor, sleeps: Any) -> None:
    """I1: one job stands for everything that a command left: its processes, its output, its end."""
    first, second = sleeps(), sleeps()
    result = shell.run(f"sleep {first} & sleep {second} & echo $!")
    (job,) = result.background
    assert len(job.pids) == 2
    assert int(result.stdout) in job.pids
    assert job.running
    job.stop()
    assert not job.running
    assert sleeps.left() == []


def test_a_jobs_output_is_the_jobs(shell: BlockingExecutor, tmp_path: Path) -> None:
    """I1, I2: what a job writes later is read from the job, both streams, each byte once, and in no result."""
    os.mkfifo(tmp_path / "gate")
    os.mkfifo(tmp_path / "gate2")
    result = shell.run("{ read x < gate; echo out; echo err >&2; read x < gate2; echo out2; } & echo started")
    assert result.stdout == "started\n"
    (job,) = result.background
    assert job.read().stdout == ""
    assert shell.run("echo go > gate; echo mine").stdout == "mine\n"
    give_up = time.monotonic() + 5
    seen = job.read()
    out, err = seen.stdout, seen.stderr
    while (out, err) != ("out\n", "err\n") and time.monotonic() < give_up:
        seen = job.read()
        out, err = out + seen.stdout, err + seen.stderr
    assert (out, err) == ("out\n", "err\n")
    assert job.running
    shell.run("echo go > gate2")
    assert job.wait(5).stdout == "out2\n"
    assert (job.read().stdout, job.running) == ("", False)


def test_a_job_that_has_ended_can_still_be_read(shell: BlockingExecutor, eventually: Eventually) -> None:
    """I1: both streams of an ended job are readable; a second read is empty; `stop` and `wait` do no harm."""
    (job,) = shell.run("{ sleep 0.05; echo out; echo err >&2; exit 9; } &").background
    output = job.wait(5)
    assert (output.stdout, output.stderr) == ("out\n", "err\n")
    assert not job.running
    again = job.wait()
    assert (again.stdout, again.stderr) == ("", "")
    job.stop()


def test_wait_with_a_timeout(shell: BlockingExecutor, sleeps: Any) -> None:
    """I1: waiting for a job may be bounded; the message names the remedy."""
    (job,) = shell.run(f"sleep {sleeps()} &").background
    with pytest.raises(TimeoutError, match="stop"):
        job.wait(0.05)
    job.stop()


def test_jobs_under_asyncio(sleeps: Any) -> None:
    """I1: `read`, `wait` and `stop` are coroutines; a cancelled `wait` leaves the job alone."""

    async def main() -> None:
        async with LocalExecutor(shell="bash") as shell:
            (job,) = (await shell.run(f"echo a; (sleep 0.05; echo b; sleep {sleeps()}) &")).background
            waiting = asyncio.create_task(job.wait())
            await asyncio.sleep(0.02)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert job.running
            waiting = asyncio.create_task(job.wait())
            await job.stop()
            text = (await waiting).stdout + (await job.read()).stdout
            assert text in ("", "b\n")
            assert not job.running
            assert sleeps.left() == []

    asyncio.run(main())


def test_stop_kills_what_ignores_the_request(open_shell: Any, sleeps: Any) -> None:
    """I1: `stop` asks, then kills, within the grace period."""
    shell = open_shell(grace=1.0)
    (job,) = shell.run(f"(trap '' TERM INT HUP; sleep {sleeps()}; sleep {sleeps()}) &").background
    begun = time.monotonic()
    job.stop()
    assert time.monotonic() - begun < 2.0
    assert not job.running
    assert sleeps.left() == []


def test_a_continuous_writer_holds_nothing_up(shell: BlockingExecutor) -> None:
    """I1, I2: a job that never stops writing neither delays its own command nor shows in later ones."""
    result = shell.run("(while :; do echo tick; done) & echo fg-done", timeout=10)
    assert result.stdout.replace("tick\n", "") == "fg-done\n"
    assert not result.timed_out
    for _ in range(20):
        assert shell.run("echo next").stdout == "next\n"
    (job,) = result.background
    assert "tick" in job.read().stdout
    job.stop()


def test_a_job_is_never_blocked_by_its_pipe(shell: BlockingExecutor, tmp_path: Path, eventually: Eventually) -> None:
    """I2: a job may write more than any pipe holds while nobody reads it."""
    (job,) = shell.run("(seq 1 200000; seq 1 100000 >&2; touch written) &").background
    eventually(lambda: (tmp_path / "written").exists(), 20)
    output = job.wait(10)
    assert output.stdout.endswith("200000\n")
    assert output.stderr.endswith("100000\n")
    assert output.stdout_omitted > 0


def test_a_kept_descriptor_is_no_result(shell: BlockingExecutor) -> None:
    """I2: what goes through a descriptor kept by `exec 3>&1` is in no later result and blocks nothing."""
    first = shell.run("exec 3>&1; echo now >&3; echo one")
    assert first.stdout == "now\none\n"
    for number in range(3):
        result = shell.run(f"echo late >&3; echo {number}")
        assert (result.stdout, result.exit_code) == (f"{number}\n", 0)
    result = shell.run("head -c 1000000 /dev/zero >&3; echo end", timeout=10)
    assert (result.stdout, result.exit_code) == ("end\n", 0)
    assert shell.run("exec 3>&-; echo closed").stdout == "closed\n"


def test_jobs_survive_the_end_of_their_shell(shell: BlockingExecutor, containment: str, sleeps: Any) -> None:
    """I3: jobs outlive `exit`, a kill and a time-out of later commands, and can still be stopped."""
    (job,) = shell.run(f"sleep {sleeps()} & true").background
    assert shell.run("exit 3").exit_code == 3
    assert job.running
    assert shell.run("kill -9 $$").exit_code == 137
    assert job.running
    assert shell.run("sleep 5", timeout=0.05).timed_out
    assert job.running
    job.stop()
    assert sleeps.left() == []


def test_a_job_of_a_command_that_ended_its_shell(shell: BlockingExecutor, containment: str, sleeps: Any) -> None:
    """I1, D6: a command may leave a job and end its shell at once."""
    result = shell.run(f"sleep {sleeps()} & echo a; exit 3")
    assert (result.stdout, result.exit_code) == ("a\n", 3)
    (job,) = result.background
    assert job.running
    job.stop()
    assert sleeps.left() == []


def test_the_shells_own_view_of_jobs(shell: BlockingExecutor) -> None:
    """I1, D1: `$!`, `wait`, `jobs` and `fg`-less job control of the shell are the user's own."""
    assert shell.run("(sleep 0.1; exit 7) & echo started").stdout == "started\n"
    assert shell.run('wait $!; echo "rc=$?"').stdout == "rc=7\n"
    assert shell.run("wait; echo all; jobs; jobs -p | wc -l | tr -d ' '").stdout == "all\n0\n"
    shell.run("sleep 0.05 & sleep 0.05 &")
    assert shell.run("jobs -p | wc -l | tr -d ' '; wait; echo done").stdout.endswith("done\n")


def test_an_ended_job_is_no_background(either: BlockingExecutor) -> None:
    """I1: a command whose children have all ended leaves no job."""
    assert either.run("sleep 0 & wait").background == ()
    assert either.run("true | cat; (true); echo $(true)").background == ()


@pytest.mark.slow
def test_the_sixty_fifth_job_is_refused(shell: BlockingExecutor, sleeps: Any) -> None:
    """I3: 64 jobs are the limit; the note at the limit says how to stop one, and there is room again afterwards."""
    jobs = [shell.run(f"sleep {sleeps()} &").background[0] for _ in range(64)]
    over = shell.run(f"sleep {sleeps()} & echo over")
    assert over.stdout == "over\n"
    assert any("64" in note and "kill" in note for note in over.notes)
    assert len(sleeps.left()) <= 64
    jobs[0].stop()
    assert shell.run(f"sleep {sleeps()} &").notes == ()
    shell.close()
    assert sleeps.left() == []


def test_fifos_and_coprocesses(either: BlockingExecutor) -> None:
    """I1: named pipes and coprocesses work as in any script, many times over."""
    for _ in range(10):
        assert either.run("rm -f p; mkfifo p; timeout 0.05 head -c1 p; echo rc=$?").stdout == "rc=124\n"
        assert either.run("(sleep 0.01; echo data > p) & cat p; wait").stdout == "data\n"
        script = 'coproc C { cat; }; echo hi >&${C[1]}; read -u ${C[0]} x; echo "got $x"; kill $C_PID'
        assert either.run(script).stdout == "got hi\n"


def test_jobs_of_a_stateless_session(open_shell: Any, sleeps: Any) -> None:
    """I1, I3: in stateless mode, too, a job outlives its command, is read, and ends with `close`."""
    shell = open_shell(mode="stateless")
    result = shell.run(f"(sleep 0.05; echo later; sleep {sleeps()}) & echo started")
    assert result.stdout == "started\n"
    (job,) = result.background
    assert job.running
    assert shell.run("echo next").stdout == "next\n"
    job.stop()
    assert not job.running
    assert sleeps.left() == []


def test_no_child_becomes_a_zombie(either: BlockingExecutor, eventually: Eventually) -> None:
    """I3: finished jobs and killed commands do not pile up as zombies of the host."""
    for _ in range(20):
        either.run("sleep 0.001 &")
        either.run("sleep 5", timeout=0.01)

    def zombies() -> list[str]:
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "Z" and parent == str(os.getpid()):
                found.append(pid)
        return found

    eventually(lambda: not zombies(), 2.0)


@pytest.mark.requires("cgroup")
def test_a_new_shell_takes_no_job_along(shell: BlockingExecutor, sleeps: Any) -> None:
    """I1, I3: a shell that goes into the cgroup later (a restored one, a spare) leaves earlier jobs where they are."""
    job = shell.run(f"sleep {sleeps()} & echo started").background[0]
    shell.run("exit 3")
    shell.run("true")
    containment = shell.executor._session.containment  # type: ignore[union-attr]
    pids = set(job.pids)
    for pid in list(containment.shells):
        containment.enter(pid)  # what the attendant does 50 ms after a shell's start
    assert pids.isdisjoint(containment.running())
    assert shell.run("echo next").background == ()
    assert job.running
    job.stop()


@pytest.mark.requires("cgroup")
def test_a_job_that_is_left_while_its_shell_enters_the_cgroup(
    shell: BlockingExecutor, sleeps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I3: what was found as the running command's and is a job a moment later is not ended with the next command."""
    entering, aside = threading.Event(), threading.Event()
    loose, set_aside = CgroupContainment._loose, CgroupContainment.set_aside

    def find_and_wait(containment: CgroupContainment) -> list[int]:
        found = loose(containment)
        if threading.current_thread().name == "shellkit-attendant" and found:
            entering.set()
            aside.wait(0.2)
        return found

    def set_aside_and_tell(containment: CgroupContainment, pid: int) -> JobGroup | None:
        group = set_aside(containment, pid)
        aside.set()
        return group

    def go() -> None:
        entering.wait(5)
        (tmp_path / "go").touch()

    monkeypatch.setattr(CgroupContainment, "_loose", find_and_wait)
    monkeypatch.setattr(CgroupContainment, "set_aside", set_aside_and_tell)
    going = threading.Thread(target=go)
    going.start()
    (job,) = shell.run(f"{{ sleep {sleeps()}; }} & until [ -e go ]; do :; done").background
    going.join()
    assert shell.run(f"sleep {sleeps()}", timeout=0.05).timed_out
    assert job.running
    job.stop()
