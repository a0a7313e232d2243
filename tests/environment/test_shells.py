"""The probe and the idioms in real shells (contract H1)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit.environment.scripts import probe_script, read_answer

SHELLS = {
    "bash": ["bash", "--noprofile", "--norc"],
    "dash": ["dash"],
    "busybox": ["busybox", "sh"],
    "zsh": ["zsh", "-f"],
    "ksh": ["ksh"],
    "mksh": ["mksh"],
}
every_shell = pytest.mark.parametrize("family", [pytest.param(n, marks=pytest.mark.requires(n)) for n in SHELLS])


def sh(family: str, script: str, cwd: Path, path: str | None = None) -> str:
    """Run a script on the stdin of a shell and return what it printed to stdout."""
    argv = [shutil.which(SHELLS[family][0]) or "", *SHELLS[family][1:]]
    env = {"PATH": path or f"{cwd}/bin:/usr/bin:/bin"}
    done = subprocess.run(argv, input=script, capture_output=True, text=True, cwd=cwd, env=env, timeout=20)
    return done.stdout


@every_shell
def test_every_shell_answers(family: Any, tmp_path: Path, tool: Callable[[str, str], Path]) -> None:
    """H1: one command finds shell, system, user and the tools, on stdout or stderr, whatever they print around it."""
    tool("plain", "echo plain 1.2.3")
    tool("shy", "echo; echo 'This is shy, version v4.5 (2020)' >&2; echo tail 9.9")
    tool("go", '[ "$*" = version ] && echo go version go1.21.5 linux/amd64')
    tool("broken", "echo broken: cannot open libfoo.so.3 >&2; exit 3")
    tool("g++", "printf 'g++ (X 12-1) 12.2.0'")
    names = ("plain", "shy", "go", "broken", "nosuch", "g++")
    found = read_answer(sh(family, probe_script(family, names, 5), tmp_path), names)
    versions = {"plain": "1.2.3", "shy": "4.5", "go": "1.21.5", "broken": None, "nosuch": None, "g++": "12.2.0"}
    assert found["tools"] == versions
    assert found["missing"] == ("nosuch",)
    uname = subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip()
    assert (found["answered"], found["architecture"]) == (True, uname)
    assert found["user"] == subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    assert found["kernel"].startswith("Linux ")
    assert found["os_name"] if Path("/etc/os-release").exists() else True
    assert (found["shell_version"] is None) == (family == "dash")


@every_shell
def test_the_session_is_left_as_it_was(family: Any, tmp_path: Path) -> None:
    """H1: `$?`, directory, variables, functions, options, traps and `$!` are the same after a probe, errexit or not."""
    volatile = "\\|".join(("^_=", "PIPE", "LINENO", "RANDOM", "SECONDS", "EPOCH", "TTYIDLE", "BASHPID"))
    state = f'echo "$? $PWD $- $# ${{!:-none}}"; trap; alias; set | grep -v "{volatile}"'
    (tmp_path / "bin").mkdir()
    steps = [
        "cd bin; x=1; f() { echo f; }; g() { return 7; }; set -- a b; trap 'echo bye' TERM; true & wait; set -e",
        f"g && {{ :; }} || {{ {state}; }} >before",
        "g && :",
        probe_script(family, ("sh",), 5),
        f"{{ {state}; }} >after",
    ]
    sh(family, "\n".join(steps) + "\n", tmp_path)
    before, after = ((tmp_path / "bin" / name).read_text() for name in ("before", "after"))
    assert before.startswith(f"7 {tmp_path}/bin ")
    assert after == before


@every_shell
def test_it_survives_what_users_redefine(family: Any, tmp_path: Path, tool: Callable[[str, str], Path]) -> None:
    """H1: aliases, functions, IFS, `set -u` and a noisy xtrace of the user do not spoil the answer."""
    tool("plain", "echo plain 1.2.3")
    hostile = (
        "IFS=0123.\nset -ux\nalias printf=false read=false if=false\n"
        "printf() { echo spoilt; }\nread() { return 1; }\nplain() { echo plain 9.9; }\nwait() { :; }\n"
    )
    found = read_answer(sh(family, hostile + probe_script(family, ("plain",), 5), tmp_path), ("plain",))
    assert found["tools"] == {"plain": "1.2.3"}


@every_shell
@pytest.mark.slow
@pytest.mark.parametrize("with_timeout", [True, False])
def test_a_hanging_tool_eats_nobody_else(
    family: Any,
    with_timeout: bool,
    tmp_path: Path,
    tool: Callable[[str, str], Path],
    sleeps: Any,
    eventually: Callable[..., None],
) -> None:
    """H1: a tool that ignores TERM is killed at its limit (0.6 s, hence slow), without timeout(1), too."""
    tool("hang", f"trap '' TERM; exec sleep {sleeps()}")
    tool("tease", f"echo tease 1.0; exec sleep {sleeps()}")
    tool("plain", "echo plain 1.2.3")
    for name in ("sleep", "uname", "id", "printf"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    path = None if with_timeout else f"{tmp_path}/bin"
    names = ("hang", "plain", "tease")
    found = read_answer(sh(family, probe_script(family, names, 0.6), tmp_path, path), names)
    assert found["tools"] == {"hang": None, "plain": "1.2.3", "tease": None}
    assert found["missing"] == ()
    assert found["user"]
    eventually(lambda: not sleeps.left())  # timeout(1) kills itself together with the tool, and does not wait for it


# -- idioms ----------------------------------------------------------------------------------------------


# What the idioms claim: (snippet that prints "ok" where it works, families where it does not).
CLAIMS = {
    "[[ ]]": ("[[ a == a ]] && echo ok", "dash"),
    "arrays": ('x=(a ok); case "${x[1]}${x[2]}" in *ok*) echo ok;; esac', "dash busybox"),
    "<<<": ("cat <<<ok", "dash busybox"),
    "{1..3}": ('[ "$(echo {1..3})" = "1 2 3" ] && echo ok', "dash busybox mksh"),
    "$'...'": ("[ $'\\x61' = a ] && echo ok", "dash"),
    "${x//a/b}": ("x=oa; echo ${x//a/k}", "dash"),
    "${x:0:3}": ("x=okk; echo ${x:0:2}", "dash"),
    "source": ("echo echo ok >./s; source ./s", "dash"),
    "function": ("function f { echo ok; }; f", "dash"),
    "local": ("f() { local x=ok; echo $x; }; f", "ksh"),
    "typeset in function f": ("x=ok; function f { typeset x=no; }; f; echo $x", "dash"),
    "associative arrays": ("typeset -A x; x[k]=ok; x[j]=no; echo ${x[k]}", "dash busybox mksh"),
    "echo -e": ('[ "$(echo -e ok)" = ok ] && echo ok', "dash"),
    "splitting": ('x="a b"; set -- $x; [ $# = 2 ] && echo ok', "zsh"),
    "unmatched pattern": ("echo /nosuch* >/dev/null && echo ok", "zsh"),
    "&>": ("ls /nosuch &>/dev/null && echo no || echo ok", "dash"),
}


@every_shell
@pytest.mark.parametrize("claim", CLAIMS)
def test_idioms_are_true(family: str, claim: str, tmp_path: Path) -> None:
    """H1: what the block says of a dialect is what that shell does."""
    snippet, without = CLAIMS[claim]
    works = sh(family, snippet, tmp_path).strip() == "ok"
    assert works == (family not in without.split())


@pytest.mark.requires("zsh")
def test_zsh_arrays_start_at_one(tmp_path: Path) -> None:
    """H1: the block says that arrays of zsh start at 1."""
    assert sh("zsh", "x=(ok no); echo ${x[1]}", tmp_path) == "ok\n"


@pytest.mark.requires("ksh")
def test_ksh_functions(tmp_path: Path) -> None:
    """H1: the block says that variables of ksh93 are local only in `function f` functions."""
    assert (
        sh("ksh", "x=1; f() { typeset x=2; }; function g { typeset x=3; }; g; echo $x; f; echo $x", tmp_path)
        == "1\n2\n"
    )
