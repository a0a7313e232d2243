"""Both streams are separate, exact and the command's own (C2, C3, C5)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor

EXACT = [
    ("printf hello", "hello", ""),
    ("printf 'a\\nb'", "a\nb", ""),
    ("printf 'abc' >&2", "", "abc"),
    ("echo; echo", "\n\n", ""),
    ("printf '\\n\\n\\n' >&2", "", "\n\n\n"),
    ("true", "", ""),
    (":", "", ""),
    ("echo 1; echo 2 >&2; echo 3; echo 4 >&2", "1\n3\n", "2\n4\n"),
    ("printf '\\r\\n a \\t\\n'", "\r\n a \t\n", ""),
    ("printf 'a\\377\\376b\\n'", "a\ufffd\ufffdb\n", ""),
    ("printf 'x\\0y\\n'; echo after", "x\0y\nafter\n", ""),
    ("printf 'caf\\351\\n'; printf '\\033]0;title\\007bell\\n'", "caf\ufffd\n\x1b]0;title\x07bell\n", ""),
    ("printf '\\303'; /bin/true; printf '\\274'", "ü", ""),
    ("printf '\\357\\273\\277bom'", "\ufeffbom", ""),
    (
        "echo a; echo b >/dev/stdout; echo c >>/dev/stdout; echo e >/dev/stderr; echo d | tee /dev/stdout",
        "a\nb\nc\nd\nd\n",
        "e\n",
    ),
    ("echo x >/proc/self/fd/1; echo y >/dev/fd/2", "x\n", "y\n"),
    ("(echo sub; echo err >&2)", "sub\n", "err\n"),
    ("bash -c 'echo child; echo childerr >&2'", "child\n", "childerr\n"),
]


@pytest.mark.parametrize(("command", "stdout", "stderr"), EXACT)
def test_output_is_exact(either: BlockingExecutor, command: str, stdout: str, stderr: str) -> None:
    """C2, C3: no byte is added or removed, and each stream holds its own."""
    for _ in range(3):
        result = either.run(command)
        assert (result.stdout, result.stderr, result.exit_code, result.truncated) == (stdout, stderr, 0, False)
    assert either.run("echo ok").stdout == "ok\n"


def test_the_first_command_of_a_session_is_whole(open_shell: Any) -> None:
    """C2: what the first command prints is not lost between start and reader."""
    for number in range(20):
        with open_shell() as fresh:
            assert fresh.run(f"echo {number}").stdout == f"{number}\n"


def test_many_writers_to_stderr_none_misattributed(shell: BlockingExecutor) -> None:
    """C2: of 1,000 commands that write to stderr and end, each gets its own text and nothing else."""
    for number in range(1000):
        result = shell.run(f"echo out{number}; echo err{number} >&2")
        assert (result.stdout, result.stderr) == (f"out{number}\n", f"err{number}\n")


@pytest.mark.slow
def test_many_children_that_write_last(either: BlockingExecutor) -> None:
    """C2: what a child writes just before it ends is there, on either stream, in 100 commands."""
    for number in range(100):
        result = either.run(f"/bin/sh -c 'echo {number} >&2; printf %s {number}'; /bin/true")
        assert (result.stdout, result.stderr) == (str(number), f"{number}\n")


def test_a_late_writer_is_not_in_the_next_result(shell: BlockingExecutor, tmp_path: Path) -> None:
    """C2: a child that outlives its command writes into no other command's output."""
    shell.run("mkfifo gate; { read x < gate; echo late; echo late >&2; echo done > told; } &")
    result = shell.run("echo go > gate; until [ -s told ]; do :; done; echo mine", timeout=10)
    assert (result.stdout, result.stderr) == ("mine\n", "")


def test_merged_output_is_in_the_order_written(either: BlockingExecutor) -> None:
    """A: `merge_stderr` puts both streams into stdout in the order written, 50 times."""
    for _ in range(50):
        result = either.run("echo 1; echo 2 >&2; echo 3; sh -c 'echo 4 >&2'; echo 5", merge_stderr=True)
        assert (result.stdout, result.stderr) == ("1\n2\n3\n4\n5\n", "")
    result = either.run("echo 1; echo 2 >&2")
    assert (result.stdout, result.stderr) == ("1\n", "2\n")


@pytest.mark.parametrize(
    "command",
    [
        "exec >/dev/null",
        "exec >/dev/null 2>&1",
        "exec 2>&1",
        "exec 1>&2",
        "exec 1>&-",
        "exec 2>&-",
        "exec 1>&- 2>&- 0<&-",
        "exec >file",
        "exec 0</etc/hostname",
    ],
)
def test_a_redirection_holds_for_its_command_only(shell: BlockingExecutor, command: str) -> None:
    """C5: `exec` with a redirection affects the command that it stands in, and no later one."""
    shell.run(command + "; echo within")
    result = shell.run("echo out; echo err >&2; cat")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)


def test_redirections_work_within_their_command(shell: BlockingExecutor) -> None:
    """C5: inside its command `exec` redirects as in any script."""
    assert shell.run("exec 2>&1; echo to-stdout >&2").stdout == "to-stdout\n"
    assert shell.run("exec >file; echo kept").stdout == ""
    assert shell.run("cat file").stdout == "kept\n"


def test_descriptors_that_a_user_opens_persist(shell: BlockingExecutor) -> None:
    """C5: descriptors 3 to 9 that a user opens in bash stay open for later commands."""
    shell.run("printf 'a\\nb\\n' > file; exec 3<file 9>log")
    shell.run("read -u 3 x; echo $x >&9")
    shell.run("read -u 3 x; echo $x >&9; exec 3<&- 9>&-")
    assert shell.run("cat log").stdout == "a\nb\n"


def test_a_closed_standard_descriptor_is_the_commands_own_problem(either: BlockingExecutor) -> None:
    """C5: writing to a closed stdout is an error in the result, as in any script."""
    result = either.run("exec 1>&-; echo lost; true")
    assert result.stdout == ""
    assert "Bad file descriptor" in result.stderr


def test_both_streams_at_once_do_not_deadlock(either: BlockingExecutor) -> None:
    """C2, E4: both streams are drained together, whichever fills first."""
    result = either.run("seq 1 60000 >&2; echo done", timeout=20)
    assert (result.stdout, result.exit_code) == ("done\n", 0)
    assert result.stderr.endswith("60000\n")
    script = "for i in $(seq 1 2000); do printf '%080d\\n' $i; printf '%080d\\n' $i >&2; done; echo end"
    result = either.run(script, timeout=20)
    assert result.stdout.endswith("2000\nend\n")
    assert result.exit_code == 0


def test_large_output_is_exact_under_a_large_limit(open_shell: Any, mode: str) -> None:
    """C2: several megabytes on both streams arrive byte for byte."""
    shell = open_shell(mode=mode, max_output_bytes=1 << 24)
    result = shell.run("seq 1 400000; seq 1 300000 >&2", timeout=30)
    for text, count in ((result.stdout, 400_000), (result.stderr, 300_000)):
        expected = "".join(f"{n}\n" for n in range(1, count + 1))
        assert hashlib.sha256(text.encode()).digest() == hashlib.sha256(expected.encode()).digest()


@pytest.mark.parametrize("size", [65535, 65536, 65537, 3_000_000])
def test_one_endless_line(open_shell: Any, mode: str, size: int) -> None:
    """C2: a line longer than any pipe or reader's limit is no special case."""
    shell = open_shell(mode=mode, max_output_bytes=4_000_000)
    result = shell.run(f"head -c {size} /dev/zero | tr '\\0' x")
    assert (len(result.stdout), set(result.stdout), result.exit_code) == (size, {"x"}, 0)
    assert shell.run("echo ok").stdout == "ok\n"


def test_any_bytes_make_valid_json(either: BlockingExecutor) -> None:
    """A, C3: `to_dict` is JSON-safe whatever was printed, and so is `for_model`."""
    for command in (
        "head -c 100000 /dev/urandom; echo; echo still-here",
        "printf '\\377\\0\\033[0m\\357\\277\\276\\n'; exit 300",
    ):
        result = either.run(command)
        text = json.dumps(result.to_dict(), allow_nan=False)
        assert json.loads(text.encode("utf-8"))["stdout"] == result.stdout
        result.for_model().encode("utf-8")
    assert result.exit_code == 44


def test_output_that_looks_like_a_prompt_ends_nothing(either: BlockingExecutor) -> None:
    """C2: no text is taken for a prompt or a question."""
    text = "collecting ... >>> bash-5.2$ Password: "
    command = f"for word in {text!r} '# ' '$ '; do printf '%s' \"$word\"; sleep 0.05; done; echo end"
    assert either.run(command).stdout == text + "# $ end\n"
