"""Directories that go away, disks that are full, names that are no text: errors in the result, no dead session (D5)."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, InvalidWorkdir, LocalExecutor, SpawnError


def test_a_deleted_directory_is_no_end(shell: BlockingExecutor) -> None:
    """D5: a command may remove the directory that it stands in, and later ones go on there and elsewhere."""
    result = shell.run('mkdir gone && cd gone && rm -rf "$PWD"; echo hello')
    assert (result.stdout, result.exit_code) == ("hello\n", 0)
    result = shell.run("echo still")
    assert (result.stdout, result.exit_code, result.shell_state) == ("still\n", 0, "alive")
    assert shell.run("ls; echo rc=$?").stdout == "rc=0\n"
    died = shell.run("kept=1; exit 3")
    assert (died.exit_code, died.shell_state) == (3, "restored")
    assert shell.run("echo $kept").stdout == "1\n"
    assert shell.run("cd /tmp && pwd").stdout == "/tmp\n"


def test_a_renamed_directory_is_followed(shell: BlockingExecutor, tmp_path: Path) -> None:
    """D5: a directory that is moved under the shell is still the shell's directory, and the result names it."""
    shell.run("mkdir -p old && cd old && touch here")
    result = shell.run("mv ../old ../new; ls")
    assert (result.stdout, result.exit_code, result.workdir) == ("here\n", 0, f"{tmp_path}/new")
    assert shell.run("cd .. && ls -d new").stdout == "new\n"


def test_a_replaced_directory(shell: BlockingExecutor) -> None:
    """D5: a directory that is removed and made anew leaves the session usable in both."""
    shell.run("mkdir d; cd d")
    shell.run('rm -rf "$PWD"; mkdir "$PWD"; touch "$PWD/new"')
    assert shell.run('cd "$PWD"; ls').stdout == "new\n"


def test_names_that_are_not_utf8(shell: BlockingExecutor, tmp_path: Path) -> None:
    """D5, C3: a directory whose name holds odd bytes and newlines is tracked, restored, and safe in JSON."""
    result = shell.run("mkdir -p $'b\\377 \\nd' && cd $'b\\377 \\nd' && touch $'f\\376' && ls | od -An -tx1")
    assert "66 fe 0a" in result.stdout
    assert result.workdir == os.fsdecode(os.fsencode(tmp_path) + b"/b\xff \nd")
    json.dumps(result.to_dict(), allow_nan=False).encode("utf-8")
    result.for_model().encode("utf-8")
    assert shell.run("exit 3").shell_state == "restored"
    assert shell.run("ls | wc -l").stdout.strip() == "1"
    assert shell.run("ls", workdir="/").exit_code == 0
    assert shell.run("ls | wc -l").stdout.strip() == "1"


def test_a_full_disk_is_an_error_in_the_result(either: BlockingExecutor) -> None:
    """D5: writing to a full device fails in the command and nowhere else."""
    result = either.run("echo x > /dev/full; echo rc=$?")
    assert result.stdout == "rc=1\n"
    assert "No space left" in result.stderr
    assert either.run("echo ok").stdout == "ok\n"


def test_a_missing_workdir_at_the_start(open_shell: Any, mode: str) -> None:
    """D5: a `workdir` missing at the first start is `SpawnError`, names it, and works once it is there."""
    shell = open_shell(mode=mode, workdir="/nonexistent/work")
    for _ in range(2):
        with pytest.raises(SpawnError, match="working directory does not exist: /nonexistent/work"):
            shell.run("echo hi")


def test_a_host_that_stands_in_a_deleted_directory(
    open_shell: Any, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D5: an absolute `workdir` works there; without one the error says what to do."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for relative in (None, "sub"):
        with pytest.raises(InvalidWorkdir, match=r"the current directory is gone .* name an absolute workdir"):
            LocalExecutor(mode=mode, workdir=relative)  # type: ignore[arg-type]
    shell = open_shell(mode=mode, workdir=tmp_path)
    assert shell.run("pwd; exit 3").stdout == f"{tmp_path}\n"
    assert shell.run("pwd", workdir=tmp_path).stdout == f"{tmp_path}\n"
    # dash, which starts the program, complains on the way.
    assert shell.launch("pwd", until="exit", yield_time=10).output.endswith(f"{tmp_path}\n")


def test_a_workdir_that_appears_later(open_shell: Any, mode: str, tmp_path: Path) -> None:
    """D5: after a failed start the executor may be tried again."""
    shell = open_shell(mode=mode, workdir=tmp_path / "later")
    with pytest.raises(InvalidWorkdir):
        shell.run("pwd")
    (tmp_path / "later").mkdir()
    assert shell.run("pwd").stdout == f"{tmp_path}/later\n"


def test_a_workdir_that_goes_away(open_shell: Any, mode: str, tmp_path: Path) -> None:
    """D5: a `workdir` that is removed under the session ends in a clear result or error, and heals when it is back."""
    root = tmp_path / "root"
    root.mkdir()
    shell = open_shell(mode=mode, workdir=root)
    shell.run("true")
    root.rmdir()
    if mode == "stateless":
        with pytest.raises(SpawnError, match="does not exist"):
            shell.run("echo a")
    else:
        assert shell.run("echo a").stdout == "a\n"
        shell.run("exit 1")
        result = shell.run("echo b")
        assert result.stdout == "b\n"
        assert any(str(root) in note for note in result.notes)
    root.mkdir()
    assert shell.run("cd . ; echo c").stdout == "c\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every directory")
def test_an_unreadable_directory(either: BlockingExecutor, tmp_path: Path) -> None:
    """D5: a directory that may not be entered is refused by name, and the session is unharmed."""
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(InvalidWorkdir, match="may not be entered"):
        either.run("ls", workdir=tmp_path / "closed")
    assert either.run("echo ok").stdout == "ok\n"


def test_a_host_that_has_run_out_of_descriptors(shell: BlockingExecutor) -> None:
    """D5: a host without descriptors gets a clear error, and the session goes on when there are some again."""
    import resource

    shell.run("kept=5")
    assert shell.run("exit 3").shell_state == "restored"
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, limits[1]))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        with pytest.raises((OSError, SpawnError), match=r"[Tt]oo many open files"):
            shell.run("echo b")
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert shell.run("echo $kept").stdout == "5\n"
