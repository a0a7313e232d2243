"""Live output while a command runs (C4)."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, LocalExecutor


def test_text_arrives_before_the_command_ends(either: BlockingExecutor, tmp_path: Path) -> None:
    """C4: `on_output` is called while the command runs: the command waits for what its own output triggers."""
    seen: list[tuple[str, str]] = []

    def listen(stream: str, text: str) -> None:
        seen.append((stream, text))
        (tmp_path / f"{text.strip()}-seen").touch()

    script = "w() { until [ -e $1-seen ]; do :; done; }; for n in a b c; do echo $n; w $n; done; echo e >&2; w e"
    result = either.run(script, timeout=10, on_output=listen)
    assert result.exit_code == 0
    assert seen == [("stdout", "a\n"), ("stdout", "b\n"), ("stdout", "c\n"), ("stderr", "e\n")]
    assert (result.stdout, result.stderr) == ("a\nb\nc\n", "e\n")


def test_text_arrives_soon(either: BlockingExecutor) -> None:
    """C4: text arrives within 50 ms of the write (the median of ten, since the machine is shared)."""
    delays: list[float] = []

    def listen(stream: str, text: str) -> None:
        delays.extend(time.time() - float(stamp) for stamp in text.split())

    either.run("for i in 1 2 3 4 5 6 7 8 9 10; do echo $EPOCHREALTIME; sleep 0.02; done", on_output=listen)
    assert len(delays) == 10
    assert sorted(delays)[5] < 0.05


def test_characters_are_never_split(either: BlockingExecutor) -> None:
    """C4: chunks are cut at characters, whatever the writes were."""
    seen: list[str] = []
    script = 'for b in 342 202 254 342 202 254 342 202 254 342; do printf "\\\\$b"; sleep 0.01; done'
    result = either.run(script, on_output=lambda stream, text: seen.append(text))
    assert "".join(seen) == result.stdout == "€€€\ufffd"
    assert all(set(text) <= {"€", "\ufffd"} for text in seen)


def test_everything_arrives_in_order(either: BlockingExecutor) -> None:
    """C4: the chunks of a stream together are the stream, past the output limit too."""
    seen: dict[str, list[str]] = {"stdout": [], "stderr": []}
    result = either.run("seq 1 50000; seq 1 40000 >&2", on_output=lambda stream, text: seen[stream].append(text))
    assert "".join(seen["stdout"]) == "".join(f"{n}\n" for n in range(1, 50_001))
    assert "".join(seen["stderr"]) == "".join(f"{n}\n" for n in range(1, 40_001))
    assert result.truncated


def test_an_exception_in_the_callback_hurts_nothing(either: BlockingExecutor, caplog: pytest.LogCaptureFixture) -> None:
    """C4: an exception in `on_output` is logged and hurts nothing."""

    def fail(stream: str, text: str) -> None:
        raise RuntimeError("callback broke")

    with caplog.at_level(logging.ERROR):
        result = either.run("echo a; echo b >&2; (exit 3)", on_output=fail)
    assert (result.stdout, result.stderr, result.exit_code) == ("a\n", "b\n", 3)
    assert "callback broke" in caplog.text
    assert either.run("echo ok").stdout == "ok\n"


def test_a_slow_callback_never_blocks_the_command(either: BlockingExecutor) -> None:
    """C4: a slow callback loses chunks, which a note counts; the command and its result are whole."""
    ended = threading.Event()
    chunks = 0

    def wait(stream: str, text: str) -> None:
        nonlocal chunks
        chunks += 1
        if chunks == 1:
            ended.wait(10)
        elif text.endswith("told\n"):
            ended.set()

    # 30 MB are far more than the queue holds: the command could not end if it had to wait for the callback.
    threading.Timer(0.5, ended.set).start()
    result = either.run("head -c 30000000 /dev/zero | tr '\\0' x; echo end; echo told >&2", on_output=wait, timeout=30)
    assert result.exit_code == 0
    assert result.stdout.endswith("end\n")
    assert any("chunks" in note for note in result.notes)


@pytest.mark.parametrize("mode_name", ["persistent", "stateless"])
def test_the_callback_runs_on_the_callers_loop(mode_name: str) -> None:
    """C4: `on_output` is called in the thread of the caller's loop, and the loop stays free meanwhile."""

    async def main() -> None:
        threads: set[int] = set()
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.005)
                beats += 1

        async with LocalExecutor(mode=mode_name, shell="bash") as shell:
            heart = asyncio.create_task(beat())
            result = await shell.run(
                "for i in 1 2 3; do echo $i; sleep 0.05; done", on_output=lambda *_: threads.add(threading.get_ident())
            )
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
        assert result.stdout == "1\n2\n3\n"
        assert threads == {threading.get_ident()}
        assert beats > 5

    asyncio.run(main())


def test_the_callback_runs_in_the_callers_thread(either: BlockingExecutor) -> None:
    """C4: under `sync()` the callback runs in the caller's thread."""
    threads: set[int] = set()
    either.run("echo a; echo b >&2", on_output=lambda *_: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


def test_timeouts_hold_while_streaming(either: BlockingExecutor, sleeps: Any) -> None:
    """C4, F4: a time-out ends a streaming command as any other; what was printed is in both places."""
    seen: list[str] = []
    result = either.run(f"echo a; sleep {sleeps()}", timeout=0.3, on_output=lambda stream, text: seen.append(text))
    assert (result.timed_out, result.exit_code, result.stdout, seen) == (True, 124, "a\n", ["a\n"])
    assert sleeps.left() == []
    assert either.run("echo ok").stdout == "ok\n"


@pytest.mark.parametrize("mode_name", ["persistent", "stateless"])
def test_cancelling_a_streaming_command(mode_name: str, sleeps: Any) -> None:
    """C4, F6: cancelling ends a streaming command and then raises; the session goes on."""

    async def main() -> None:
        async with LocalExecutor(mode=mode_name, shell="bash") as shell:
            started = asyncio.Event()
            task = asyncio.create_task(shell.run(f"echo up; sleep {sleeps()}", on_output=lambda *_: started.set()))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert sleeps.left() == []
            assert (await shell.run("echo ok")).stdout == "ok\n"

    asyncio.run(main())


def test_a_callback_that_calls_back_into_the_executor_is_told(either: BlockingExecutor) -> None:
    """G1: calls run one at a time; another executor may be used in a callback at any time."""
    with LocalExecutor(shell="bash").sync() as other:
        seen: list[str] = []
        either.run(
            "echo a", on_output=lambda stream, text: seen.append(other.run(f"echo {text.strip()}{text.strip()}").stdout)
        )
        assert seen == ["aa\n"]
