"""Keeping a session in its directory: "root", "anchor" and "off" (H5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shellkit import BlockingExecutor, CommandDenied, InvalidWorkdir, LocalExecutor, SpawnError

OpenShell = Callable[..., BlockingExecutor]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A working directory with a neighbour, a link out of it, and a link to itself."""
    (tmp_path / "ws" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "ws-neighbour").mkdir()
    (tmp_path / "ws" / "out").symlink_to("../outside")
    (tmp_path / "ws" / "self").symlink_to(".")
    (tmp_path / "linked").symlink_to("ws")
    return tmp_path / "ws"


WAYS_OUT = [
    "cd ..",
    "cd /",
    "cd",
    "cd out",
    "cd sub/../..",
    "cd ../ws-neighbour",
    "cd ../outside && cd -P .",
    "cd ../outside; cd ../ws; cd -",
    "CDPATH=..; cd outside",
    "pushd /",
    "pushd /usr; pushd /tmp; popd",
    'cd() { builtin cd "$@"; }; cd /',
    "cd() { :; }; builtin cd /",
    "command cd /; eval 'cd /usr'",
    "d=$(printf '\\056\\056'); cd $d",
    "shopt -s autocd; /usr",
    "cd /; PWD=$OLDPWD",
    "export PWD=/nowhere; cd /; unset PWD OLDPWD",
    "set -e; cd /",
    "alias cd=true; \\cd /",
]


@pytest.mark.parametrize("command", WAYS_OUT)
def test_a_command_that_ends_outside_is_brought_back(open_shell: OpenShell, root: Path, command: str) -> None:
    """H5: in mode "root" a command that ends outside is brought back to where it started, with a note."""
    shell = open_shell(workdir=root)
    result = shell.run(command)
    assert result.workdir == str(root)
    if "autocd" not in command:  # only interactive shells do it
        assert any("working directory" in note for note in result.notes)
    after = shell.run("/bin/pwd -P")
    assert after.stdout == f"{root}\n"
    assert after.workdir == str(root)
    assert after.notes == ()


def test_it_comes_back_to_where_it_started(open_shell: OpenShell, root: Path) -> None:
    """H5: a command that leaves from a directory below the root is brought back to that directory."""
    shell = open_shell(workdir=root)
    shell.run("cd sub/deep")
    result = shell.run("cd /")
    assert result.workdir == f"{root}/sub/deep"
    assert shell.run("pwd").stdout == f"{root}/sub/deep\n"


@pytest.mark.parametrize(
    ("command", "ends"),
    [
        ("cd sub", "sub"),
        ("cd sub/deep; cd ..", "sub"),
        ("cd ..; cd ws", ""),
        ("cd self/self/sub", "sub"),
        ("mkdir new && cd new", "new"),
        ("pushd sub", "sub"),
        ("(cd /); cd sub", "sub"),
        ("cd sub; bash -c 'cd /'", "sub"),
    ],
)
def test_moving_inside_persists(open_shell: OpenShell, root: Path, command: str, ends: str) -> None:
    """H5: in mode "root" `cd` inside the directory persists, without a note."""
    shell = open_shell(workdir=root)
    result = shell.run(command)
    assert result.notes == ()
    assert Path(shell.run("pwd -P").stdout.strip()) == root / ends


def test_anchor_starts_every_command_in_the_directory(open_shell: OpenShell, root: Path, mode: str) -> None:
    """H5: in mode "anchor" each command starts in `workdir`; `cd` does not persist, the rest of the state does."""
    shell = open_shell(mode=mode, workdir=root, confinement="anchor")
    for command in ("cd sub", "cd /", "cd out", "cd() { :; }; builtin cd /usr"):
        shell.run(command)
        result = shell.run("/bin/pwd -P")
        assert (result.stdout, result.workdir) == (f"{root}\n", str(root))


def test_off_follows_everywhere(open_shell: OpenShell, root: Path) -> None:
    """H5: in mode "off" nothing is brought back and nothing is refused."""
    shell = open_shell(workdir=root, confinement="off")
    assert shell.run("cd /usr").workdir == "/usr"
    assert shell.run("pwd").stdout == "/usr\n"
    assert shell.run("pwd", workdir="/").stdout == "/\n"


@pytest.mark.parametrize("outside", ["..", "/", "out", "../outside", "../ws-neighbour", "sub/../.."])
@pytest.mark.parametrize("confinement", ["root", "anchor"])
def test_a_workdir_outside_is_refused(
    open_shell: OpenShell, root: Path, mode: str, confinement: str, outside: str
) -> None:
    """H5: `workdir=` outside the root, symbolic links resolved, is refused before anything runs."""
    shell = open_shell(mode=mode, workdir=root, confinement=confinement)
    with pytest.raises(CommandDenied, match=r"workdir|directory"):
        shell.run("touch ran", workdir=outside)
    assert not list(root.parent.rglob("ran"))
    assert shell.run("pwd", workdir="sub").stdout == f"{root}/sub\n"
    assert shell.run("pwd").stdout == f"{root}\n"


def test_the_root_may_be_a_symbolic_link(open_shell: OpenShell, root: Path, mode: str) -> None:
    """H5: a working directory that is itself a link confines as its target does, and keeps its name."""
    linked = root.parent / "linked"
    shell = open_shell(mode=mode, workdir=linked)
    result = shell.run("echo hi > f && cat f && cd . && pwd -P")
    assert (result.stdout, result.notes) == (f"hi\n{root}\n", ())
    assert shell.run("pwd").stdout == f"{linked}\n"
    if mode == "persistent":
        assert shell.run("cd sub && pwd").stdout == f"{linked}/sub\n"
        assert Path(str(shell.run("cd /").workdir)).resolve() == root / "sub"


def test_a_deleted_root(open_shell: OpenShell, root: Path) -> None:
    """H5, D5: a root that is deleted and made anew is the root again."""
    import shutil

    shell = open_shell(workdir=root)
    shell.run("cd sub")
    shutil.rmtree(root)
    assert shell.run("echo still").stdout == "still\n"
    root.mkdir()
    shell.run("cd /")
    result = shell.run("pwd -P")
    assert result.stdout == f"{root}\n"


def test_a_directory_outside_that_is_deleted(open_shell: OpenShell, root: Path) -> None:
    """H5: a command that ends in a deleted directory outside comes back as well."""
    shell = open_shell(workdir=root)
    shell.run("mkdir ../gone; cd ../gone; rmdir ../gone")
    assert shell.run("pwd -P").stdout == f"{root}\n"


def test_the_end_of_a_shell_outside(open_shell: OpenShell, root: Path) -> None:
    """H5, D2: a shell that ends outside is restored inside."""
    shell = open_shell(workdir=root)
    shell.run("cd sub")
    shell.run("x=1; cd /; exit 3")
    assert shell.run("pwd -P; echo $x").stdout in (f"{root}\n1\n", f"{root}/sub\n1\n")
    shell.run("cd /; sleep 5", timeout=0.1)
    assert shell.run("pwd -P").stdout.startswith(str(root))


def test_startup_commands_that_leave(open_shell: OpenShell, root: Path) -> None:
    """H5: start-up commands do not move a confined session out of its directory."""
    shell = open_shell(workdir=root, startup_commands=["cd /"])
    assert shell.run("pwd").stdout == f"{root}\n"


def test_the_default_confinement(tmp_path: Path) -> None:
    """A: confinement is "root" when a `workdir` is given, else "off"; other names are refused."""
    assert LocalExecutor(workdir=tmp_path).confinement.mode == "root"
    assert LocalExecutor().confinement.mode == "off"
    with pytest.raises(ValueError, match="confinement must be"):
        LocalExecutor(workdir=tmp_path, confinement="sandbox")


def test_a_file_is_no_workdir(open_shell: OpenShell, root: Path, mode: str) -> None:
    """D5: a `workdir` that is a file is refused by name."""
    (root / "file").touch()
    shell = open_shell(mode=mode, workdir=root)
    with pytest.raises(InvalidWorkdir, match="not a directory"):
        shell.run("true", workdir="file")
    with pytest.raises(SpawnError):
        open_shell(mode=mode, workdir=root / "file").run("true")
    assert shell.run("echo ok").stdout == "ok\n"
