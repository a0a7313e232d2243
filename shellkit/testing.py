"""For those who test executors: a scripted shell for timing corners, and the contract as a suite of tests.

`ExecutorContract` is the promise that every executor keeps, as tests that pytest collects from a subclass:

    class TestMine(ExecutorContract):
        def make_executor(self, **options):
            return MyExecutor(**options)

`ScriptedExecutor` runs real sessions on shells that follow a script, so that a report in twenty pieces, a shell
that never answers or one that dies at the worst moment can be had at will. Nothing outside of tests imports this.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import attrs

from .errors import ExecutorClosed, InvalidCommand, InvalidWorkdir
from .executors.base import Executor
from .executors.blocking import BlockingExecutor
from .policy.confinement import Confinement
from .process.base import Process
from .process.pipes import PipeSource
from .process.tree import Containment
from .protocol.bash import BashDialect
from .result import ShellResult
from .sessions.base import Session, SessionSettings
from .sessions.persistent import PersistentSession
from .sessions.turnstile import Turnstile

__all__ = [
    "Await",
    "Exit",
    "Expect",
    "ExecutorContract",
    "Hang",
    "Report",
    "ScriptedExecutor",
    "ScriptedProcess",
    "Send",
    "Step",
]

# -- a shell that follows a script ---------------------------------------------------------------------

Signal = Literal["interrupt", "terminate", "kill", "close"]

#: Above every process id there can be (PID_MAX_LIMIT, proc(5)): nothing real is ever looked at or signalled.
_NO_PROCESS = (1 << 22) + 1
_TOKEN = re.compile(rb"[0-9a-f]{24}")


@attrs.frozen
class Expect:
    """Wait until the session has written something that `pattern` is found in; that much is then consumed."""

    pattern: bytes


@attrs.frozen
class Send:
    """Write to the control channel, `%TOKEN%` replaced by the session's token.

    Attributes:
        data: what to write.
        chunk: bytes a write; 0 writes it at once. The next write waits until the session has read the last.
    """

    data: bytes
    chunk: int = 0


def Report(exit_code: int = 0, workdir: bytes = b"/", *, chunk: int = 0) -> Send:  # noqa: N802  (reads as a step)
    """Return the step that reports the end of a command (see `protocol/machine.py`)."""
    return Send(b"%%TOKEN%% E %d %b\0" % (exit_code, workdir), chunk)


@attrs.frozen
class Await:
    """Wait until the session interrupts, terminates or kills the shell, or closes its stdin."""

    signal: Signal


@attrs.frozen
class Exit:
    """End the process; what has been sent before can still be read."""

    code: int = 0


@attrs.frozen
class Hang:
    """Never answer again; only a kill ends it."""


Step = Expect | Send | Await | Exit | Hang


class ScriptedProcess(Process):
    """A `Process` whose shell is a thread that follows a script, on real pipes.

    At the end of the script it stays silent until it is killed or its stdin closes, as an idle shell would.
    `failure` says which step did not come to pass.

    Args:
        script: what the shell does.
        pipes: where the control channel comes from.
        patience: seconds that `Expect` and `Await` wait.
    """

    def __init__(self, script: Sequence[Step], pipes: PipeSource, patience: float = 10.0) -> None:
        self.pid = _NO_PROCESS
        self.failure = ""
        self.signals: list[Signal] = []
        self._script = tuple(script)
        self._patience = patience
        self._status: int | None = None
        self._received = b""
        self._token = b""
        self._mutex = threading.Lock()
        self._shell_stdin, self.stdin = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.stdin, False)
        os.set_blocking(self._shell_stdin, False)
        self.control = pipes.make()
        self._writer = os.open(self.control.path, os.O_WRONLY | os.O_CLOEXEC)
        self.exited = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._signalled = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._follow, name="shellkit-scripted", daemon=True)
        self._thread.start()

    # -- what the session sees -------------------------------------------------------------------------

    def interrupt(self) -> None:
        self._signal("interrupt")

    def terminate(self) -> None:
        self._signal("terminate")

    def kill(self) -> None:
        self._signal("kill")

    def kill_shell(self) -> None:
        self._signal("kill")

    def command_survives(self) -> bool:
        return False

    def exit_code(self) -> int | None:
        return self._status

    def close_stdin(self) -> None:
        fd, self.stdin = self.stdin, -1
        if fd >= 0:
            os.close(fd)
            self._signal("close")

    def close(self) -> None:
        self.close_stdin()
        if self.exited < 0:
            return
        self._signal("kill")
        self._thread.join()
        self.control.close()
        os.close(self.exited)
        os.close(self._signalled)
        self.exited = -1

    def _signal(self, name: Signal) -> None:
        with self._mutex:
            self.signals.append(name)
        os.eventfd_write(self._signalled, 1)

    # -- the shell: everything below runs in the thread ------------------------------------------------

    def _follow(self) -> None:
        code = 137
        try:
            code = self._play()
        except _Killed:
            pass
        finally:
            # As the kernel does: first the descriptors go, then the end is told.
            os.close(self._writer)
            os.close(self._shell_stdin)
            self._status = code
            os.eventfd_write(self.exited, 1)

    def _play(self) -> int:
        for step in self._script:
            match step:
                case Expect(pattern):
                    self._wait(lambda pattern=pattern: self._consume(pattern), step)
                case Send(data, chunk):
                    self._send(data.replace(b"%TOKEN%", self._token), chunk)
                case Await(signal):
                    self._wait(lambda signal=signal: signal in self.signals, step)
                case Exit(code):
                    return code
                case Hang():
                    self._wait(lambda: False, None)
        self._wait(lambda: "close" in self.signals, None)
        return 0

    def _wait(self, come: Any, step: Step | None) -> None:
        give_up = time.monotonic() + self._patience
        poller = select.poll()
        poller.register(self._shell_stdin, select.POLLIN)
        poller.register(self._signalled, select.POLLIN)
        while not come():
            if "kill" in self.signals:
                if step is not None:
                    self.failure = f"killed while it waited for {step}; had received {self._received!r}"
                raise _Killed
            left = None if step is None else give_up - time.monotonic()
            if left is not None and left <= 0:
                self.failure = f"waited {self._patience:g} s for {step}; had received {self._received!r}"
                raise _Killed
            for fd, _ in poller.poll(None if left is None else left * 1000):
                if fd == self._signalled:
                    os.eventfd_read(fd)
                elif not self._read():
                    poller.unregister(fd)

    def _read(self) -> bool:
        data = os.read(self._shell_stdin, 1 << 16)
        self._received += data
        if not self._token and (token := _TOKEN.search(self._received)):
            self._token = token.group()
        return bool(data)

    def _consume(self, pattern: bytes) -> bool:
        found = re.search(pattern, self._received, re.DOTALL)
        if found:
            self._received = self._received[found.end() :]
        return found is not None

    def _send(self, data: bytes, chunk: int) -> None:
        from .process.procfs import bytes_waiting

        size = chunk or len(data)
        for start in range(0, len(data), size):
            os.write(self._writer, data[start : start + size])
            # The next piece shall not join this one in the pipe. Whoever reads is another thread, or a poll away.
            while start + size < len(data) and bytes_waiting(self._writer) and "kill" not in self.signals:
                os.sched_yield()


class _Killed(Exception):
    """The script is over before its end."""


class ScriptedExecutor(Executor):
    """An executor whose shells follow scripts: the first shell the first one, and so on.

    Args:
        scripts: one for every shell that may be started; more are a failure.
        timeout: as `LocalExecutor`; likewise `grace`, `start_timeout` and `max_output_bytes`.

    Attributes:
        processes: the shells that have been started.
    """

    def __init__(
        self,
        *scripts: Sequence[Step],
        timeout: float | None = 30.0,
        grace: float = 2.0,
        start_timeout: float = 10.0,
        max_output_bytes: int = 65536,
    ) -> None:
        super().__init__(timeout=timeout, grace=grace)
        self._scripts = list(scripts)
        self._start_timeout = start_timeout
        self._max_output_bytes = max_output_bytes
        self.processes: list[ScriptedProcess] = []

    @property
    def confinement(self) -> Confinement:
        return Confinement("off", b"/", os.path.realpath)

    @property
    def base_workdir(self) -> bytes:
        return b"/"

    def make_session(self, turnstile: Turnstile) -> Session:
        settings = SessionSettings(
            dialect=BashDialect(),
            spawn=self._spawn,
            shell_name="scripted shell",
            environment=dict,
            workdir=b"/",
            confinement=self.confinement,
            startup_commands=(),
            grace=self.grace,
            start_timeout=self._start_timeout,
            max_output_bytes=self._max_output_bytes,
        )
        return PersistentSession(settings, turnstile)

    def check(self) -> None:
        """Fail if a script did not come to pass, or was never begun."""
        for process in self.processes:
            assert not process.failure, process.failure
        assert len(self.processes) >= len(self._scripts), (
            f"{len(self.processes)} of {len(self._scripts)} shells started"
        )

    def _spawn(self, env: Mapping[bytes, bytes], pipes: PipeSource, containment: Containment) -> Process:
        number = len(self.processes)
        assert number < len(self._scripts), "another shell was started than there are scripts"
        process = ScriptedProcess(self._scripts[number], pipes)
        self.processes.append(process)
        return process


# -- the contract --------------------------------------------------------------------------------------

#: Seconds beyond a promised bound that a loaded machine is allowed.
_SLACK = 5.0
Value = TypeVar("Value")


class ExecutorContract:
    """What every executor promises, as tests. Subclass it under a name that pytest collects.

    Attributes:
        persistent: whether one shell serves all commands; a fresh one for each otherwise.
        syntax_error: the exit codes that the shell may have for a syntax error.
    """

    persistent: ClassVar[bool] = True
    syntax_error: ClassVar[tuple[int, ...]] = (1, 2, 3)

    def make_executor(self, **options: Any) -> Executor:
        """Return a new executor; `options` are `timeout`, `grace` and `max_output_bytes`."""
        raise NotImplementedError

    @contextlib.contextmanager
    def opened(self, **options: Any) -> Iterator[BlockingExecutor]:
        """Open an executor for the time of a `with`, through its blocking twin."""
        with self.make_executor(**options).sync() as shell:
            yield shell

    # -- state -----------------------------------------------------------------------------------------

    def test_state(self) -> None:
        """Variables and the directory persist in one shell and do not in fresh ones (contract A)."""
        with self.opened() as shell:
            shell.run("A=kept; cd /")
            result = shell.run('echo "[${A-}]" "$PWD"')
        kept = result.stdout == "[kept] /\n"
        assert kept if self.persistent else result.stdout.startswith("[] ")

    def test_state_survives_exit(self) -> None:
        """`exit` gives its code and ends the shell; the session goes on with its state (D2)."""
        with self.opened() as shell:
            shell.run("export A=kept; cd /")
            ended = shell.run("echo out; exit 7")
            after = shell.run('echo "[${A-}]" "$PWD"')
        assert (ended.exit_code, ended.stdout) == (7, "out\n")
        if self.persistent:
            assert ended.shell_state == "restored"
            assert after.stdout == "[kept] /\n"
        else:
            assert after.stdout.startswith("[] ")

    # -- the command is opaque -------------------------------------------------------------------------

    def test_syntax_errors_return(self) -> None:
        """Whatever is left open ends as a syntax error with the shell's message, and hurts nobody (B1)."""
        with self.opened(timeout=10.0) as shell:
            for command in ('echo "open', "if true; then", "{ echo", "( echo", "echo )", "}; echo x; {"):
                result = shell.run(command)
                assert result.exit_code in self.syntax_error, command
                assert result.stderr, command
                assert shell.run("echo next").stdout == "next\n", command

    def test_empty_command(self) -> None:
        """An empty command is a command that succeeds and prints nothing (B1)."""
        with self.opened() as shell:
            for command in ("", " ", "\n", "# comment"):
                result = shell.run(command)
                assert (result.exit_code, result.stdout, result.stderr) == (0, "", ""), command

    def test_long_command(self) -> None:
        """A command far longer than a system call's argument may be runs (B3)."""
        text = "x" * 200_000
        with self.opened() as shell:
            assert shell.run(f"printf %s {text} | wc -c").stdout.strip() == "200000"

    # -- input and output ------------------------------------------------------------------------------

    def test_stdin_is_empty(self) -> None:
        """A command that reads finds end-of-file at once, and `input` when it is given (C1)."""
        with self.opened(timeout=10.0) as shell:
            assert shell.run("cat; echo done").stdout == "done\n"
            assert shell.run("cat", input="given").stdout == "given"
            assert shell.run("cat").stdout == ""

    def test_separate_streams(self) -> None:
        """stdout and stderr are apart and exact, or together in the order written (C2)."""
        with self.opened() as shell:
            apart = shell.run("echo out; echo err >&2; printf end")
            merged = shell.run("echo out; echo err >&2; printf end", merge_stderr=True)
        assert (apart.stdout, apart.stderr) == ("out\nend", "err\n")
        assert (merged.stdout, merged.stderr) == ("out\nerr\nend", "")

    def test_attribution(self) -> None:
        """What a command writes to stderr as its last act is in its own result (C2)."""
        with self.opened() as shell:
            for number in range(50):
                assert shell.run(f"echo {number} >&2").stderr == f"{number}\n"

    def test_live_output(self) -> None:
        """`on_output` gets everything, in order, stream by stream (C4)."""
        heard: list[tuple[str, str]] = []
        with self.opened() as shell:
            shell.run("echo one; echo two; echo err >&2", on_output=lambda *chunk: heard.append(chunk))
        assert "".join(text for stream, text in heard if stream == "stdout") == "one\ntwo\n"
        assert "".join(text for stream, text in heard if stream == "stderr") == "err\n"

    def test_truncation(self) -> None:
        """Over the limit head and tail are kept, the rest is counted, the exit code is unaffected (E2)."""
        with self.opened(max_output_bytes=1000) as shell:
            result = shell.run("i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done; (exit 3)")
            whole = shell.run("printf '%01000d' 0")
        assert result.truncated
        assert result.exit_code == 3
        assert result.stdout.startswith("0\n1\n")
        assert result.stdout.endswith("\n4999\n")
        kept = sum(len(f"{i}\n") for i in range(5000)) - result.stdout_omitted
        assert 900 <= kept <= 1000
        assert str(result.stdout_omitted) in result.stdout
        assert (whole.stdout, whole.truncated) == ("0" * 1000, False)

    # -- how a command ends ----------------------------------------------------------------------------

    def test_exit_codes(self) -> None:
        """0 to 255 as they are, a signal as 128+n (D1)."""
        with self.opened() as shell:
            for code in (0, 1, 2, 126, 255):
                assert shell.run(f"(exit {code})").exit_code == code
            assert shell.run("sh -c 'kill -TERM $$'").exit_code == 143
            assert shell.run("definitely-no-such-program").exit_code == 127

    def test_timeout(self) -> None:
        """A time-out is a bound, keeps what was printed, and lets nothing of the rest run (F1, F3, F4)."""
        with self.opened(grace=2.0) as shell:
            began = time.monotonic()
            result = shell.run("echo before; sleep 60; echo after", timeout=0.5)
            took = time.monotonic() - began
            after = shell.run("echo next")
        assert (result.timed_out, result.exit_code, result.stdout) == (True, 124, "before\n")
        assert took < 0.5 + 2.0 + _SLACK
        assert any("time-out" in note for note in result.notes)
        assert after.stdout == "next\n"

    def test_timeout_of_the_stubborn(self) -> None:
        """A command that ignores every request ends within the bound all the same (F1)."""
        with self.opened(grace=1.0) as shell:
            began = time.monotonic()
            result = shell.run("trap '' INT TERM HUP; while :; do sleep 60; done", timeout=0.3)
            assert time.monotonic() - began < 0.3 + 1.0 + _SLACK
            assert result.timed_out
            assert shell.run("echo next").stdout == "next\n"

    def test_cancellation(self) -> None:
        """Cancelling ends the command, raises CancelledError, and leaves nothing to later results (F6)."""

        async def scenario() -> ShellResult:
            async with self.make_executor(grace=2.0) as shell:
                started = asyncio.Event()
                running = shell.run("echo under way; sleep 60; echo after", on_output=lambda *_: started.set())
                task = asyncio.ensure_future(running)
                await asyncio.wait_for(started.wait(), 30)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                assert task.cancelled()
                return await shell.run("echo next")

        result = asyncio.run(scenario())
        assert (result.stdout, result.stderr, result.exit_code) == ("next\n", "", 0)

    # -- background jobs -------------------------------------------------------------------------------

    def test_background_job(self) -> None:
        """A command that leaves a job returns at once with a handle on it (I1)."""
        with self.opened() as shell:
            began = time.monotonic()
            result = shell.run("sleep 60 & echo started")
            assert time.monotonic() - began < _SLACK
            assert result.stdout == "started\n"
            [job] = result.background
            assert job.running
            assert job.pids
            job.stop()  # type: ignore[unused-coroutine]  # under `sync()` jobs are `BlockingJob`s
            assert not job.running

    # -- one owner, many callers -----------------------------------------------------------------------

    def test_order(self) -> None:
        """Calls made together run one at a time, in order of arrival (G1)."""

        async def scenario() -> list[ShellResult]:
            async with self.make_executor() as shell:
                return list(await asyncio.gather(*(shell.run(f"echo {n}; echo {n} >&2") for n in range(20))))

        results = asyncio.run(scenario())
        assert [(r.stdout, r.stderr) for r in results] == [(f"{n}\n", f"{n}\n") for n in range(20)]

    def test_two_event_loops(self) -> None:
        """One executor serves one event loop after another (G2)."""
        executor = self.make_executor()
        first = asyncio.run(_awaited(executor.run("echo one")))
        second = asyncio.run(_awaited(executor.run("echo two")))
        executor.sync().close()
        assert (first.stdout, second.stdout) == ("one\n", "two\n")

    def test_closed(self) -> None:
        """Closing is idempotent, and a closed executor says so (G3)."""
        import pytest

        shell = self.make_executor().sync()
        assert shell.run("echo open").stdout == "open\n"
        shell.close()
        shell.close()
        with pytest.raises(ExecutorClosed):
            shell.run("echo closed")

    def test_close_ends_what_runs(self) -> None:
        """Closing during a run ends it with ExecutorClosed and what it had printed (G3)."""
        import pytest

        async def scenario() -> ShellResult | None:
            shell = self.make_executor(grace=2.0)
            started = asyncio.Event()
            running = shell.run("echo under way; sleep 60", on_output=lambda *_: started.set())
            task = asyncio.ensure_future(running)
            await asyncio.wait_for(started.wait(), 30)
            await shell.close()
            with pytest.raises(ExecutorClosed) as raised:
                await task
            return raised.value.result

        partial = asyncio.run(scenario())
        assert partial is not None
        assert partial.stdout == "under way\n"

    # -- wrong calls -----------------------------------------------------------------------------------

    def test_bad_input(self) -> None:
        """A wrong call raises before anything runs, and the session is unharmed (B2, F5)."""
        import pytest

        with self.opened() as shell:
            for command in ("echo \0", "echo \ud800"):
                with pytest.raises(InvalidCommand):
                    shell.run(command)
            for wrong in (None, b"echo", ["echo"]):
                with pytest.raises(TypeError):
                    shell.run(wrong)  # type: ignore[arg-type]  # that is the point
            for timeout in (0, -1, float("nan")):
                with pytest.raises(ValueError, match="timeout"):
                    shell.run("echo", timeout=timeout)
            with pytest.raises(InvalidWorkdir):
                shell.run("echo", workdir="/no/such/directory")
            with pytest.raises(ValueError, match="env"):
                shell.run("echo", env={"NO-NAME": "x"})
            assert shell.run("echo unharmed").stdout == "unharmed\n"

    def test_for_one_command(self) -> None:
        """`workdir` and `env` hold for one command only (A)."""
        with self.opened() as shell:
            before = shell.run("pwd").stdout
            once = shell.run('pwd; echo "$ONCE"', workdir="/", env={"ONCE": "set"})
            after = shell.run('pwd; echo "${ONCE-unset}"')
        assert once.stdout == "/\nset\n"
        assert after.stdout == f"{before}unset\n"


async def _awaited(running: Any) -> Any:
    return await running
