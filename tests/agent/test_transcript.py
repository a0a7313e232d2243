"""A conversation in a file: what a crash leaves, what goes on from it, and files that are none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from shellkit.agent import CallRequested, Event, OutputChunk, Stopped, TextDelta, Transcript, TranscriptError
from shellkit.testing.scripted_model import Hang, function_call, message, reasoning, shell_call

APIS = pytest.mark.parametrize("api", ["responses", "chat"])


def run_shell(command: str, call_id: str | None = None) -> dict[str, Any]:
    return function_call("run_shell", {"command": command, "timeout": None, "workdir": None}, call_id)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@APIS
@pytest.mark.parametrize("stateless", [True, False])
def test_going_on(stage: Any, tmp_path: Path, api: str, stateless: bool) -> None:
    """Issue 4.4, --resume: another process with the same file sends the model the whole conversation."""
    path = tmp_path / "talk.jsonl"

    async def main() -> None:
        with Transcript(path) as transcript:
            script = [[reasoning("sealed"), message("I look."), run_shell("echo seen", "c1")], [message("Seen.")]]
            async with stage(script, api=api, stateless=stateless, transcript=transcript) as on:
                await on.run("first")
        with Transcript(path) as transcript:
            script = [[message("I know.")], [message("Still.")]]
            async with stage(script, api=api, stateless=stateless, transcript=transcript) as on:
                assert await on.ends("second") == Stopped(reason="done", text="I know.")
                sent = json.dumps(on.sent(0))
                for known in ("first", "I look.", "echo seen", "exit code 0", "Seen.", "second"):
                    assert known in sent
                assert await on.ends("third") == Stopped(reason="done", text="Still.")
                assert ("first" in json.dumps(on.sent(1))) is (api == "chat" or stateless)

    asyncio.run(main())


@APIS
def test_what_is_done_is_on_record_before(stage: Any, tmp_path: Path, api: str) -> None:
    """Issue 4.4, crash-safe: when a command runs, the file holds the call; when the next request is made, its output."""
    path = tmp_path / "talk.jsonl"

    async def main() -> None:
        with Transcript(path) as transcript:
            script = [[run_shell("cat ../talk.jsonl", "c1")], Hang()]
            async with stage(script, api=api, transcript=transcript) as on:
                run = asyncio.create_task(on.run("go"))
                while len(on.server.model.requests) < 2:
                    await asyncio.sleep(0.001)
                header, task, call, output = lines(path)
                assert header == {"shellkit": 1, "api": api}
                assert task["items"][0]["content"] == "go"
                assert "cat ../talk.jsonl" in json.dumps(call)
                assert "cat ../talk.jsonl" in on.told("c1")
                assert "c1" in json.dumps(output)
                on.agent.stop()
                await run

    asyncio.run(main())
    assert path.stat().st_mode & 0o777 == 0o600


_CRASHES = """
    import asyncio, sys, openai
    from shellkit import LocalExecutor
    from shellkit.agent import Agent, Transcript

    async def main():
        url, path, api = sys.argv[1:]
        client = openai.AsyncOpenAI(base_url=url, api_key="x")
        async with LocalExecutor(shell="bash") as shell:
            tool = shell.as_tool(approval="never", acknowledge_unsafe=True)
            agent = Agent(client, "m", tool, api=api, transcript=Transcript(path), instructions="Be brief.")
            async for event in agent.run("go"):
                print(type(event).__name__, flush=True)

    asyncio.run(main())
"""


@APIS
def test_after_a_crash(stage: Any, tmp_path: Path, api: str) -> None:
    """Issue 4.4, crash-safe: after SIGKILL in a command, the model is told that nobody knows what became of it."""
    path = tmp_path / "talk.jsonl"

    async def main() -> None:
        script = [[run_shell("echo on; sleep 100", "c1"), run_shell("echo two", "c2")], [message("fine")]]
        async with stage(script, api=api) as on:
            argv = [sys.executable, "-c", textwrap.dedent(_CRASHES), on.server.base_url, str(path), api]
            with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as crashing:
                assert crashing.stdout is not None
                while crashing.stdout.readline().strip() != OutputChunk.__name__:
                    pass
                crashing.send_signal(signal.SIGKILL)
            with Transcript(path) as transcript:
                agent = type(on.agent)(
                    on.agent._model._client.client, "m", on.agent._tools[0], api=api, transcript=transcript
                )
                events = [event async for event in agent.run("go on")]
                assert events[-1] == Stopped(reason="done", text="fine")
            assert on.told("c1") == on.told("c2")
            assert on.told("c1").startswith("Not known whether it ran")

    asyncio.run(main())


def test_every_torn_end(stage: Any, tmp_path: Path) -> None:
    """Issue 4.4, crash-safe: wherever a file ends, it loads, and the server takes the conversation it holds."""
    path = tmp_path / "talk.jsonl"

    async def main() -> None:
        with Transcript(path) as transcript:
            script = [[message("I look."), shell_call("echo 1", "echo 2", call_id="c1")], [message("Done.")]]
            async with stage(script, form="shell", transcript=transcript) as on:
                await on.run("go")
        whole = path.read_bytes()
        ends = {0, 1, *(at + step for at, byte in enumerate(whole) if byte == 10 for step in (-1, 0, 1, 2))}
        for end in sorted(end for end in ends if end <= len(whole)):
            path.write_bytes(whole[:end])
            with Transcript(path) as transcript:
                kept = whole[: whole.rfind(b"\n", 0, end) + 1]
                assert path.read_bytes() == kept
                async with stage([[message("fine")]], form="shell", transcript=transcript) as on:
                    assert await on.ends("go on") == Stopped(reason="done", text="fine")
            assert path.read_bytes().startswith(kept)
            assert lines(path)[0] == {"shellkit": 1, "api": "responses"}

    asyncio.run(main())


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        b"hello\n",
        b"[]\n",
        b'{"seq": 0}\n',
        b'{"shellkit": 1, "api": "chat"}\n{}\n',
        b'{"shellkit": 1, "api": "chat"}\n{"items": [1]}\n',
        b'{"shellkit": 1, "api": "chat"}\n{"items": "abc"}\n',
        b'{"shellkit": 1, "api": "chat"}\n{"items": [{"type": null}]}\n',
        b'{"shellkit": 1, "api": "chat"}\n' + b"[" * 100_000 + b"\n",
        b'{"shellkit": 2}\n',
        b"\0\n",
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes) -> None:
    """Issue 4.4: another file is refused by name and not changed."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(TranscriptError, match=r"notes.txt.*(name another|begin a new) file"):
        Transcript(path)
    assert path.read_bytes() == content


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    """Issue 4.4: a directory, a missing one, a FIFO, a device without end and a file in use are refused with the remedy."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "missing" / "file", tmp_path / "fifo", "/dev/full"):
        with pytest.raises(TranscriptError, match="name another file"):
            Transcript(path)
    with Transcript(tmp_path / "file"), pytest.raises(TranscriptError, match="in use by another agent"):
        Transcript(tmp_path / "file")


def test_a_current_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D5: where the caller stands in a deleted directory, a transcript there is refused by name."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(TranscriptError, match="talk cannot be used: No such file"):
        Transcript("talk")


def test_another_api(stage: Any, tmp_path: Path) -> None:
    """Issue 4.4: a conversation goes on by the API that it began with."""

    async def main() -> None:
        with Transcript(tmp_path / "talk") as transcript:
            async with stage([[message("a")]], transcript=transcript) as on:
                await on.run()
        with Transcript(tmp_path / "talk") as transcript:
            async with stage([], api="chat", transcript=transcript):
                pass

    with pytest.raises(TranscriptError, match="--api responses"):
        asyncio.run(main())


@APIS
@pytest.mark.parametrize(("closed_at", "made"), [(TextDelta, False), (CallRequested, True)])
def test_what_cannot_be_recorded(stage: Any, tmp_path: Path, api: str, closed_at: type[Event], made: bool) -> None:
    """Issue 4.4, crash-safe: a call that is not on record does not run; a file that fails ends the turn, not the session."""

    async def main() -> None:
        with Transcript(tmp_path / "talk") as transcript:
            script = [[message("I do."), run_shell("touch made")]]
            async with stage(script, api=api, transcript=transcript) as on:
                async for event in on.agent.run("go"):
                    if isinstance(event, closed_at):
                        transcript.close()
                assert isinstance(event, Stopped)
                assert event.reason == "error"
                assert "open the Transcript again" in event.error
                assert (on.workdir / "made").exists() is made
                assert await on.usable()

    asyncio.run(main())
