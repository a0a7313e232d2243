"""Which texts are commands at all, and how long they may be (B2, B3)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shellkit import BlockingExecutor, InvalidCommand

KIB_128 = 131072


@pytest.mark.parametrize("command", ["echo a\0b; touch ran", "\0", "touch ran; echo \ud83d", "\udcff", "echo \udfff"])
def test_text_that_no_shell_can_read_is_refused(either: BlockingExecutor, tmp_path: Path, command: str) -> None:
    """B2: NUL and lone surrogates are `InvalidCommand` before anything runs, and the session is unharmed."""
    either.run("true")
    with pytest.raises(InvalidCommand, match=r"NUL|surrogate"):
        either.run(command)
    assert not (tmp_path / "ran").exists()
    assert either.run("echo ok").stdout == "ok\n"


@pytest.mark.parametrize("command", [None, 42, b"echo hi", ["ls", "-la"], {"cmd": "ls"}, 1.5, True])
def test_what_is_no_text_is_refused(either: BlockingExecutor, command: object) -> None:
    """B2: a non-string is `TypeError` before anything runs; a list is never joined with blanks."""
    with pytest.raises(TypeError, match="command must be a str"):
        either.run(command)  # type: ignore[arg-type]
    assert either.run("echo ok").stdout == "ok\n"


@pytest.mark.parametrize("size", [4095, 4096, 4097, 65535, 65536, 65537, KIB_128 - 1, KIB_128, 200_000, 1_000_000])
def test_long_commands_arrive_whole(either: BlockingExecutor, size: int) -> None:
    """B3: any size works in both modes, around every limit of pipes and argv."""
    head, tail = "x='", "'; echo ${#x}; (exit 3)"
    length = size - len(head) - len(tail)
    result = either.run(head + "b" * length + tail)
    assert (result.stdout, result.stderr, result.exit_code) == (f"{length}\n", "", 3)
    assert either.run("echo ok").stdout == "ok\n"


def test_ten_megabytes_and_not_a_byte_more(either: BlockingExecutor, tmp_path: Path) -> None:
    """B3: 10 MB work; more is `InvalidCommand`, which names the remedy."""
    head, tail = "cat > big <<'EOF'\n", "\nEOF\n"
    body = "line\n" * ((10 * 1024 * 1024 - len(head) - len(tail)) // 5)
    assert either.run(head + body + tail).exit_code == 0
    assert (tmp_path / "big").stat().st_size == len(body) + 1
    with pytest.raises(InvalidCommand, match="write it to a file"):
        either.run("#" * (10 * 1024 * 1024 + 1))
    assert either.run("echo ok").stdout == "ok\n"


@pytest.mark.parametrize(
    "command", ["echo 'line\n'" * 30_000, "\n" * 100_000 + "echo end", "#" + "c" * 300_000 + "\necho end"]
)
def test_long_commands_of_many_shapes(either: BlockingExecutor, command: str) -> None:
    """B3: many lines, empty lines and long comments travel as well as one long word."""
    result = either.run(command)
    assert (result.stderr, result.exit_code) == ("", 0)
    assert result.stdout.endswith(("line\n\n", "end\n"))


def test_a_long_command_reads_the_same_variables(shell: BlockingExecutor) -> None:
    """B3: a command that travels by a file sets variables, `$?` and directories as a short one does."""
    os.mkdir(shell.run("pwd").stdout.strip() + "/sub")
    shell.run("(exit 5)")
    shell.run("last=$?; cd sub\n" + "# padding\n" * 20_000)
    assert shell.run('echo "$last ${PWD##*/}"').stdout == "5 sub\n"


def test_the_bytes_of_a_command_are_utf8(either: BlockingExecutor) -> None:
    """B2: characters arrive as UTF-8 whatever the locale, short and long."""
    assert either.run("printf 'ü€😀' | od -An -tx1 | tr -d ' \\n'").stdout == "c3bce282acf09f9880"
    assert either.run("printf '%s' '" + "€" * 100_000 + "' | wc -c").stdout.strip() == "300000"
