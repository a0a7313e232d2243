"""The contract of every executor, as tests: rules that hold wherever the shell runs, and whatever shell it is.

Each test names its rule. A test makes its own executor and asserts no more than the contract promises.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any, ClassVar

from ..errors import ExecutorClosed, InvalidCommand, InvalidWorkdir
from ..executors.base import Executor
from ..executors.blocking import BlockingExecutor
from ..result import ShellResult

__all__ = ["ExecutorContract"]

#: Seconds beyond a promised bound that a loaded machine is allowed.
_SLACK = 5.0


class ExecutorContract:
    """What every executor promises, as tests. Subclass it under a name that pytest collects.

    Attributes:
        persistent: whether one shell serves all commands; a fresh one for each otherwise.
        syntax_error: the exit codes that the shell may have for a syntax error.
    """

    persistent: ClassVar[bool] = True
    syntax_error: ClassVar[tuple[int, ...]] = (1, 2, 3)

    def make_executor(self, **options: Any) -> Executor:
        """Return a new executor; `options` are `timeout`, `grace`, `max_output_bytes` and `spill_dir`."""
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

    def test_output_kept_whole(self) -> None:
        """With `spill_dir`, what a result leaves out can be read by offset, by lines, from the end, by pattern (E5)."""
        numbers = "".join(f"{i}\n" for i in range(5000))
        command = "i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done"
        with (
            tempfile.TemporaryDirectory() as directory,
            self.opened(max_output_bytes=1000, spill_dir=directory) as shell,
        ):
            fits = shell.run("echo fits")
            ref = shell.run(command).stdout_ref
            assert fits.stdout_ref is None
            assert ref is not None
            assert shell.read_output(ref, limit=len(numbers)).text == numbers
            assert shell.read_output(ref, offset=len(numbers) - 5).text == "4999\n"
            assert shell.read_output(ref, lines=(11, 12)).text == "10\n11\n"
            assert shell.read_output(ref, tail=1).text == "4999\n"
            assert shell.read_output(ref, pattern="^77[0-3]$", context=1).text.startswith("770-769\n771:770\n")

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
            job.stop()
            assert not job.running

    # -- programs --------------------------------------------------------------------------------------

    def test_a_program(self) -> None:
        """A program runs on after its call, is typed to and ends with its exit code; closing ends the rest (L1, L4)."""
        with self.opened() as shell:
            started = shell.launch("read line; echo got $line; exit 3", yield_time=0.0)
            assert (started.process_id, started.exit_code) == (1, None)
            ended = shell.write(1, "this\n", until="exit", yield_time=_SLACK)
            assert (ended.output, ended.exit_code, ended.process_id) == ("got this\n", 3, None)
            assert shell.launch("sleep 60", yield_time=0.0).running
            assert not shell.stop(2).running
            assert shell.launch("sleep 60", yield_time=0.0).running

    def test_a_program_in_a_terminal(self) -> None:
        """A program gets a terminal of the size that was asked for, and what it asks for is waited for (L2)."""
        with self.opened() as shell:
            command = "stty size; printf 'name? '; read name; echo hello $name; exec sleep 60"
            asked = shell.launch(command, tty=True, rows=30, columns=90, until="^name", yield_time=_SLACK)
            assert asked.matched
            assert asked.output.startswith("30 90\r\n")
            assert shell.write(1, "you\n", until="^hello you$", yield_time=_SLACK).matched

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
