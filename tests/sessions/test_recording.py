"""Sessions are recorded as they happen."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shellkit import BlockingExecutor, LocalExecutor
from shellkit.output.asciicast import Event, parse_event, parse_header
from shellkit.sessions import recording
from shellkit.sessions.recording import Recorder

OpenShell = Callable[..., BlockingExecutor]


def events(path: Path) -> list[Event]:
    """Return the events of a recording."""
    header, *lines = path.read_bytes().splitlines(keepends=True)
    parse_header(header)
    return [parse_event(line) for line in lines]


def shown(path: Path) -> str:
    """Return what a player would print."""
    return "".join(event.data for event in events(path) if event.code == "o")


def test_commands(open_shell: OpenShell, mode: str, tmp_path: Path) -> None:
    """Issue 5, item 6: each command stands after a prompt, then comes what it prints, at the time it did."""
    shell = open_shell(mode=mode, record=tmp_path / "session.cast")
    shell.run("echo one; echo two >&2")
    heard: list[str] = []
    shell.run("printf '行\\n'; sleep 0.1; echo end", on_output=lambda stream, text: heard.append(text))
    assert shown(tmp_path / "session.cast") == (
        "$ echo one; echo two >&2\r\none\r\ntwo\r\n$ printf '行\\n'; sleep 0.1; echo end\r\n行\r\nend\r\n"
    )
    assert "".join(heard) == "行\nend\n"
    times = [event.time for event in events(tmp_path / "session.cast")]
    assert times == sorted(times)
    begun = next(event.time for event in events(tmp_path / "session.cast") if event.data.startswith("printf"))
    assert times[-1] - begun >= 0.1
    typed = [event.data for event in events(tmp_path / "session.cast") if event.code == "i"]
    assert typed == ["echo one; echo two >&2\n", "printf '行\\n'; sleep 0.1; echo end\n"]


def test_programs(tmp_path: Path) -> None:
    """Issue 5, item 6: each launched program is recorded beside the session, with what was typed and its size."""

    async def scenario() -> None:
        async with LocalExecutor(shell="bash", record=tmp_path / "session.cast") as shell:
            update = await shell.launch("stty size; read -r line; stty size; echo got $line", tty=True, rows=10)
            assert update.process_id is not None
            shell.resize(update.process_id, 20, 90)
            await shell.write(update.process_id, "typed\n", until="exit")
            await shell.launch("echo second", until="exit")

    asyncio.run(scenario())
    path = tmp_path / "session-1.cast"
    assert parse_header(path.read_bytes().splitlines()[0]).rows == 10
    assert [e.data for e in events(path) if e.code != "o"] == ["90x20", "typed\n"]
    assert shown(path) == "10 120\r\ntyped\r\n20 90\r\ngot typed\r\n"
    assert "second" in shown(tmp_path / "session-2.cast")


def test_a_password_is_not_recorded(tmp_path: Path) -> None:
    """Issue 5, item 3: what is typed while the terminal does not echo is not in the file."""

    async def scenario() -> None:
        async with LocalExecutor(shell="bash", record=tmp_path / "session.cast") as shell:
            update = await shell.launch("read -rs -p 'Password: ' word; echo; echo length ${#word}", tty=True)
            assert update.process_id is not None
            done = await shell.write(update.process_id, "hunter2\n", until="exit")
            assert "length 7" in done.output

    asyncio.run(scenario())
    assert "hunter2" not in (tmp_path / "session-1.cast").read_text()
    assert "length 7" in shown(tmp_path / "session-1.cast")


def test_a_crash_leaves_a_playable_file(tmp_path: Path, eventually: Callable[..., None]) -> None:
    """Issue 5, item 6: what had happened when the host was killed is in the file."""
    path = tmp_path / "session.cast"
    script = (
        "import sys; from shellkit import LocalExecutor\n"
        "LocalExecutor(shell='bash', record=sys.argv[1]).sync().run('echo before; sleep 60')"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)]) as host:
        eventually(lambda: path.exists() and b"before\\r\\n" in path.read_bytes(), 10)
        host.send_signal(signal.SIGKILL)
    assert shown(path).endswith("before\r\n")


def test_only_this_user_may_read_it(tmp_path: Path) -> None:
    """Issue 5, item 6: a recording holds what was typed: it is 0600."""
    Recorder(tmp_path / "a.cast")
    assert stat.S_IMODE((tmp_path / "a.cast").stat().st_mode) == 0o600


def test_a_full_disk(open_shell: OpenShell, tmp_path: Path) -> None:
    """Issue 5, item 6: a disk without room costs the recording, never the command."""
    shell = open_shell(record=tmp_path / "session.cast")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        result = shell.run("seq 1000; exit 3")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (result.exit_code, result.stdout.endswith("1000\n"), result.notes[1:]) == (3, True, ())
    shell.run("echo later")
    assert "later" not in (tmp_path / "session.cast").read_text()


def test_an_endless_recording_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5, item 6: a recording is bounded, and its last words say so."""
    monkeypatch.setattr(recording, "MOST_BYTES", 1000)
    recorder = Recorder(tmp_path / "a.cast")
    for _ in range(100):
        recorder.output(memoryview(b"x" * 100))
    assert os.stat(tmp_path / "a.cast").st_size < 1500
    assert "the recording ends here" in events(tmp_path / "a.cast")[-1].data


def test_names_beside(tmp_path: Path) -> None:
    """Issue 5, item 6: a program's file never takes the place of another, and its lack hurts nobody."""
    recorder = Recorder(tmp_path / "a.cast")
    (tmp_path / "a-1.cast").write_text("another's")
    recorder.beside(rows=1, columns=1, title="x").output(memoryview(b"hello"))
    assert (tmp_path / "a-1.cast").read_text() == "another's"
    assert shown(tmp_path / "a-2.cast") == "hello"
    folder = tmp_path / "folder"
    folder.mkdir()
    moved = Recorder(folder / "b.cast")
    folder.rename(tmp_path / "gone")
    moved.beside(rows=1, columns=1, title="x").output(memoryview(b"hello"))
    moved.output(memoryview(b"hello"))
    assert not folder.exists()


@pytest.mark.parametrize(
    ("path", "error", "says"),
    [
        ("there.cast", ValueError, "exists"),
        ("no/such/a.cast", ValueError, "cannot be written"),
        (7, TypeError, "PathLike"),
        ("a\0b", ValueError, "cannot be written"),
    ],
)
def test_wrong_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: object, error: type[Exception], says: str
) -> None:
    """Issue 5, item 6: a recording never overwrites a file, and what cannot be recorded is told at once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.cast").write_text("mine")
    with pytest.raises(error, match=says):
        LocalExecutor(shell="bash", record=path)  # type: ignore[arg-type]  # that is the point
    assert (tmp_path / "there.cast").read_text() == "mine"
