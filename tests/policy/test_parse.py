"""What a command does, segment by segment."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shellkit.policy import Clarity
from shellkit.policy.parse import MAX_BYTES, MAX_NODES, parse
from shellkit.policy.words import read_word

SEGMENTS: dict[str, list[tuple[str, ...] | None]] = {
    "git status && rm -rf /": [("git", "status"), ("rm", "-rf", "/")],
    "a 'b c' \"d\" e\\ f $'g\\n'": [("a", "b c", "d", "e f", "g\n")],
    "a | b; c & d || e": [("a",), ("b",), ("c",), ("d",), ("e",)],
    "a $(b) `c`": [None, ("b",), ("c",)],
    "a <<E\n$(b)\nE": [("a",), None, ("b",)],
    "bash -c 'a; b'": [("bash", "-c", "a; b"), ("a",), ("b",)],
    "bash -c \"bash -c 'a'\"": [("bash", "-c", "bash -c 'a'"), ("bash", "-c", "a"), ("a",)],
    "eval a 'b c'": [("eval", "a", "b c"), ("a", "b", "c")],
    "env -u X LANG=C nice -n 3 a b": [
        ("env", "-u", "X", "LANG=C", "nice", "-n", "3", "a", "b"),
        ("nice", "-n", "3", "a", "b"),
        ("a", "b"),
    ],
    "timeout -k 1 5 a": [("timeout", "-k", "1", "5", "a"), ("a",)],
    "find . -exec a {} + -exec b \\;": [("find", ".", "-exec", "a", "{}", "+", "-exec", "b", ";"), None, ("b",)],
    "if a; then b; elif c; then d; else e; fi": [("a",), ("b",), ("c",), ("d",), ("e",)],
    "for x in 1; do a; done": [("a",)],
    "while a; do b; done": [("a",), ("b",)],
    "case x in y) a;; *) b;; esac": [("a",), ("b",)],
    "(a; { b; })": [("a",), ("b",)],
    "a # b\nc": [("a",), ("c",)],
    "a \\\n  b": [("a", "b")],
    "a\r\nb\r\n": [("a",), ("b",)],
    "x=$(a)": [None, ("a",)],
    "> f": [None],
    "": [],
    "# nothing": [],
}


@pytest.mark.parametrize("command", SEGMENTS)
def test_segments(command: str) -> None:
    """H6: every command of lists, pipelines, substitutions, wrappers and nested texts is a segment of its own."""
    assert [segment.argv for segment in parse(command).segments] == SEGMENTS[command]


def test_positions_and_origin() -> None:
    """H6: a segment tells line and column in the command's text, and what starts it."""
    first, second, third, inner = parse("é; ls\n  sudo rm x").segments
    assert (first.line, first.column) == (1, 1)
    assert (second.line, second.column, second.text) == (1, 4, "ls")
    assert (third.line, third.column, third.text, third.via) == (2, 3, "sudo rm x", "")
    assert (inner.argv, inner.line, inner.column, inner.via) == (("rm", "x"), 2, 3, "sudo")


WRITES = {
    "a > f": ("f",),
    "a >> 'f g'": ("f g",),
    "a &> f": ("f",),
    "a > f 2> g": ("f", "g"),
    "a > $x": ("$x",),
    "a | b > f": ("f",),
    "a && b > f": ("f",),
    "a <<E > f\nx\nE": ("f",),
    "a >& f": ("f",),
    "> f a": ("f",),
    "a > /dev/null 2>&1": (),
    "a 2>&1 >&2 >&- <&-": (),
    "a < f": (),
    "a < /dev/tcp/h/1": ("the network (/dev/tcp/h/1)",),
    "a < $x": ("the network ($x)",),
}


@pytest.mark.parametrize("command", WRITES)
def test_writing_redirections(command: str) -> None:
    """H6: a redirection that writes is recorded on the command it belongs to; /dev/null and copies do not count."""
    segments = parse(command).segments
    assert segments[-1].writes == WRITES[command]
    assert all(not segment.writes for segment in segments[:-1])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", "a"), ("'a b'", "a b"), ('"a b"', "a b"), ("a\\ b", "a b"), ("a'b'\"c\"", "abc"), ("''", ""),
        ("a\\\nb", "ab"),
        ('"a\\"b\\$c\\d"', 'a"b$c\\d'), ("$'a\\tb\\x41\\101\\u00e9\\''", "a\tbA\u0041é'"), ('$"a"', "a"), ("a$", "a$"),
        ("{}", "{}"), ("a{b}", "a{b}"), ("HEAD@{1}", "HEAD@{1}"), ("a#b", "a#b"), ("'*'", "*"), ("\\*", "*"),
        ("\\~", "~"),
    ],
)  # fmt: skip
def test_quotes_and_escapes_are_resolved(text: str, value: str) -> None:
    """H6: a word is judged as the program gets it."""
    word = read_word(text.encode().decode("latin-1"), {})
    assert word is not None
    assert (word.text, word.known) == (value, True)


@pytest.mark.parametrize("text", ["*", "a?b", "[ab]", "~", "~/x", "{a,b}", "x{1..3}"])
def test_what_the_shell_expands_is_not_known(text: str) -> None:
    """H6: globs, braces and tildes are words that only the shell knows."""
    word = read_word(text, {})
    assert word is not None
    assert not word.known


@pytest.mark.parametrize(
    "text", ["a b", "a;b", "'a", '"a', "a\\", "#a", "$x", "`a`", "a(b", "$'a", "$'a\\0b'", '"$x"', "$[1]"]
)
def test_what_is_not_one_word_is_refused(text: str) -> None:
    """H6: a text that the second reading does not take for one word is hidden, whatever the grammar says."""
    assert read_word(text, {}) is None


def test_too_large_and_too_deep() -> None:
    """H6: pathological input is hidden, not read: over a size, a number of parts, a depth, of here-documents."""
    for text in ("echo " + "a" * MAX_BYTES, "a;" * (MAX_NODES // 2), "<<a " * 100):
        parsed = parse(text)
        assert parsed.too_large
        assert [segment.clarity for segment in parsed.segments] == [Clarity.OPAQUE]
    for text in ("eval " * 20 + "ls", "env " * 20 + "ls", "$(" * 5000, "if " * 5000, '"$(' * 3000, "`a " * 2001):
        assert any(segment.clarity is Clarity.OPAQUE for segment in parse(text).segments)


def test_simple_commands_have_one_spelling() -> None:
    """H7: one simple command is the same however it is quoted; anything else is kept as it is written."""
    assert parse("ls  'a b'").canonical == parse("ls a\\ b\n").canonical == "ls 'a b'"
    for text in ("ls *", "ls '*'", "cat < a", "cat > a", "ls; pwd", "x=1 ls", "ls $x", "ls # c", "ls &", "eval ls"):
        assert parse(text).canonical == text


def test_importing_the_policy_loads_no_grammar() -> None:
    """The package is pure: tree-sitter is loaded by the first command that is parsed."""
    code = "import sys, shellkit.policy; sys.exit(any(name.startswith('tree_sitter') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
