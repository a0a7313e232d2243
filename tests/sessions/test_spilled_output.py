"""Output that is too large for a result is kept whole, in the places where output appears."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, BlockingJob, ExecutorClosed, LocalExecutor, ShellResult, UnknownOutput

OpenShell = Callable[..., BlockingExecutor]

NUMBERS = "".join(f"{n}\n" for n in range(1, 20_001))


@pytest.fixture
def spilling(tmp_path: Path, mode: str) -> dict[str, Any]:
    """Options of an executor that keeps large output."""
    (tmp_path / "work").mkdir()
    return {"mode": mode, "workdir": tmp_path / "work", "spill_dir": tmp_path / "spill", "max_output_bytes": 1000}


def whole(shell: BlockingExecutor, ref: str | None) -> str:
    """Return everything that is kept under a reference, page by page."""
    assert ref is not None
    text, at = "", 0
    while True:
        page = shell.read_output(ref, offset=at, limit=50_000)
        text += page.text
        if page.next_offset in (None, at):
            return text
        at = page.next_offset


def test_both_streams_are_kept_whole(open_shell: OpenShell, spilling: dict[str, Any]) -> None:
    """E5: what the result leaves out stands in a file, each stream in its own, from the first byte to the last."""
    shell = open_shell(**spilling)
    result = shell.run("seq 20000; seq 20000 | tr 1 x >&2")
    assert result.truncated
    assert whole(shell, result.stdout_ref) == NUMBERS
    assert whole(shell, result.stderr_ref) == NUMBERS.replace("1", "x")
    assert f"ref {result.stdout_ref}" in result.for_model()
    assert f"ref {result.stderr_ref}" in result.for_model()
    merged = shell.run("seq 10000; seq 10001 20000 >&2", merge_stderr=True)
    assert whole(shell, merged.stdout_ref) == NUMBERS
    assert merged.stderr_ref is None


def test_nothing_is_kept_of_what_fits(open_shell: OpenShell, spilling: dict[str, Any], tmp_path: Path) -> None:
    """E5: output up to the limit touches no disk."""
    result = open_shell(**spilling).run("printf '%01000d' 0")
    assert (result.stdout, result.stdout_ref, result.stderr_ref) == ("0" * 1000, None, None)
    assert not (tmp_path / "spill").exists()


def test_each_command_has_its_own(open_shell: OpenShell, spilling: dict[str, Any]) -> None:
    """E5, C2: nothing of one command's output stands in another's file."""
    shell = open_shell(**spilling)
    refs = [shell.run(f"for i in $(seq 1000); do echo {n}; done").stdout_ref for n in range(5)]
    assert [set(whole(shell, ref).split()) for ref in refs] == [{str(n)} for n in range(5)]


@pytest.mark.parametrize("limit", [0, 1, 65536])
def test_any_limit(open_shell: OpenShell, spilling: dict[str, Any], limit: int) -> None:
    """E3, E5: also when nothing at all is kept in memory."""
    shell = open_shell(**{**spilling, "max_output_bytes": limit})
    assert whole(shell, shell.run("seq 20000").stdout_ref) == NUMBERS


def test_with_live_output(open_shell: OpenShell, spilling: dict[str, Any]) -> None:
    """C4, E5: watching a command changes nothing."""
    shell = open_shell(**spilling)
    heard: list[str] = []
    result = shell.run("seq 20000", on_output=lambda stream, text: heard.append(text))
    assert "".join(heard) == whole(shell, result.stdout_ref) == NUMBERS


def test_a_command_that_ends_badly(open_shell: OpenShell, spilling: dict[str, Any]) -> None:
    """E5, F4: at a time-out, and when the shell ends, what was printed is kept."""
    shell = open_shell(**spilling)
    late = shell.run("seq 20000; sleep 60", timeout=2.0)
    assert late.timed_out
    assert whole(shell, late.stdout_ref) == NUMBERS
    killed = shell.run("seq 20000; kill -9 $$")
    assert whole(shell, killed.stdout_ref) == NUMBERS
    traps = shell.run("trap 'echo the end' EXIT; seq 20000; exit 3")
    assert whole(shell, traps.stdout_ref) == NUMBERS + "the end\n"
    assert shell.run("echo next").stdout == "next\n"


def test_a_job_goes_on_in_the_same_file(open_shell: OpenShell, spilling: dict[str, Any]) -> None:
    """E5, I2: what a job writes later is added to the file that its command began."""
    shell = open_shell(**spilling)
    os.mkfifo(Path(spilling["workdir"]) / "go")
    result = shell.run("seq 10000; { read -r line < go; seq 10001 20000; } &")
    [job] = result.background
    assert isinstance(job, BlockingJob)
    assert not shell.read_output(str(result.stdout_ref)).ended
    shell.run("echo > go")
    output = job.wait(10)
    assert output.stdout_ref == result.stdout_ref
    assert output.stdout_omitted
    assert whole(shell, result.stdout_ref) == NUMBERS
    assert shell.read_output(str(result.stdout_ref)).ended


def test_a_command_that_is_handed_over(open_shell: OpenShell, spilling: dict[str, Any]) -> None:
    """E5, F: a command that runs on after its time-out goes on in the file that it began."""
    shell = open_shell(**spilling)
    os.mkfifo(Path(spilling["workdir"]) / "go")
    result = shell.run("seq 10000; read -r line < go; seq 10001 20000; exit 3", timeout=2.0, on_timeout="background")
    [job] = result.background
    assert isinstance(job, BlockingJob)
    shell.run("echo > go")
    output = job.wait(10)
    assert (job.exit_code, output.stdout_ref) == (3, result.stdout_ref)
    assert whole(shell, result.stdout_ref) == NUMBERS


def test_a_job_alone(open_shell: OpenShell, spilling: dict[str, Any]) -> None:
    """E5: a job whose command printed little has a file from the first output on that did not fit."""
    shell = open_shell(**spilling)
    os.mkfifo(Path(spilling["workdir"]) / "go")
    result = shell.run("echo started; { read -r line < go; seq 20000; } &")
    [job] = result.background
    assert isinstance(job, BlockingJob)
    assert result.stdout_ref is None
    shell.run("echo > go")
    assert whole(shell, job.wait(10).stdout_ref) == NUMBERS


def test_a_program_is_kept_whole(spilling: dict[str, Any]) -> None:
    """E5: what a launched program prints is kept, too, also beyond what an update can hold."""

    async def scenario() -> str:
        async with LocalExecutor(shell="bash", **spilling) as shell:
            update = await shell.launch("seq 20000", until="exit")
            assert update.output_ref is not None
            assert update.omitted
            page = await shell.read_output(update.output_ref, limit=200_000)
            assert page.ended
            return page.text

    assert asyncio.run(scenario()) == NUMBERS


def test_an_executor_that_nobody_closes(spilling: dict[str, Any], tmp_path: Path) -> None:
    """E5, G3: when the executor is garbage its files are removed."""
    shell = LocalExecutor(shell="bash", **spilling).sync()
    assert shell.run("seq 20000").stdout_ref is not None
    del shell
    gc.collect()
    assert list((tmp_path / "spill").iterdir()) == []


def test_reading_while_a_command_runs(spilling: dict[str, Any]) -> None:
    """E5: `read_output` waits for nobody, and works from the event loop."""

    async def scenario() -> tuple[str, ShellResult]:
        async with LocalExecutor(shell="bash", **spilling) as shell:
            ref = (await shell.run("seq 20000")).stdout_ref
            os.mkfifo(Path(spilling["workdir"]) / "go")
            running = asyncio.ensure_future(shell.run("read -r line < go; echo $line"))
            page = await shell.read_output(str(ref), pattern="^19999$")
            with open(Path(spilling["workdir"]) / "go", "w") as go:
                go.write(page.text)
            return page.text, await running

    text, result = asyncio.run(scenario())
    assert text == result.stdout == "19999:19999\n"


def test_a_full_disk_is_a_note(open_shell: OpenShell, spilling: dict[str, Any]) -> None:
    """E5: a disk without room costs the file, never the command."""
    shell = open_shell(**spilling)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        result = shell.run("seq 20000; exit 3")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert result.exit_code == 3
    assert result.stdout.endswith("\n20000\n")
    assert any("5000 bytes could not be kept" in note and "spill_dir" in note for note in result.notes)
    assert whole(shell, result.stdout_ref) == NUMBERS[:5000]


def test_a_conversation_that_is_taken_up_again(open_shell: OpenShell, spilling: dict[str, Any], tmp_path: Path) -> None:
    """E5: with a retention, a later executor of the same directory reads what the first one kept."""
    first = open_shell(**spilling, spill_retention=60)
    ref = first.run("seq 20000").stdout_ref
    first.close()
    second = open_shell(**spilling)
    assert whole(second, ref) == NUMBERS
    assert whole(second, second.run("seq 20000").stdout_ref) == NUMBERS
    shutil.rmtree(tmp_path / "spill")


def test_without_a_directory(shell: BlockingExecutor) -> None:
    """E5: without `spill_dir` nothing is kept, and the error says how to get it."""
    assert shell.run("seq 200000").stdout_ref is None
    with pytest.raises(UnknownOutput, match="spill_dir"):
        shell.read_output("0123456789abcdef")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"spill_dir": "work/inside"}, ValueError, "inside the working directory"),
        ({"spill_dir": "work"}, ValueError, "inside the working directory"),
        ({"spill_dir": "link/inside"}, ValueError, "inside the working directory"),
        ({"spill_dir": "file"}, ValueError, "not a directory"),
        ({"spill_dir": ""}, ValueError, "spill_dir"),
        ({"spill_dir": 7}, TypeError, "spill_dir"),
        ({"spill_dir": "out", "spill_limit": 1000}, ValueError, "spill_limit"),
        ({"spill_dir": "out", "spill_limit": 1e9}, TypeError, "spill_limit"),
        ({"spill_dir": "out", "spill_retention": -1}, ValueError, "spill_retention"),
    ],
)
def test_wrong_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    """E5: the directory must lie outside `workdir`, symbolic links resolved; other nonsense is refused at once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("work")
    with pytest.raises(error, match=says):
        LocalExecutor(shell="bash", workdir="work", **options)


def test_close_removes_the_files(open_shell: OpenShell, spilling: dict[str, Any], tmp_path: Path) -> None:
    """E5, G3: closing leaves nothing, and says so to who asks later."""
    shell = open_shell(**spilling)
    ref = shell.run("seq 20000").stdout_ref
    shell.close()
    assert list((tmp_path / "spill").iterdir()) == []
    with pytest.raises(ExecutorClosed):
        shell.read_output(str(ref))
