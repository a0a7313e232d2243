"""`shellkit policy check`, and policies under `run` and `repl`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from shellkit.policy import file_format

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]

DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
EXAMPLE = re.findall(r"^```toml\n(.*?)^```", DOCUMENTATION, re.DOTALL | re.MULTILINE)[0]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example of the documentation, where `policy check` looks first."""
    path = tmp_path / "shellkit.toml"
    path.write_text(EXAMPLE)
    return path


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def test_both_segments_are_explained(shellkit: Shellkit, tmp_path: Path) -> None:
    """Issue 3: each segment has its verdict and reason, and the last line is the strictest."""
    done = shellkit("policy", "check", "git status && rm -rf /")
    assert done.stdout.startswith("policy: the preset read-only (no shellkit.toml from ")
    assert re.search(
        r"^line 1: git status\n +verdict +allow\n +rule +allow git \(read-only preset\)\n", done.stdout, re.M
    )
    assert re.search(
        r"^line 1: rm -rf /\n +verdict +ask\n +rule +none\n +reason +no rule covers `rm`\n", done.stdout, re.M
    )
    assert (last_line(done), done.returncode, done.stderr) == ("verdict: ask", 3, "")


def test_the_example_of_the_documentation(shellkit: Shellkit, example: Path) -> None:
    """Issue 3: the documented file is that of `file_format`, and the documented output is what comes."""
    assert textwrap.indent(EXAMPLE, "    ", lambda line: line.strip() != "") in (file_format.__doc__ or "")
    done = shellkit("policy", "check", "git status && rm -rf /")
    output = done.stdout.replace(str(example.parent), "/home/ann/project")
    assert f"$ shellkit policy check 'git status && rm -rf /'\n{output}```" in DOCUMENTATION
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("command", "verdict", "code"),
    [
        ("ls", "allow", 0),
        ("git add . && git commit -m x", "allow", 0),
        ("git commit --amend", "ask", 3),
        ("ls > f", "ask", 3),
        ("eval $x", "ask", 3),
        ("", "ask", 3),
        ("sudo rm x", "deny", 1),
        ("ls | xargs /bin/rm", "deny", 1),
    ],
)
def test_exit_codes(shellkit: Shellkit, example: Path, command: str, verdict: str, code: int) -> None:
    """H6: the exit code is that of the last line: 0 allow, 1 deny, 3 ask."""
    done = shellkit("policy", "check", command)
    assert (last_line(done), done.returncode) == (f"verdict: {verdict}", code)


def test_what_starts_a_nested_command_is_named(shellkit: Shellkit, example: Path) -> None:
    """H6: a command inside `bash -c` is a segment of its own, with its line and what starts it."""
    done = shellkit("policy", "check", "ls\nbash -c 'rm x'")
    assert re.search(r"^line 2: rm x\n +verdict +deny\n +runs +rm x \(started by bash\)\n", done.stdout, re.M)


def test_nothing_is_hidden_on_the_screen(shellkit: Shellkit) -> None:
    """sec-approval-what-you-see: control characters of the command do not reach the terminal."""
    done = shellkit("policy", "check", "-", input="echo \x1b[2K\rls")
    assert "\x1b" not in done.stdout
    assert "\\x1b[2K" in done.stdout


def test_the_dialect(shellkit: Shellkit) -> None:
    """H6: a shell that the parser does not speak is never allowed."""
    done = shellkit("policy", "check", "--shell-dialect", "powershell", "ls")
    assert (last_line(done), done.returncode) == ("verdict: ask", 3)


def test_json(shellkit: Shellkit, example: Path) -> None:
    """`--json` says the same as values."""
    done = shellkit("policy", "check", "--json", "git status && rm -rf /")
    said = json.loads(done.stdout)
    assert (said["policy"], said["verdict"], done.returncode) == (str(example), "deny", 1)
    assert [(each["text"], each["verdict"]) for each in said["findings"]] == [
        ("git status", "allow"),
        ("rm -rf /", "deny"),
    ]


@pytest.mark.parametrize(("root", "found"), [("above", True), ("between", False)])
def test_the_file_is_looked_for_upwards(shellkit: Shellkit, example: Path, root: str, found: bool) -> None:
    """Issue 3: without --policy the nearest shellkit.toml counts, but none above the repository."""
    inner = example.parent / "inner" / "most"
    inner.mkdir(parents=True)
    (inner.parent if root == "between" else example.parent).joinpath(".git").mkdir()
    done = shellkit("run", f"cd {inner}; {sys.executable} -m shellkit policy check ls")
    assert done.stdout.startswith(f"policy: {example}" if found else "policy: the preset read-only")


BROKEN = {
    "unknown key": (b"[policy]\ndefault = 'ask'\npresets = 'read-only'\n", ":3: unknown key 'presets'"),
    "no TOML": (b"[policy]\ndefault = \n", ":2: this is no TOML"),
    "an example that contradicts": (
        b"[[rule]]\nprefix = ['ls']\ndecision = 'allow'\nmatch = ['rm']\n",
        ":4: the rule 'allow ls",
    ),
    "no UTF-8": (b"[policy]\n# \xff\n", ":2: this is not UTF-8"),
    "missing": (None, ": cannot be read (No such file"),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", [["policy", "check"], ["run"], ["repl"]], ids=" ".join)
def test_a_broken_file(shellkit: Shellkit, tmp_path: Path, command: list[str], kind: str) -> None:
    """Issue 3, bad input: the message has the file, the line and the remedy, the exit code is 2, and nothing runs."""
    text, says = BROKEN[kind]
    if text is not None:
        (tmp_path / "p.toml").write_bytes(text)
    arguments = ["--policy", "p.toml"] + ([] if command == ["repl"] else ["touch ran"])
    done = shellkit(*command, *arguments, input="touch ran\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Error: p.toml{says}" in done.stderr
    assert re.search(r"nothing runs under|name a policy file|convert the file", done.stderr)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "ran").exists()


def test_run_under_a_policy(shellkit: Shellkit, example: Path) -> None:
    """H3, H6: what is allowed runs; what is denied is refused, and so is what is asked about, with the remedy."""
    done = shellkit("run", "--policy", "shellkit.toml", "echo ran")
    assert (done.stdout, done.stderr, done.returncode) == ("ran\n", "", 0)
    for command, says in (
        ("rm -f shellkit.toml", "ask the person to do it"),
        ("touch made", "with --approve you are asked"),
    ):
        done = shellkit("run", "--policy", "shellkit.toml", command, "echo after")
        assert (done.stdout, done.returncode) == ("", 126)
        assert done.stderr.startswith("shellkit: note: Not run: ")
        assert says in done.stderr
        assert "did not run either" in done.stderr
        assert "Do not send it again" not in done.stderr
    assert [path.name for path in example.parent.iterdir()] == ["shellkit.toml"]


def test_repl_under_a_policy(shellkit: Shellkit, example: Path) -> None:
    """H3: a refused line has the exit code 126, and the next line runs."""
    done = shellkit("repl", "--policy", "shellkit.toml", input="a=kept\nrm -f shellkit.toml\necho $a $?\nrm x\n")
    assert (done.stdout, done.returncode) == ("kept 0\n", 126)
    assert done.stderr.count("Not run: the policy denies it.") == 2
    assert example.exists()
