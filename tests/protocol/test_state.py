"""A shell's state as a value: sections, statements, and the tables of limits."""

from __future__ import annotations

import pytest

from shellkit.protocol.limits import limit_commands
from shellkit.protocol.state import Checkpoint, parse_sections, split_statements

STATEMENTS = [
    (b"", []),
    (b"\n\n", []),
    (b"A=1\nB=2", [b"A=1", b"B=2"]),
    (b"A='1\n2'\nB=2\n", [b"A='1\n2'", b"B=2"]),
    (b"declare -x A=\"1\n2\"\ndeclare -- B=''", [b'declare -x A="1\n2"', b"declare -- B=''"]),
    (b"C=$'it\\'s\nx'\nD=1", [b"C=$'it\\'s\nx'", b"D=1"]),
    (b"C='it'\\''s\n'\nD=1", [b"C='it'\\''s\n'", b"D=1"]),
    (b"C='it'\"'\"'s\n'\nD=1", [b"C='it'\"'\"'s\n'", b"D=1"]),
    (b'A="a \\" b\n"\nB=1', [b'A="a \\" b\n"', b"B=1"]),
    (b"A=a\\\nb\nB=1", [b"A=a\\\nb", b"B=1"]),
    (b"typeset -a xs=( 1 '2\n3' )\nset -A ys", [b"typeset -a xs=( 1 '2\n3' )", b"set -A ys"]),
    (b"trap -- 'echo \"a\nb\"' INT\ntrap -- '' TERM", [b"trap -- 'echo \"a\nb\"' INT", b"trap -- '' TERM"]),
    (b"A='unfinished\nB=1", [b"A='unfinished", b"B=1"]),
]


@pytest.mark.parametrize(("text", "expected"), STATEMENTS)
def test_statements_end_at_newlines_outside_of_quotes(text: bytes, expected: list[bytes]) -> None:
    """D2: what a shell prints about itself falls into the statements it printed, whatever the values hold."""
    assert list(split_statements(text)) == expected


def test_sections_end_only_at_the_token() -> None:
    """D8: no value can begin a section, for it cannot know the token."""
    text = b"\n#t1:a\n1\n\n#t1:b\n#t2:c\n2\n#t1:not a name\n3\n#t1:d\n"
    assert parse_sections(text, b"t1") == {"a": b"1\n", "b": b"#t2:c\n2\n#t1:not a name\n3", "d": b""}
    assert parse_sections(b"", b"t1") == {}


def test_a_checkpoint_answers_for_sections_that_are_missing() -> None:
    """D2: a shell that could not print a section has an empty one."""
    state = Checkpoint("dash", {"flags": b"sex", "workdir": b"/a"})
    assert (state["umask"], state.workdir, state.errexit) == (b"", b"/a", True)
    assert not state.without_errexit().errexit
    assert state.without_errexit()["flags"] == b"sx"
    assert state.errexit


def test_a_state_without_its_traps() -> None:
    """B4: what may end a shell at each command can be left out; what has no traps is the same without."""
    state = Checkpoint("zsh", {"flags": b"e", "traps": b"trap -- 'exit 1' DEBUG", "toplevel": b"trap -- 'a' ERR"})
    assert state.without_traps() == Checkpoint("zsh", {"flags": b"e"})
    assert state.without_traps().without_traps() == state.without_traps()


LIMITS = [
    (b"stack size                  (kbytes, -s) 8192", [b"\\ulimit -S -s 8192"]),  # bash
    (b"real-time non-blocking time  (microseconds, -R) unlimited", [b"\\ulimit -S -R unlimited"]),
    (b"pipe size                (512 bytes, -p) 8", []),
    (b"core file size (blocks)         (-c) 0", [b"\\ulimit -S -c 0"]),  # busybox
    (b"stack(kbytes)        8192", [b"\\ulimit -S -s 8192"]),  # dash
    (b"locked memory(kbytes) 8192", [b"\\ulimit -S -l 8192"]),
    (b"nofiles              20000", [b"\\ulimit -S -n 20000"]),
    (b"process              96365", [b"\\ulimit -S -p 96365"]),
    (b"-n: file descriptors                20000", [b"\\ulimit -S -n 20000"]),  # zsh
    (b"-N 15: rt cpu time (microseconds)   unlimited", []),
    (b"-t: time(cpu-seconds)     unlimited", [b"\\ulimit -S -t unlimited"]),  # mksh
    (b"-p: processes             96365", [b"\\ulimit -S -p 96365"]),
    (b"nofile                                  (-n)  20000", [b"\\ulimit -S -n 20000"]),  # ksh93
    (b"pipe buffer size (bytes)                (-p)  4096", []),
    (b"kqueues                                 (-k)  not supported", []),
    (b"nofiles              10", []),  # fewer than a command needs
    (b"", []),
]


@pytest.mark.parametrize(("line", "expected"), LIMITS)
def test_each_shells_table_of_limits_becomes_commands(line: bytes, expected: list[bytes]) -> None:
    """D2: soft limits come back; what cannot be set, or would make the shell unusable, is left out."""
    assert list(limit_commands(line)) == expected
