"""A session under random use: what every command printed is its own, and nothing leaks (B, C, D, F, G, I)."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shellkit import BlockingExecutor, LocalExecutor, ShellResult

words = st.text("abcxyz \t'\"$`\\!*{}()#äß😀", max_size=12)
codes = st.integers(0, 255)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


class Session(RuleBasedStateMachine):
    """Every rule knows what the session must say; the model is the variable `v`, `$?` and the directory."""

    def __init__(self) -> None:
        super().__init__()
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="state-machine-"))
        self.descriptors = len(os.listdir("/proc/self/fd"))
        self.shell: BlockingExecutor | None = self.open()
        self.value = ""
        self.code = 0
        self.where = self.root
        self.jobs: list[Any] = []

    def open(self) -> BlockingExecutor:
        return LocalExecutor(
            shell="bash", workdir=self.root, confinement="off", grace=1.0, max_output_bytes=4096
        ).sync()

    def run(self, command: str, **options: Any) -> ShellResult:
        assert self.shell is not None
        return self.shell.run(command, **options)

    @rule(out=words, err=words, code=codes)
    def prints(self, out: str, err: str, code: int) -> None:
        result = self.run(f"printf %s {quoted(out)}; printf %s {quoted(err)} >&2; (exit {code})")
        assert (result.stdout, result.stderr, result.exit_code) == (out, err, code)
        assert result.shell_state == "alive"
        self.code = code

    @rule(value=words)
    def sets(self, value: str) -> None:
        assert self.run(f"v={quoted(value)}").exit_code == 0
        self.value, self.code = value, 0

    @rule()
    def asks(self) -> None:
        result = self.run('printf \'%s|%s|%s\' $? "$v" "$PWD"')
        assert result.stdout == f"{self.code}|{self.value}|{self.where}"
        assert result.workdir == self.where
        self.code = 0

    @rule(name=st.sampled_from(["a", "b c"]))
    def moves(self, name: str) -> None:
        self.where = f"{self.root}/{name}"
        assert self.run(f"mkdir -p {quoted(self.where)}; cd {quoted(self.where)}").exit_code == 0
        self.code = 0

    @rule(text=st.sampled_from(["if", "echo )", "'", "}; x; {", "cat <<E\nx", "# c", "", "for x in"]))
    def confuses(self, text: str) -> None:
        result = self.run(text)
        assert not result.timed_out
        assert result.exit_code is not None
        self.code = result.exit_code

    @rule(code=codes, out=words)
    def ends_the_shell(self, code: int, out: str) -> None:
        result = self.run(f"printf %s {quoted(out)}; exit {code}")
        assert (result.stdout, result.exit_code, result.shell_state) == (out, code, "restored")
        self.code = code

    @rule(out=words)
    def times_out(self, out: str) -> None:
        result = self.run(f"printf %s {quoted(out)}; sleep 3819.7; echo never", timeout=0.05)
        assert (result.timed_out, result.exit_code) == (True, 124)
        assert result.stdout in (out, "")  # a loaded machine may not have come to it
        self.code = 124

    @rule(count=st.integers(0, 9000))
    def prints_much(self, count: int) -> None:
        result = self.run(f"head -c {count} /dev/zero | tr '\\0' x")
        assert result.stdout_omitted == max(0, count - 4096)
        assert result.stdout.count("x") == min(count, 4096)
        self.code = 0

    @precondition(lambda self: len(self.jobs) < 5)
    @rule(out=words)
    def leaves_a_job(self, out: str) -> None:
        result = self.run(f"{{ sleep 3819.8; }} & printf %s {quoted(out)}")
        assert result.stdout == out
        self.jobs += result.background
        assert result.background[0].running
        self.code = 0

    @precondition(lambda self: self.jobs)
    @rule()
    def stops_a_job(self) -> None:
        job = self.jobs.pop()
        assert job.running
        job.stop()
        assert not job.running

    @rule(out=words)
    def runs_elsewhere(self, out: str) -> None:
        result = self.run('printf \'%s|%s\' "$v" "$PWD"', env={"v": out}, workdir="/")
        assert result.stdout == f"{out}|/"
        assert result.workdir == self.where
        self.code = 0

    @rule()
    def restarts(self) -> None:
        assert self.shell is not None
        self.shell.restart()
        self.value, self.code, self.where = "", 0, self.root

    @rule()
    def closes(self) -> None:
        assert self.shell is not None
        self.shell.close()
        assert not any(job.running for job in self.jobs)
        self.shell = self.open()
        self.value, self.code, self.where, self.jobs = "", 0, self.root, []

    @invariant()
    def descriptors_are_bounded(self) -> None:
        # What a session and each of its jobs may hold; the exact proof is the fixture `nothing_left`.
        assert len(os.listdir("/proc/self/fd")) - self.descriptors <= 20 + 8 * (len(self.jobs) + 1)

    def teardown(self) -> None:
        assert self.shell is not None
        self.shell.close()
        shutil.rmtree(self.root)


TestSession = Session.TestCase
TestSession.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
