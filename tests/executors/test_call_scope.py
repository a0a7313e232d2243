"""What holds for one command only: `workdir` and `env` of `run` (A)."""

from __future__ import annotations

from pathlib import Path

import pytest

from shellkit import BlockingExecutor


def test_workdir_holds_for_one_command(either: BlockingExecutor, tmp_path: Path) -> None:
    """A: `workdir` holds for this command only; relative ones start at the session's own, `OLDPWD` is untouched."""
    (tmp_path / "sub").mkdir()
    either.run("cd sub; cd ..")
    assert either.run("pwd", workdir="sub").stdout == f"{tmp_path}/sub\n"
    assert either.run("pwd", workdir=Path("/usr")).stdout == "/usr\n"
    assert either.run("pwd").stdout == f"{tmp_path}\n"


def test_the_directory_of_before_is_back(shell: BlockingExecutor, tmp_path: Path) -> None:
    """A: after a command elsewhere the shell stands where it stood, and `cd -` goes where it would have gone."""
    shell.run("mkdir a b; cd a; cd ../b")
    result = shell.run("cd /usr/bin; cd ..", workdir="/")
    assert result.workdir == f"{tmp_path}/b"
    assert shell.run("pwd; cd - > /dev/null; pwd").stdout == f"{tmp_path}/b\n{tmp_path}/a\n"


def test_env_holds_for_one_command(shell: BlockingExecutor) -> None:
    """A: `env` sets and unsets for this command only: values, export flags and attributes are as before afterwards."""
    shell.run("export E=1; P=2; arr=(a b); declare -i N=7")
    result = shell.run(
        'echo "$E $P $arr ${HOME-unset} $NEW $N"; bash -c \'echo "$E $P $NEW"\'',
        env={"E": "10", "P": "20", "arr": "x", "HOME": None, "NEW": "n w\n$x'", "N": "3"},
    )
    assert result.stdout == "10 20 x unset n w\n$x' 3\n10 20 n w\n$x'\n"
    after = shell.run(
        'echo "$E $P ${arr[*]} ${HOME-unset} ${NEW-unset} $N"; bash -c \'echo "$E ${P-unset}"\'; N=N+1; echo $N'
    )
    assert after.stdout == "1 2 a b /root unset 7\n1 unset\n8\n".replace(
        "/root", shell.run("echo $HOME").stdout.strip()
    )


def test_env_and_workdir_of_a_command_that_ends_the_shell(shell: BlockingExecutor, tmp_path: Path) -> None:
    """A, D2: what held for a command that took its shell along does not hold afterwards."""
    shell.run("export A=kept")
    assert shell.run("echo $A$PWD; exit 3", env={"A": "once", "B": "b"}, workdir="/usr").stdout == "once/usr\n"
    assert shell.run('echo "$A ${B-unset} $PWD"').stdout == f"kept unset {tmp_path}\n"
    shell.run("sleep 5", env={"A": "once", "B": "b"}, workdir="/usr", timeout=0.05)
    assert shell.run('echo "$A ${B-unset} $PWD"').stdout == f"kept unset {tmp_path}\n"


def test_what_the_command_sets_itself_persists(shell: BlockingExecutor) -> None:
    """A: other variables that the command sets are state as ever."""
    shell.run("C=$A; f() { echo f; }", env={"A": "once"})
    assert shell.run("echo ${A-unset} $C; f").stdout == "unset once\nf\n"


@pytest.mark.parametrize(
    "strict",
    [
        "set -e",
        "set -u",
        "set -eu",
        "trap 'echo E' ERR",
        "trap 'echo D' DEBUG",
        "IFS=/",
        "set -f; CDPATH=/",
        "cd() { return 1; }",
    ],
)
def test_strict_shells_are_prepared_as_well(shell: BlockingExecutor, strict: str, tmp_path: Path) -> None:
    """A, B4: errexit, nounset, traps, CDPATH and a `cd` function do not disturb what holds for one command."""
    (tmp_path / "sub").mkdir()
    shell.run(strict)
    result = shell.run('/bin/echo "$ONCE"; /bin/pwd', env={"ONCE": "1", "HOME": None}, workdir="sub")
    assert [line for line in result.stdout.splitlines() if line not in ("D", "E")] == ["1", f"{tmp_path}/sub"]
    assert result.shell_state == "alive"
    assert shell.run('/bin/echo "${ONCE-unset}"; /bin/pwd').stdout.replace("D\n", "") == f"unset\n{tmp_path}\n"


def test_a_readonly_name_is_refused(shell: BlockingExecutor) -> None:
    """A: a variable that the shell will not change is an error that names it; nothing ran and nothing stays changed."""
    shell.run("readonly R=1; A=kept")
    with pytest.raises(ValueError, match="readonly"):
        shell.run("touch ran", env={"A": "once", "R": "2"})
    assert shell.run("ls; echo $A $R").stdout == "kept 1\n"


def test_names_of_every_kind(either: BlockingExecutor, tmp_path: Path) -> None:
    """A: directories with blanks, quotes, newlines, leading dashes and odd bytes can be named."""
    for name in (b"a b", b"it's", b'"$x`', b"-n", b"new\nline", b"\xff\xfe", b"tab\t"):
        path = bytes(tmp_path) + b"/" + name
        Path(path.decode("utf-8", "surrogateescape")).mkdir()
        result = either.run("echo here > f; ls", workdir=path.decode("utf-8", "surrogateescape"))
        assert (result.stdout, result.exit_code) == ("f\n", 0)


def test_values_of_every_kind(either: BlockingExecutor) -> None:
    """A: values arrive exactly, whatever they hold and however long they are."""
    for value in ("", " ", "a'b\"c$d`e\\f", "new\nline\n", "\udcff", "ü€😀", "x" * 100_000, "\x01\x7f", "-n", "~"):
        result = either.run('printf %s "$V" | cksum; bash -c \'printf %s "$V"\' | cksum', env={"V": value})
        expected = either.run("cksum; :", input=value)
        assert result.stdout == expected.stdout * 2
