"""`workdir`, confinement and symbolic links, as a model meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FREE = {"approval": "never", "acknowledge_unsafe": True}


@pytest.fixture
def confined(bench: Any, tmp_path: Path) -> Any:
    """A tool that is kept in its directory, which has a directory and a link to the outside in it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "link").symlink_to("../outside")
    (tmp_path / "work" / "inner").symlink_to("sub")
    return bench(shell={"confinement": "root"}, **FREE)


@pytest.mark.parametrize(
    "place", ["..", "../outside", "/", "link", "link/../link", "sub/../../outside", "link/x", "~root"]
)
def test_a_workdir_outside_is_refused(confined: Any, tmp_path: Path, place: str) -> None:
    """H5, sec-workdir-symlink: links are resolved; a refusal names the directory to stay in, and is on record."""
    output = confined.call("touch pwned", workdir=place)
    assert (output.is_error, output.result) == (True, None)
    assert not list(tmp_path.rglob("pwned"))
    if place not in ("~root", "link/../link"):
        assert "is outside" in output.text
        assert str(confined.workdir) in output.text
        assert [(line["event"], line["decided_by"]) for line in confined.lines] == [("refused", "confinement")]


@pytest.mark.parametrize("place", ["sub", "./sub/", "inner", "sub/..", "."])
def test_a_workdir_inside(confined: Any, place: str) -> None:
    """H5: inside it may be relative to where the session began, and holds for one command."""
    confined.shell.run("cd sub")
    output = confined.call("pwd -P", workdir=place)
    assert output.result.stdout == f"{(confined.workdir / place).resolve()}\n"
    assert confined.call("pwd").result.stdout == f"{confined.workdir}/sub\n"


def test_what_is_shown_and_recorded_is_absolute(bench: Any, person: Any) -> None:
    """H7: the person who approves and the log see the directory itself, not how the model wrote it."""
    approver = person()
    it = bench(approver=approver)
    (it.workdir / "sub").mkdir()
    it.call("pwd", workdir="./sub/../sub")
    assert [request.workdir for request in approver.asked] == [f"{it.workdir}/sub"]
    assert it.lines[0]["workdir"] == f"{it.workdir}/sub"


def test_home(bench: Any) -> None:
    """H5: `~` is the home directory, as it is for `run`."""
    assert bench(**FREE).call("pwd", workdir="~").result.stdout.rstrip() == str(Path.home())


def test_a_command_that_leaves_is_brought_back(confined: Any) -> None:
    """H5: "root" lets `cd` persist inside and brings back what ends outside, which the model is told."""
    output = confined.call("cd ..")
    assert output.result.workdir == str(confined.workdir)
    assert "[note: " in output.text
    confined.call("cd sub")
    assert confined.call("pwd").result.stdout == f"{confined.workdir}/sub\n"


def test_anchor(bench: Any) -> None:
    """H5: "anchor" starts each command in the working directory, and the description says so."""
    it = bench(shell={"confinement": "anchor"}, **FREE)
    it.call("mkdir sub; cd sub")
    assert it.call("pwd").result.stdout == f"{it.workdir}\n"
    assert "each command starts in the working directory" in it.tool.description


def test_a_workdir_that_is_a_link_itself(bench: Any, tmp_path: Path) -> None:
    """sec-workdir-itself-a-symlink: a linked workspace is no escape."""
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "linked").symlink_to("work")
    it = bench(shell={"workdir": tmp_path / "linked", "confinement": "root"}, **FREE)
    output = it.call("echo hi > f && cat f && cd . && pwd -P | sed 's|.*/||'")
    assert (output.result.stdout, output.result.notes) == ("hi\nwork\n", ())
    assert it.call("pwd -P", workdir="sub").result.stdout == f"{tmp_path}/work/sub\n"


@pytest.mark.parametrize("place", ["missing", "file"])
def test_no_such_directory(bench: Any, place: str) -> None:
    """H4: a directory that cannot be entered comes back as text; nothing ran."""
    it = bench(**FREE)
    (it.workdir / "file").touch()
    output = it.call("touch pwned", workdir=place)
    assert output.text.startswith("Not run: working directory ")
    assert (output.is_error, it.made) == (True, ["file"])
    assert [(line["event"], line.get("error")) for line in it.lines] == [("before", None), ("after", "InvalidWorkdir")]
