"""A command's standard input: empty unless given, and never the channel that commands come on (C1)."""

from __future__ import annotations

import pytest

from shellkit import BlockingExecutor

READERS = [
    ("cat", "", 0),
    ("cat -", "", 0),
    ('head -n1; echo "rc=$?"', "rc=0\n", 0),
    ('read x; echo "got=[$x] rc=$?"', "got=[] rc=1\n", 0),
    ("wc -c | tr -d ' '", "0\n", 0),
    ("grep x", "", 1),
    ("sort; cat; wc -l | tr -d ' '", "0\n", 0),
    ("python3 -", "", 0),
    ("python3; echo rc=$?", "rc=0\n", 0),
    ("sh; bash; cat; echo end", "end\n", 0),
    ("bash -s", "", 0),
    ('while read -r line; do echo "$line"; done; echo end', "end\n", 0),
    ("mapfile lines; echo ${#lines[@]}", "0\n", 0),
    ("select x in a b; do echo $x; done 2>/dev/null", "\n", 1),
    ("read -t 5 x; echo $?", "1\n", 0),
    ("cat <&0; cat /dev/stdin; cat /proc/self/fd/0", "", 0),
    ("exec cat", "", 0),
    ("(cat) | cat; $(cat)", "", 0),
    ("sh -c 'while :; do read a || exit 3; done'; echo rc=$?", "rc=3\n", 0),
]


@pytest.mark.parametrize(("command", "stdout", "exit_code"), READERS)
def test_readers_see_the_end_of_file_at_once(
    either: BlockingExecutor, command: str, stdout: str, exit_code: int
) -> None:
    """C1: a command's stdin is empty, so whatever reads it ends at once and eats no later command."""
    result = either.run(command, timeout=5)
    assert (result.stdout, result.exit_code, result.timed_out) == (stdout, exit_code, False)
    assert either.run("echo ok").stdout == "ok\n"


def test_an_interactive_shell_ends_too(either: BlockingExecutor) -> None:
    """C1: a nested interactive shell and a REPL see end-of-file."""
    result = either.run("python3 -i -c 'print(1)'; bash --norc -i -c 'echo in'; bash --norc -i; echo done", timeout=8)
    assert [line for line in result.stdout.splitlines() if line] == ["1", "in", "done"]
    assert not result.timed_out


def test_standard_streams_are_no_terminals(either: BlockingExecutor) -> None:
    """C1: `[ -t 0 ]` is false, and there is no controlling terminal to prompt on."""
    result = either.run("for n in 0 1 2; do [ -t $n ]; printf $?; done; tty; (: < /dev/tty) 2>/dev/null || echo none")
    assert result.stdout == "111not a tty\nnone\n"
    prompt = either.run("read -p 'Password: ' p </dev/tty; echo rc=$?", timeout=5)
    assert prompt.stdout == "rc=1\n"
    assert "/dev/tty" in prompt.stderr


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("a line\nand more", b"a line\nand more"),
        (b"\x00\xff\n", b"\x00\xff\n"),
        ("", b""),
        ("ü€", "ü€".encode()),
        (b"x" * 3_000_000, b"x" * 3_000_000),
        (bytearray(b"ba"), b"ba"),
    ],
)
def test_input_is_what_the_command_reads(either: BlockingExecutor, given: str | bytes, seen: bytes) -> None:
    """C1: `input` arrives exactly, of any size, then comes end-of-file; the next command's stdin is empty again."""
    result = either.run("cat > got; wc -c < got | tr -d ' '; cksum < got", input=given)
    expected = either.run("cat > again; wc -c < again | tr -d ' '; cksum < again", input=seen)
    assert result.stdout == expected.stdout
    assert result.stdout.splitlines()[0] == str(len(seen))
    assert either.run("cat; echo end").stdout == "end\n"


def test_input_that_nobody_reads_does_no_harm(either: BlockingExecutor) -> None:
    """C1: a command may ignore a large input, or read half of it."""
    assert either.run("true", input=b"y" * 1_000_000).exit_code == 0
    assert either.run("head -c 3", input=b"abcdef" * 100_000).stdout == "abc"
    assert either.run("echo ok").stdout == "ok\n"


def test_stdin_redirections_of_the_shell_do_not_reach_the_channel(shell: BlockingExecutor) -> None:
    """C1: `exec 0<file`, `exec <&-` and reading descriptor 0 in any way leave the command channel alone."""
    shell.run("printf 'a\\nb\\n' > file")
    assert shell.run("exec 0<file; read x; echo $x").stdout == "a\n"
    assert shell.run("cat; echo end").stdout == "end\n"
    assert shell.run("exec <&-; echo closed").stdout == "closed\n"
    assert shell.run("cat; echo end").stdout == "end\n"


@pytest.mark.requires("git")
def test_programs_that_ask_for_a_password_fail_at_once(either: BlockingExecutor) -> None:
    """C1, H8: git does not prompt where nobody can answer."""
    result = either.run("git credential fill", input="protocol=https\nhost=example.invalid\n", timeout=8)
    assert result.exit_code == 128
    assert not result.timed_out
