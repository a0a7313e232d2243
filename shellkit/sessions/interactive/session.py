"""`InteractiveSession`: one program that is talked to while it runs, in a terminal or on pipes.

For callers with an event loop, from any loop in turn. Every wait is bounded by its caller, and none of them blocks
the loop; the program is drained by the pump's thread, whoever reads.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType

from ...errors import ExecutorUnavailable, ProcessEnded
from ...output.buffer import HeadTailBuffer
from ...process.room import room_for
from ..forgotten import end_forgotten
from .alarm import Alarm
from .argv import inherited_environment, resolve_argv
from .channel import Channel, PipeChannel, TerminalChannel
from .display import Display, ScreenView
from .expectation import Expectation, Match, Pattern, compile_patterns
from .keys import encode_key
from .program import Output, Program
from .pump import Pump
from .sink import Sink

__all__ = ["InteractiveSession"]

#: When the rungs of the ladder come, as parts of the grace period (contract F2). An interactive shell ignores SIGTERM
#: and obeys SIGHUP, which ends what would have tidied up at SIGTERM: so it comes later.
_RUNGS = ((0.0, signal.SIGINT), (0.1, signal.SIGTERM), (0.4, signal.SIGHUP), (0.6, signal.SIGKILL))
_FIRST_LOOK, _LAST_LOOK = 0.001, 0.02

#: Rows, and columns, of the largest screen: a program can fill all of it with one sequence, at 100 bytes a cell.
_LARGEST = 1000

#: Characters of the output that an error shows.
_SHOWN = 500


class InteractiveSession:
    """Start one program and talk to it: `async with InteractiveSession(["python3"]) as python: ...`.

    Args:
        argv: the program (looked up on its PATH) and its arguments. A command text needs a shell:
            `["bash", "-c", text]`, which carries 128 KiB at most.
        tty: whether it gets a terminal; without one, two pipes: its stdin, and stdout and stderr in the order written.
        workdir: where it starts; None is the current directory.
        env: its whole environment; None inherits what `LocalExecutor` would pass on.
        rows: lines of the terminal.
        columns: characters in a line of the terminal.
        term: what the program is told of the terminal (TERM). "linux" is what `screen` understands.
        emulated: whether an emulator stands for the terminal: it draws `screen`, and answers the program. False where
            a sink and `write` join the program to a real terminal, which answers by itself.
        max_output_bytes: bytes of output to keep until they are read: the head and the tail, half and half.
        grace: seconds that `terminate` may take.
        pump: the thread to share with other programs, stopped by its owner; None makes one.
        sinks: what else gets everything that is typed and printed.
        record: a new file to record the terminal to as it happens (asciicast version 2, `shellkit play`).

    Raises:
        TypeError, ValueError: an argument is wrong, or the recording cannot be made.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        tty: bool = True,
        workdir: str | bytes | os.PathLike[str] | None = None,
        env: Mapping[bytes, bytes] | None = None,
        rows: int = 24,
        columns: int = 120,
        term: str = "linux",
        emulated: bool = True,
        max_output_bytes: int = 65536,
        grace: float = 2.0,
        pump: Pump | None = None,
        sinks: Sequence[Sink] = (),
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        if isinstance(argv, str) or not all(isinstance(word, str) for word in argv):
            raise TypeError(
                f'argv is a list of words, not {argv!r}; give a command text to a shell: ["sh", "-c", text]'
            )
        if not argv or not argv[0] or any("\0" in word for word in argv):
            raise ValueError("argv needs a program, and no word of it may hold a NUL")
        _check_size(rows, columns)
        self.argv = tuple(argv)
        self.tty = tty
        self.grace = grace
        self._workdir = None if workdir is None else os.path.abspath(os.fsencode(workdir))
        self._env = env
        self._size = (rows, columns)
        self._term = term
        self._buffer = HeadTailBuffer(max_output_bytes)
        self._pump = pump
        self._display = Display(rows, columns) if tty and emulated else None
        self._sinks = list(sinks)
        if record is not None:
            from ..recording import Recorder

            self._sinks.append(Recorder(record, rows=rows, columns=columns, title=" ".join(argv)))
        self._host = os.getpid()
        self._started: Program | None = None
        self._finalizer: weakref.finalize[[Callable[[], object], int], InteractiveSession] | None = None

    # -- what it is at -----------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._program.pid

    @property
    def running(self) -> bool:
        """Whether the program has been started and has not ended."""
        return self._started is not None and not self._started.ended

    @property
    def exit_code(self) -> int | None:
        """How the program ended (0-255, a signal as 128+n); None while it runs, or if nobody can know."""
        return self._program.exit_code

    @property
    def runtime(self) -> float:
        """Seconds that the program has run, or ran."""
        return self._program.runtime

    @property
    def output_at(self) -> float:
        """When the program last printed something, or else was started (`time.monotonic`)."""
        return self._program.output_at

    @property
    def leaves_running(self) -> bool:
        """Whether the program has ended, and something that it started has not."""
        return self._program.ended and self._program.survives()

    @property
    def unsent(self) -> int:
        """Bytes that were typed and that the program has not made room for yet."""
        return self._program.unsent

    @property
    def waits_for_input(self) -> bool | None:
        """Whether the program, or one that it runs, is blocked until somebody types.

        Best effort: None if the kernel does not say, as for a program of another user (`sudo`).
        """
        return self._program.waits_for_input()

    @property
    def echo(self) -> bool:
        """Whether the terminal shows what is typed. Programs that edit lines themselves turn this off, too."""
        return self._program.echo

    @property
    def asks_secret(self) -> bool:
        """Whether it looks as if the program asked for a password; what is typed then must be shown to nobody."""
        return self._program.asks_secret

    @property
    def reads_lines(self) -> bool:
        """Whether the terminal passes whole lines on, and of each the first 4,095 bytes only; see `write`."""
        return self._program.reads_lines

    # -- its life ----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the program.

        Raises:
            SpawnError: no such program, or the system has no room for it.
            InvalidWorkdir: the directory cannot be entered.
        """
        if self._started is not None:
            raise ValueError("this program has been started already; make another InteractiveSession")
        env = dict(inherited_environment() if self._env is None else self._env)
        if self.tty:
            env[b"TERM"] = self._term.encode()
        argv = resolve_argv(self.argv, self._workdir, env)
        with room_for(f"cannot start {self.argv[0]}"):
            self._launch(argv, env)

    async def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the program has ended.

        Args:
            timeout: seconds; None for no limit.

        Returns:
            `exit_code`, which is None if the program still runs at the time-out.
        """
        program = self._program
        await self.wait_until(lambda: program.ended, timeout)
        return program.exit_code

    async def wait_until(self, done: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until `done` returns true, which is asked whenever the program has printed, taken input or ended.

        Args:
            done: called in this task.
            timeout: seconds; None for no limit.

        Returns:
            False if it has not become true by the time-out.
        """
        program, alarm = self._program, Alarm()
        program.ring(alarm)
        try:
            return await alarm.wait_until(done, timeout)
        finally:
            program.silence(alarm)

    async def terminate(self) -> None:
        """End everything that the program started and give everything back, within the grace period. Idempotent.

        First an interrupt, then SIGTERM, then SIGHUP (what an interactive shell obeys), then SIGKILL. Cancelled, it
        kills at once.
        """
        program = self._started
        if program is None or os.getpid() != self._host:
            return
        try:
            await self._climb(program)
        finally:  # cancelled or not
            self.abandon()

    def abandon(self) -> None:
        """Kill everything that the program started and give everything back at once. Idempotent."""
        if self._finalizer is not None and os.getpid() == self._host and self._finalizer.detach() is not None:
            self._give_back()

    async def __aenter__(self) -> InteractiveSession:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.terminate()

    # -- talking -----------------------------------------------------------------------------------------

    async def write(self, text: str | bytes) -> None:
        """Type `text`; returns when the terminal or pipe has taken all of it, or the program has ended.

        A terminal passes whole lines of up to 4,095 bytes to a program that does not read single keys, and drops
        the rest of a longer one (termios(3), "Canonical and noncanonical mode"). Cancelling stops the wait only:
        what has not been taken stays queued.

        Raises:
            ProcessEnded: the program has ended.
            StdinClosed: its stdin was closed, by it or by `close_stdin`.
        """
        program = self._program
        program.type(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text))
        if program.unsent:
            await self.wait_until(lambda: not program.unsent or program.ended, None)

    async def send_keys(self, *names: str) -> None:
        """Press keys: `send_keys("Escape", ":", "q", "Enter")`, `send_keys("C-c")`, `send_keys("Up", "M-x")`.

        The names are tmux's: Enter, Tab, BTab, Space, BSpace, Escape, Up, Down, Left, Right, Home, End, Insert,
        Delete, PageUp, PageDown, F1 to F12, one character; C-a is Ctrl with a, M-a is Alt with a.

        Raises:
            ValueError: there is no such key. Nothing was typed.
            ProcessEnded, StdinClosed: as in `write`.
        """
        await self.write("".join([encode_key(name) for name in names]))

    def close_stdin(self) -> None:
        """Let the program see end-of-file after what was typed; in a terminal this types Ctrl-D."""
        self._program.close_stdin()

    def interrupt(self) -> None:
        """Interrupt what runs in the foreground (SIGINT); nothing happens if the program has ended.

        Typed text that the program has not taken yet is dropped. To press Ctrl-C instead: `send_keys("C-c")`.
        """
        self._program.interrupt()

    def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size and tell the program (SIGWINCH).

        Raises:
            ValueError: a size below 1 or above 1,000; or there is no terminal.
        """
        _check_size(rows, columns)
        self._program.resize(rows, columns)

    # -- listening ---------------------------------------------------------------------------------------

    def read(self) -> Output:
        """Return what was printed since it was last read; after the end, too."""
        return self._program.take()

    def peek(self) -> str:
        """Return what `read` would, and leave it unread."""
        return self._program.peek()

    async def read_until_quiet(self, quiet: float = 0.1, timeout: float = 10.0) -> Output:
        """Wait until nothing has been printed for a while, then read.

        Args:
            quiet: seconds without output, counted from this call on.
            timeout: seconds after which to read all the same.
        """
        program = self._program
        begun = time.monotonic()
        while not program.ended:
            now = time.monotonic()
            left = min(max(begun, program.output_at) + quiet, begun + timeout) - now
            if left <= 0:
                break
            await self.wait_until(lambda: program.ended, left)
        return program.take()

    async def expect(self, patterns: Pattern | Sequence[Pattern], timeout: float | None = 30.0) -> Match:
        """Wait until the program prints what matches, and count everything up to there as read.

        What is unread already is searched first. A terminal ends lines with "\\r\\n".

        Args:
            patterns: one regular expression or several; in a string `.` matches line ends, too. A match can be
                16,384 characters long.
            timeout: seconds; None for no limit.

        Raises:
            TimeoutError: not within `timeout`; what was printed is still unread.
            ProcessEnded: the program ended without it; what was printed is still unread.
            ValueError: no regular expression; or another call waits for one already.
        """
        program, compiled = self._program, compile_patterns(patterns)
        expectation = Expectation(compiled)
        program.expect(expectation)
        try:
            await self.wait_until(lambda: expectation.match is not None or program.ended, timeout)
        finally:
            program.unexpect()
        if expectation.match is not None:
            return expectation.match
        wanted = " or ".join(repr(pattern.pattern) for pattern in compiled)
        last = f"the last of its output is {self.peek()[-_SHOWN:]!r}"
        if self._program.ended:
            raise ProcessEnded(f"the program ended with exit code {self.exit_code} without {wanted}; {last}")
        raise TimeoutError(f"the program has not printed {wanted} within {timeout} s; {last}")

    async def screen(self) -> ScreenView:
        """Return what a person would see on the terminal.

        It is exact as long as the program prints no more than 128 KiB from one look to the next; beyond, it is
        drawn from the newest 128 KiB. Colours are left out.

        Raises:
            ValueError: there is no terminal, or it is not emulated.
        """
        if self._display is None:
            raise ValueError("there is no screen to look at: start the program with tty=True, emulated=True")
        return await asyncio.get_running_loop().run_in_executor(None, self._display.view)

    # -- inside ------------------------------------------------------------------------------------------

    async def _climb(self, program: Program) -> None:
        """Go up the ladder until nothing of the program is left, or the grace period is over."""
        begun = time.monotonic()
        rungs = list(_RUNGS)
        look_after = _FIRST_LOOK
        while program.survives() and (spent := time.monotonic() - begun) < self.grace:
            if spent >= self.grace * rungs[0][0]:
                program.signal(rungs[0][1])
                # What forks faster than it is killed needs several looks, so the last rung stays.
                rungs = rungs[1:] or rungs
            ended = program.ended
            await self.wait_until(lambda ended=ended: program.ended is not ended, look_after)  # type: ignore[misc]
            look_after = min(2 * look_after, _LAST_LOOK)

    def _launch(self, argv: Sequence[str], env: Mapping[bytes, bytes]) -> None:
        pump = Pump() if self._pump is None else self._pump
        own = None if pump is self._pump else pump
        try:
            channel: Channel = TerminalChannel(*self._size) if self.tty else PipeChannel()
            self._started = Program(argv, env, channel, self._buffer, self._display, pump, self._sinks)
        except BaseException:
            if own is not None:
                own.stop()
            raise
        self._give_back = partial(_give_back, self._started, own)
        self._finalizer = weakref.finalize(self, end_forgotten, self._give_back, self._host)

    @property
    def _program(self) -> Program:
        if self._started is None:
            raise ValueError("the program has not been started; call start(), or use `async with`")
        if os.getpid() != self._host:
            raise ExecutorUnavailable(
                f"this program belongs to process {self._host}, this is its forked child {os.getpid()}; "
                "start another one here"
            )
        return self._started


def _give_back(program: Program, own_pump: Pump | None) -> None:
    program.release()
    if own_pump is not None:
        own_pump.stop()


def _check_size(rows: int, columns: int) -> None:
    for name, value in (("rows", rows), ("columns", columns)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        if not 1 <= value <= _LARGEST:
            raise ValueError(f"{name} must be from 1 to {_LARGEST}, not {value}")
