"""`shellkit run --approve` and `shellkit repl --approve`, at a real terminal and without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]
AtTerminal = Callable[..., pexpect.spawn]

QUESTION = "[e]dit? "


@pytest.fixture
def at_terminal(environ: dict[str, str], tmp_path: Path) -> Iterator[AtTerminal]:
    """Return a function that starts `shellkit ARGUMENTS` at a terminal of its own."""
    started: list[pexpect.spawn] = []

    def start(*arguments: str, program: str = sys.executable) -> pexpect.spawn:
        words = ["-m", "shellkit", *arguments] if program == sys.executable else list(arguments)
        process = pexpect.spawn(program, words, env=environ, cwd=str(tmp_path), timeout=30)  # type: ignore[arg-type]
        started.append(process)
        return process

    yield start
    for process in started:
        process.close(force=True)


def answer(process: pexpect.spawn, *answers: str) -> bytes:
    """Answer each question, and return what was printed before the first."""
    before = b""
    for number, text in enumerate(answers):
        process.expect_exact(QUESTION)
        before = process.before if number == 0 else before
        process.sendline(text)
    return before


def ended(process: pexpect.spawn) -> tuple[str, int | None]:
    """Return what was printed since the last answer, without its echo, and the exit code."""
    process.expect(pexpect.EOF)
    process.wait()
    return process.before.decode().partition("\r\n")[2].replace("\r\n", "\n"), process.exitstatus


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def test_without_a_terminal_it_is_refused(shellkit: Shellkit, tmp_path: Path) -> None:
    """Issue 3: `shellkit run --approve 'echo hi' </dev/null` refuses with the reason, and nothing ran."""
    for arguments in (["run", "--approve", "touch ran", "touch ran"], ["run", "--approve", "--json", "touch ran"]):
        done = shellkit(*arguments)
        assert (done.stdout, done.returncode) == ("", 126)
        assert "there is no terminal to ask at (stdin is none)" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_stdin_answers_nothing(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """H3: what a pipe says is no answer, whether the commands come from it or not."""
    for arguments, text in ((["repl", "--approve"], b"touch ran\ny\n"), (["run", "--approve", "-"], b"touch ran\ny\n")):
        with start(*arguments, stdin=subprocess.PIPE) as process:
            out, err = process.communicate(text, timeout=30)
        assert (out, process.returncode) == (b"", 126)
        assert b"this process has none" in err
    assert list(tmp_path.iterdir()) == []


def test_redirected_stdin_is_a_refusal_at_a_terminal_too(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """Issue 3: who takes the terminal from stdin is not asked, though there is a controlling one."""
    command = f"{sys.executable} -m shellkit run --approve 'touch ran' </dev/null"
    process = at_terminal("-c", command, program="/bin/sh")
    process.expect_exact("no terminal to ask at (stdin is none)")
    process.expect(pexpect.EOF)
    process.wait()
    assert process.exitstatus == 126
    assert list(tmp_path.iterdir()) == []


def test_commands_from_stdin_are_asked_about_at_the_terminal(at_terminal: AtTerminal) -> None:
    """Issue 3: where stdin holds the commands, the question goes to the controlling terminal."""
    process = at_terminal("-c", f"echo 'echo ran' | {sys.executable} -m shellkit run --approve -", program="/bin/sh")
    answer(process, "y")
    assert ended(process) == ("ran\n", 0)


def test_yes(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """H3: the person sees the command, the directory and why, and "yes" runs it, with its exit code."""
    process = at_terminal("run", "--approve", "printf 'out\\n'; printf 'err\\n' >&2; (exit 3)")
    shown = answer(process, "y").decode()
    assert "printf 'out\\n'; printf 'err\\n' >&2; (exit 3)" in shown
    assert f"in    {tmp_path} (bash, no isolation)" in shown
    assert "why   every command is approved by a person" in shown
    assert ended(process) == ("out\nerr\n", 3)


def test_output_comes_while_the_command_runs(at_terminal: AtTerminal) -> None:
    """The gate does not hold output back, and Ctrl-C ends the command."""
    process = at_terminal("run", "--approve", "echo under way; sleep 60; echo never", "echo never")
    answer(process, "yes")
    process.expect_exact("under way\r\n")
    process.sendintr()
    assert ended(process) == ("", 130)


def test_no_with_a_reason(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """H3: "no" does not run it, and the reason is told; the commands after it do not run either."""
    process = at_terminal("run", "--approve", "--audit", "log", "touch ran", "touch ran")
    answer(process, "maybe", "no")
    process.expect_exact("reason: ")
    process.sendline("not on a Friday")
    said, code = ended(process)
    assert code == 126
    reason = "Not run: it was refused. The reason: not on a Friday."
    assert said == f"shellkit: note: {reason} The commands after it did not run either.\n"
    assert not (tmp_path / "ran").exists()
    refused = json.loads((tmp_path / "log").read_text().splitlines()[-1])
    assert (refused["event"], refused["decided_by"]) == ("refused", "approver ConsoleApprover")
    assert "not on a Friday" in refused["reason"]


def test_always_this_prefix(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """H7: "always" clears the next command that starts so in this directory, and no other."""
    process = at_terminal("run", "--approve", "touch a", "touch b", "touch c > d", "cd .. && touch x")
    assert b"touch a" in answer(process, "a")
    process.expect_exact("touch c > d")  # it writes: asked about, and no prefix is offered
    process.expect_exact("[y]es, [n]o, [e]dit? ")
    process.sendline("a")
    process.expect_exact("one of the letters")
    answer(process, "n")
    process.expect_exact("reason: ")
    process.sendline("")
    assert ended(process)[1] == 126
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_no_prefix_for_what_runs_anything(at_terminal: AtTerminal) -> None:
    """H7: "always" is not offered for interpreters, wrappers, what destroys, and what it would not clear."""
    process = at_terminal("repl", "--approve")
    for command in ("python3 -c 1", "sudo ls", "env ls", "bash -c ls", "rm x", "touch a; ls", "eval ls"):
        process.expect_exact("] $ ")
        process.sendline(command)
        process.expect_exact("[y]es, [n]o, [e]dit? ")
        process.sendeof()
    process.expect_exact("[126] $ ")


def test_edit(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """H3: the command stands ready in a line editor; what the person makes of it runs, and that is told."""
    process = at_terminal("run", "--approve", "--audit", "log", "touch a")
    answer(process, "e")
    process.expect_exact("edit: touch a")
    process.sendline("b")
    said, code = ended(process)
    assert code == 0
    assert "this ran: touch ab" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ab", "log"]
    before = json.loads((tmp_path / "log").read_text().splitlines()[1])
    assert (before["command"], before["decided_by"]) == ("touch ab", "approver ConsoleApprover, who edited it")


def test_edit_that_changes_nothing(at_terminal: AtTerminal) -> None:
    """Leaving the text as it is, is a plain yes; several lines are edited as they are."""
    process = at_terminal("run", "--approve", "echo a\necho b")
    answer(process, "e")
    process.expect_exact("echo b")
    process.sendline("")
    assert ended(process) == ("a\nb\n", 0)


def test_edit_of_what_cannot_be_shown(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """sec-approval-what-you-see: a command with hidden characters is shown escaped, and edited by typing it anew."""
    process = at_terminal("run", "--approve", "touch a\u200b; touch b")
    assert b"touch a\\u200b; touch b" in answer(process, "e")
    process.expect_exact("the command to run instead: ")
    process.sendline("touch c")
    assert ended(process)[1] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_edit_does_not_pass_what_the_policy_denies(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """H6: a person may approve what the policy asks about, and not, by editing, what it denies."""
    (tmp_path / "p.toml").write_text("[[rule]]\nprefix = ['rm']\ndecision = 'deny'\n")
    process = at_terminal("run", "--approve", "--policy", "p.toml", "echo x")
    answer(process, "e")
    process.expect_exact("edit: echo x")
    process.sendline("; rm p.toml")
    said, code = ended(process)
    assert code == 126
    assert "the policy denies it" in said
    assert (tmp_path / "p.toml").exists()


@pytest.mark.parametrize("key", ["c", "d"])
@pytest.mark.parametrize("where", ["question", "reason", "edit"])
def test_ctrl_c_and_ctrl_d_refuse(
    at_terminal: AtTerminal, tmp_path: Path, eventually: Callable[..., None], where: str, key: str
) -> None:
    """H3: who breaks off the question, the reason or the edit has not approved."""
    process = at_terminal("run", "--approve", "touch ran; touch it")
    process.expect_exact(QUESTION)
    if where == "reason":
        process.sendline("n")
        process.expect_exact("reason: ")
    elif where == "edit":
        process.sendline("e")
        process.expect_exact("edit: touch ran; touch it")
        if key == "d":
            process.sendcontrol("u")  # Ctrl-D ends the input only on an empty line
    # Python's readline loses a Ctrl-C that comes between its last look for signals and its select(2): let it sleep.
    eventually(lambda: _state(process.pid) == "S")
    process.sendcontrol(key)
    process.expect_exact("Not run: it was refused.")
    assert ended(process)[1] == 126
    assert list(tmp_path.iterdir()) == []


def test_typed_ahead_is_no_answer(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """H3: what is typed while a command runs is not taken for the answer to the next question."""
    os.mkfifo(tmp_path / "gate")
    process = at_terminal("run", "--approve", "echo under way; read line <gate", "touch ran; ls")
    answer(process, "y")
    process.expect_exact("under way\r\n")
    process.sendline("y")
    process.expect_exact("y\r\n")  # the terminal has it
    (tmp_path / "gate").write_text("go\n")
    process.expect_exact(QUESTION)
    process.sendeof()
    assert ended(process)[1] == 126
    assert not (tmp_path / "ran").exists()


def test_the_policy_says_which_are_asked_about(at_terminal: AtTerminal, tmp_path: Path) -> None:
    """H6, H7: with a policy what it allows runs unasked, and why it asks is shown."""
    (tmp_path / "p.toml").write_text("[policy]\npreset = 'read-only'\n")
    process = at_terminal("run", "--approve", "--policy", "p.toml", "echo unasked", "touch ran")
    process.expect_exact("unasked\r\n")
    assert b"why   no rule covers `touch`" in answer(process, "y")
    assert ended(process) == ("", 0)
    assert (tmp_path / "ran").exists()


def test_repl(at_terminal: AtTerminal) -> None:
    """H3: the repl asks about each line; a refused one has the exit code 126, and the session goes on."""
    process = at_terminal("repl", "--approve")
    process.expect_exact("~ [0] $ ")
    process.sendline("A=kept; cd /")
    answer(process, "y")
    process.expect_exact("/ [0] $ ")
    process.sendline("echo no")
    process.expect_exact(QUESTION)
    process.sendcontrol("c")
    process.expect_exact("interrupted at the question")
    process.expect_exact("/ [126] $ ")
    process.sendline("echo [$A]")
    answer(process, "y")
    process.expect_exact("[kept]\r\n")
    process.expect_exact("/ [0] $ ")
    process.sendeof()
    process.expect(pexpect.EOF)
