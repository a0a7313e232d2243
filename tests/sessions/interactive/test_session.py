"""One program that is talked to: its life, what is typed and printed, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shellkit import ExecutorUnavailable, InvalidWorkdir, SpawnError
from shellkit.errors import ProcessEnded, StdinClosed
from shellkit.sessions.interactive import InteractiveSession, Output, Sink

PYTHON = sys.executable


class Tape(Sink):
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.heard = b""
        self.typed: list[bytes] = []
        self.sizes: list[tuple[int, int]] = []

    def output(self, data: memoryview) -> None:
        self.heard += data

    def input(self, data: bytes) -> None:
        self.typed.append(data)

    def resized(self, rows: int, columns: int) -> None:
        self.sizes.append((rows, columns))


def test_a_program_is_typed_to_and_ends(tty: bool) -> None:
    """Issue 5, build 1: start, write, expect, end-of-file, exit code; what it printed can be read after its end."""

    async def main() -> None:
        async with InteractiveSession(["cat"], tty=tty) as cat:
            assert cat.running
            assert cat.exit_code is None
            await cat.write("héllo\n")
            found = await cat.expect("héllo\r?\n")
            assert (found.before, found.omitted) == ("", 0)
            if tty:
                await cat.expect("héllo\r\n")  # the first was the terminal's echo
            await cat.write("last\n")
            cat.close_stdin()
            assert await cat.wait(10) == 0
            assert not cat.running
            assert cat.read() == Output("last\r\nlast\r\n" if tty else "last\n")
            assert cat.read() == Output()
        assert cat.exit_code == 0

    asyncio.run(main())


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("kill $$", 143), ("true", 0)])
def test_exit_codes_are_the_kernel_s(script: str, code: int, tty: bool) -> None:
    """D1: 0 to 255, a signal as 128+n; everything printed before is there when the end is reported."""

    async def main() -> None:
        async with InteractiveSession(["sh", "-c", f"echo before; {script}"], tty=tty) as program:
            assert await program.wait(10) == code
            assert program.read().text.rstrip() == "before"
            assert 0 < program.runtime < 10
            assert program.waits_for_input is False

    asyncio.run(main())


def test_stdout_and_stderr_come_in_the_order_written() -> None:
    """Issue 5, build 1: on pipes both go into one stream."""

    async def main() -> None:
        script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done"
        async with InteractiveSession(["sh", "-c", script], tty=False) as program:
            await program.wait(10)
            assert program.read().text == "".join(f"out {i}\nerr {i}\n" for i in (1, 2, 3))

    asyncio.run(main())


def test_a_time_out_of_a_wait_is_no_end(tty: bool) -> None:
    """Issue 5, build 2: to stop waiting is not to end the program."""

    async def main() -> None:
        async with InteractiveSession(["cat"], tty=tty) as cat:
            assert await cat.wait(0.01) is None
            assert cat.running
            await cat.write("seen\n")
            await cat.wait_until(lambda: "seen" in cat.peek(), 10)
            with pytest.raises(
                TimeoutError, match=r"not printed 'never' within 0.01 s; the last of its output is 'seen"
            ):
                await cat.expect("never", 0.01)
            assert "seen" in cat.read().text  # a search that fails leaves everything unread

    asyncio.run(main())


def test_expecting_of_a_program_that_ends(tty: bool) -> None:
    """Issue 5, build 1, `expect`: an end without the pattern says so, with the exit code and the last output."""

    async def main() -> None:
        async with InteractiveSession(["sh", "-c", "echo bye; exit 4"], tty=tty) as program:
            with pytest.raises(ProcessEnded, match=r"exit code 4 without 'a' or 'x'; .*bye"):
                await program.expect(["a", "x"], 10)
            assert program.read().text.rstrip() == "bye"

    asyncio.run(main())


def test_expectations_follow_each_other(tty: bool) -> None:
    """Issue 5, build 1, `expect`: what follows a match is searched next; two at once are refused."""

    async def main() -> None:
        async with InteractiveSession(["sh", "-c", "echo one two three; cat"], tty=tty) as program:
            for word in ("one", "two", "three"):
                assert (await program.expect(word, 10)).text == word
            waiting = asyncio.ensure_future(program.expect("four", 10))
            await asyncio.sleep(0)
            with pytest.raises(ValueError, match="waits for a pattern of this program already"):
                await program.expect("five", 10)
            await program.write("four\n")
            assert (await waiting).index == 0

    asyncio.run(main())


def test_reading_waits_for_quiet(tty: bool) -> None:
    """Issue 5, build 1, `read_until_quiet`: the pieces of one answer come together; the time-out and the end cut it."""

    async def main() -> None:
        script = "for i in 1 2 3; do echo $i; sleep 0.02; done; read x; exit 5"
        async with InteractiveSession(["sh", "-c", script], tty=tty) as program:
            assert (await program.read_until_quiet(0.5, 10)).text.split() == ["1", "2", "3"]
            assert (await program.read_until_quiet(10, 0.01)).text == ""
            await program.write("\n")
            await program.read_until_quiet(10, 10)
            assert program.exit_code == 5

    asyncio.run(main())


def test_characters_are_never_cut(tty: bool) -> None:
    """C3: a character that arrives byte by byte is read whole, and what is none is replaced."""
    pieces = (r"\360", r"\237", r"\231\202|\377", r"|\303")
    script = "[ ! -t 0 ] || stty -echo; " + "; ".join(f"printf '{piece}'; read x" for piece in pieces)

    async def main() -> None:
        async with InteractiveSession(["sh", "-c", script], tty=tty) as program:
            seen = program._program.started_at
            for expected in ("", "", "🙂|\ufffd", "|"):
                assert await program.wait_until(lambda seen=seen: program.output_at > seen, 10)  # type: ignore[misc]
                assert program.read().text == expected
                seen = program.output_at
                await program.write("\n")
            await program.wait(10)
            assert program.read().text == "\ufffd"

    asyncio.run(main())


def test_output_over_the_limit_keeps_head_and_tail(tty: bool) -> None:
    """E2: half and half, one marker line, and a count that fits."""

    async def main() -> None:
        async with InteractiveSession(["sh", "-c", "seq 100000"], tty=tty, max_output_bytes=1000) as program:
            await program.wait(20)
            output = program.read()
            assert output.text.startswith("1\r\n2\r\n" if tty else "1\n2\n")
            assert output.text.rstrip().endswith("\n100000")
            assert f"[... {output.omitted} bytes omitted ...]" in output.text
            assert output.omitted == 588895 + (100000 if tty else 0) - 1000

    asyncio.run(main())


def test_a_program_faster_than_any_reader_is_held_up_by_nobody(tty: bool, eventually: Callable[..., None]) -> None:
    """E1, E4: it is drained although nobody reads, while the loop is blocked, and memory stays within its bound."""

    async def main() -> None:
        async with InteractiveSession(["yes", "faster than anyone reads"], tty=tty) as program:
            eventually(lambda: program._program._buffer.total > 8 << 20, 30)  # blocks the loop
            output = program.read()
            assert len(output.text) < 65536 + 100
            assert output.omitted > 7 << 20

    asyncio.run(main())


def test_a_megabyte_is_typed_at_once(tty: bool) -> None:
    """Issue 5, must hold: 1 MB typed at once neither deadlocks nor gets lost, in a terminal line by line."""
    text = ("x" * 99 + "\n") * 10_000

    async def main() -> None:
        script = "import sys; print(sum(len(line) for line in sys.stdin))"
        async with InteractiveSession([PYTHON, "-c", script], tty=tty) as program:
            await program.write(text)
            program.close_stdin()
            assert await program.wait(30) == 0
            assert program.read().text.rstrip().endswith("1000000")

    asyncio.run(main())


def test_a_program_that_does_not_read_holds_the_writer_up_and_not_the_loop(tty: bool) -> None:
    """Issue 5, build 1: a write waits for room; cancelled, it leaves the rest queued; an interrupt drops it."""
    script = "trap 'echo interrupted' INT; echo ready; while :; do sleep 0.05; done"

    async def main() -> None:
        async with InteractiveSession(["sh", "-c", script], tty=tty) as program:
            await program.expect("ready", 10)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(program.write("y\n" * 500_000), 0.2)
            assert program.unsent > 100_000
            program.interrupt()
            assert program.unsent == 0
            await program.expect("interrupted", 10)

    asyncio.run(main())


def test_closed_stdin_says_how_to_get_one(tty: bool) -> None:
    """Issue 5, bad input: writing to closed stdin, closed by us or by the program."""

    async def main() -> None:
        async with InteractiveSession(["sh", "-c", "exec 0<&-; echo closed; sleep 60"], tty=False) as program:
            await program.expect("closed", 10)
            await program.write("x" * 100_000)  # found out by writing: the pipe has no reader
            with pytest.raises(StdinClosed, match=r"start it again and leave it open"):
                await program.write("more")
        async with InteractiveSession(["sleep", "60"], tty=False) as program:
            program.close_stdin()
            program.close_stdin()
            with pytest.raises(StdinClosed):
                await program.send_keys("Enter")

    asyncio.run(main())


def test_an_ended_program_is_not_typed_to(tty: bool) -> None:
    """Issue 5, bad input: typing after the end is an error; Ctrl-C, a resize and ending again are none."""

    async def main() -> None:
        async with InteractiveSession(["true"], tty=tty) as program:
            await program.wait(10)
            with pytest.raises(ProcessEnded, match="start it again"):
                await program.write("x")
            program.interrupt()
            program.close_stdin()
            assert program.waits_for_input is False
            assert (program.echo, program.asks_secret) == (tty, False)
            await program.terminate()
            await program.terminate()
            with pytest.raises(ProcessEnded):
                await program.write("x")
            program.interrupt()
            if tty:
                program.resize(10, 10)
                await program.screen()
            assert (program.echo, program.exit_code, program.unsent) == (False, 0, 0)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"argv": "ls -l"}, TypeError, "argv is a list of words"),
        ({"argv": ["ls", 3]}, TypeError, "argv is a list of words"),
        ({"argv": []}, ValueError, "argv needs a program"),
        ({"argv": [""]}, ValueError, "argv needs a program"),
        ({"argv": ["ls", "a\0b"]}, ValueError, "NUL"),
        ({"rows": 0}, ValueError, "rows must be from 1"),
        ({"columns": -1}, ValueError, "columns must be from 1"),
        ({"columns": 100_000}, ValueError, "columns must be from 1 to 1000"),
        ({"rows": 2.5}, TypeError, "rows must be an int"),
        ({"max_output_bytes": -1}, ValueError, "0 .keep nothing. or more"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    """Issue 5, bad input: zero sizes and the like are errors before anything is started."""

    async def main() -> None:
        await InteractiveSession(**{"argv": ["true"], **arguments}).start()  # type: ignore[arg-type]

    with pytest.raises(error, match=message):
        asyncio.run(main())


def test_what_cannot_be_started_is_said(tmp_path: Path, tty: bool) -> None:
    """A: nothing to run it with is `SpawnError`, a missing directory `InvalidWorkdir`; nothing is left behind."""
    (tmp_path / "no-program").write_text("no shebang")
    (tmp_path / "no-program").chmod(0o755)

    async def start(*argv: str, **options: str) -> None:
        await InteractiveSession(argv, tty=tty, **options).start()  # type: ignore[arg-type]

    with pytest.raises(SpawnError, match="no program 'no-such-program' on the PATH"):
        asyncio.run(start("no-such-program"))
    with pytest.raises(SpawnError, match="no-program: Exec format error"):
        asyncio.run(start(str(tmp_path / "no-program")))
    with pytest.raises(SpawnError, match="Argument list too long"):
        asyncio.run(start("sh", "-c", ":" * 200_000))
    with pytest.raises(InvalidWorkdir, match="name another workdir"):
        asyncio.run(start("true", workdir=str(tmp_path / "missing")))


@pytest.fixture
def _none_inheritable() -> Iterator[None]:
    """glibc refuses to close what a lowered limit excludes, and the test's own parent may have left some open."""
    open_now = [int(name) for name in os.listdir("/proc/self/fd")]
    inheritable = [fd for fd in open_now if fd > 2 and os.path.exists(f"/proc/self/fd/{fd}") and os.get_inheritable(fd)]
    for fd in inheritable:
        os.set_inheritable(fd, False)
    yield
    for fd in inheritable:
        os.set_inheritable(fd, True)


@pytest.mark.usefixtures("_none_inheritable")
def test_no_room_for_a_program_is_said(tty: bool) -> None:
    """A, G3: whatever runs out of descriptors, it is `SpawnError`, and nothing is left behind."""

    async def main() -> int:
        refused = 0
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        for room in range(20):
            lowest = os.dup(0)
            os.close(lowest)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + room, limits[1]))
            program = InteractiveSession(["cat"], tty=tty)
            try:
                await program.start()
            except SpawnError:
                refused += 1
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                await program.terminate()
        return refused

    assert 5 <= asyncio.run(main()) < 20


def test_a_program_must_be_started_once() -> None:
    """Issue 5, bad input: before `start` there is nobody to talk to, and a session is one program."""

    async def main() -> None:
        program = InteractiveSession(["true"])
        assert not program.running
        await program.terminate()
        with pytest.raises(ValueError, match="has not been started"):
            await program.write("x")
        async with program:
            with pytest.raises(ValueError, match="started already"):
                await program.start()

    asyncio.run(main())


def test_pipes_have_neither_size_nor_screen() -> None:
    """Issue 5, bad input: what only a terminal has names the way to one."""

    async def main() -> None:
        async with InteractiveSession(["cat"], tty=False) as cat:
            assert (cat.echo, cat.asks_secret) == (False, False)
            with pytest.raises(ValueError, match="tty=True"):
                cat.resize(10, 10)
            with pytest.raises(ValueError, match="tty=True"):
                await cat.screen()

    asyncio.run(main())


def test_where_and_with_what_it_starts(tmp_path: Path, tty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5, build 1: directory, environment, terminal type; secrets of the host are left out (H8)."""
    monkeypatch.setenv("MY_API_KEY", "secret")
    script = 'echo "$PWD|${TERM:-none}|${MY_API_KEY:-none}|${X:-none}"'
    (tmp_path / "tool").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "tool").chmod(0o755)

    async def main() -> None:
        async with InteractiveSession(["./tool"], tty=tty, workdir=tmp_path) as program:
            await program.wait(10)
            assert program.read().text.strip() == f"{tmp_path}|{'linux' if tty else 'dumb'}|none|none"
        env = {b"PATH": os.fsencode(os.environ["PATH"]), b"X": b"1"}
        async with InteractiveSession(["sh", "-c", script], tty=tty, env=env, term="xterm") as program:
            await program.wait(10)
            assert program.read().text.strip() == f"{os.getcwd()}|{'xterm' if tty else 'none'}|none|1"

    asyncio.run(main())


def test_nothing_of_the_host_is_passed_on(tty: bool) -> None:
    """C, G3: only the standard streams are open, in a session of its own, with signals at their defaults."""
    script = "ls -1 /proc/self/fd; cat /proc/self/status; ps -o sid= -p $$; echo $$"

    async def main() -> None:
        reader, writer = os.pipe()
        os.set_inheritable(reader, True)
        os.set_inheritable(writer, True)
        async with InteractiveSession(["sh", "-c", script], tty=tty) as program:
            await program.wait(10)
            lines = program.read().text.split("\n")
        os.close(reader)
        os.close(writer)
        words = [line.split() for line in lines]
        assert [int(line[0]) for line in words[:4]] == [0, 1, 2, 3]  # 3 is the directory that is listed
        assert words[4][0] == "Name:"
        signals = {line[0]: int(line[1], 16) for line in words if line[:1] in (["SigIgn:"], ["SigBlk:"])}
        assert signals["SigIgn:"] & ~(3 << 31) == 0  # 32 and 33 are libc's own
        assert signals["SigBlk:"] == 0
        assert words[-3] == words[-2] == [str(program.pid)]

    asyncio.run(main())


def test_sinks_get_everything(caplog: pytest.LogCaptureFixture) -> None:
    """Issue 5, build 5 and 6: recorder and spill file see all output, input and sizes; one that fails is let go."""

    class Broken(Sink):
        def output(self, data: memoryview) -> None:
            raise OSError("disk full")

    async def main() -> None:
        tape = Tape()
        async with InteractiveSession(["cat"], sinks=[Broken(), tape]) as cat:
            await cat.write("one\n")
            await cat.expect("one\r\none\r\n")
            await cat.send_keys("t", "Enter")
            await cat.expect("t\r\nt\r\n")
            cat.resize(30, 90)
            cat.close_stdin()
            await cat.wait(10)
        assert tape.heard == b"one\r\none\r\nt\r\nt\r\n"
        assert tape.typed == [b"one\n", b"t\r", b"\x04"]
        assert tape.sizes == [(30, 90)]

    asyncio.run(main())
    assert [record.message for record in caplog.records] == ["a sink of an interactive program raised; it gets no more"]


def test_a_secret_reaches_no_sink() -> None:
    """Issue 5, build 3: while the terminal does not echo, what is typed is recorded by its length only."""

    async def main() -> None:
        tape = Tape()
        script = "import getpass; input('Name: '); print(len(getpass.getpass('Password: ')))"
        async with InteractiveSession([PYTHON, "-c", script], sinks=[tape]) as program:
            await program.expect("Name: ")
            await program.write("me\n")
            await program.expect("Password: ")
            assert (program.echo, program.asks_secret) == (False, True)
            await program.write("geheim\n")
            await program.expect("6\r\n")
            await program.wait(10)
        assert tape.typed == [b"me\n", b"*******"]
        assert b"geheim" not in tape.heard

    asyncio.run(main())


def test_a_secret_on_pipes_reaches_no_sink() -> None:
    """Issue 5, build 3: on pipes, as of `sudo -S`, the prompt alone tells that a password is asked for, until it is there."""

    async def main() -> None:
        tape = Tape()
        script = "printf '[sudo] password for me: ' >&2; read -r p; read -r q; echo $p $q"
        async with InteractiveSession(["sh", "-c", script], tty=False, sinks=[tape]) as program:
            await program.expect("me: ")
            assert program.asks_secret
            await program.write("geheim\n")
            assert not program.asks_secret
            await program.write("no secret\n")
            await program.expect("geheim no secret")
        assert tape.typed == [b"*******", b"no secret\n"]

    asyncio.run(main())


def test_it_works_from_several_loops_and_threads(tty: bool) -> None:
    """G2: a program is talked to from one `asyncio.run` after the other, and from a thread's loop."""
    program = InteractiveSession(["cat"], tty=tty)

    async def say(word: str) -> str:
        await program.write(f"{word}\n")
        return (await program.expect(rf"{word}\r?\n", 10)).text.strip()

    asyncio.run(program.start())
    assert asyncio.run(say("one")) == "one"
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(asyncio.run(say("two"))))
    thread.start()
    thread.join()
    assert answers == ["two"]
    asyncio.run(program.terminate())


def test_the_loop_runs_on_while_somebody_waits(tty: bool) -> None:
    """Issue 5, build 1: no wait blocks the loop."""

    async def main() -> None:
        async with InteractiveSession(["cat"], tty=tty) as cat:
            waits = [asyncio.ensure_future(wait) for wait in (cat.wait(), cat.expect("x", None), cat.wait(0.05))]
            await waits[2]
            assert not waits[0].done()
            waits[0].cancel()
            await cat.write("x\n")
            await waits[1]
            assert not cat._program._alarms

    asyncio.run(main())


def test_a_forked_child_gets_a_clear_error(tty: bool) -> None:
    """G4: the host forks: the child is told so, and the parent's program is untouched."""

    async def main() -> None:
        async with InteractiveSession(["cat"], tty=tty) as cat:
            child = os.fork()
            if not child:
                try:
                    cat.interrupt()
                except ExecutorUnavailable:
                    cat.abandon()
                    with contextlib.suppress(StopIteration):
                        cat.terminate().send(None)  # the loop is the parent's
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            await cat.write("x\n")
            await cat.expect("x", 10)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import sys; sys.stdin.read(1)", True),
        ("import select; select.select([0], [], [])", True),
        ("import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()", True),
        ("import select; p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()", True),
        ("import subprocess; subprocess.run(['cat'])", True),
        ("import time; time.sleep(60)", False),
        ("import select; select.select([], [0], [], 0); select.select([], [], [], 60)", False),
        ("import os; r, w = os.pipe(); os.read(r, 1)", False),
        ("while True: pass", False),
    ],
)
def test_whether_it_waits_for_input(script: str, expected: bool, tty: bool) -> None:
    """Issue 5, build 2: whether it waits for input: it, or what it runs, is blocked until somebody types."""

    async def main() -> None:
        async with InteractiveSession([PYTHON, "-c", f"print('ready', flush=True)\n{script}"], tty=tty) as program:
            await program.expect("ready\r?\n", 10)
            give_up = time.monotonic() + (5 if expected else 0.3)
            while not program.waits_for_input and time.monotonic() < give_up:
                await program.wait(0.01)
            assert program.waits_for_input is expected

    asyncio.run(main())
