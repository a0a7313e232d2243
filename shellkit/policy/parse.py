"""Command text -> segments: every command that the text runs, as far as text can tell.

`RulePolicy.judge` calls `parse`. It never raises over a text and never decides: what it does not understand is
a segment that is OPAQUE, which no rule can allow. tree-sitter is imported when the first command is parsed.

Limits, each ends in an OPAQUE segment (so: ask): `MAX_BYTES` of text (1 MB of short commands takes 0.3 s
to parse and more to walk; at the limit the worst text that was found, `[[ [[ [[ ...`, takes 0.2 s), `MAX_NODES` of
syntax tree, `MAX_HEREDOCS` (the grammar's scanner is quadratic in them: 3,000 take 37 ms), `MAX_NESTING` of texts.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterator
from typing import Any

import attrs

from .base import Clarity, Segment, Word
from .hidden import RESERVED
from .started import look
from .tree import Walk

__all__ = ["MAX_BYTES", "MAX_HEREDOCS", "MAX_NESTING", "MAX_NODES", "Parsed", "normalise", "parse"]

MAX_BYTES = 64 * 1024
MAX_NODES = 20_000
MAX_HEREDOCS = 32
MAX_NESTING = 8

# Words that no shell reads as anything but themselves: no quote, operator, expansion, assignment or pattern in them.
_PLAIN = re.compile(r"[\w./,-]+(?: [\w./,-]+)*\Z", re.ASCII)
_NO_COMMAND = RESERVED | {"time", "declare", "typeset", "export", "readonly", "local", "unset", "unsetenv"}

_BASH = frozenset({"bash", "rbash"})
_POSIX = frozenset(
    {"sh", "dash", "ash", "busybox", "ksh", "ksh93", "mksh", "lksh", "oksh", "pdksh", "posh", "yash", "hush"}
)
# Categories that print as nothing or as a blank, which the grammar may take for a blank while the shell does not.
_JOINED = re.compile(r"[^ \t\n\\]\\\n[^ \t\n]")
_UNUSUAL = re.compile(r"[^\n\t -~]")
# tree-sitter-bash 0.25.1 looks up what follows here in a table of 256 characters, and crashes with some of the others
# (tree-sitter/tree-sitter-bash#337). To the shell they are letters.
_BRACE = re.compile(rb"(\{[0-9]*(?:\.\.[0-9]*)?)([\x80-\xff]+)")
_STRANGE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})


@attrs.frozen(kw_only=True)
class Parsed:
    """A command, read.

    Attributes:
        text: the text as the shell will get it (CRLF is LF).
        segments: what it does, in order.
        canonical: the text in one spelling: a simple command quoted anew, anything else as it is written.
        too_large: the text was not parsed; `segments` holds only the reason.
    """

    text: str
    segments: tuple[Segment, ...]
    canonical: str
    too_large: bool = False


def normalise(command: str) -> str:
    """Return `command` as the executor will run it: CRLF line ends become LF (contract B2)."""
    return command.replace("\r\n", "\n")


def parse(command: str, dialect: str = "bash") -> Parsed:
    """Return what `command` does when the shell `dialect` runs it.

    Args:
        command: any text.
        dialect: name of the shell. Of one that is neither bash nor a POSIX shell the segments are a guess, and
            one of them is OPAQUE.
    """
    text = normalise(command)
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES or text.count("<<") > MAX_HEREDOCS:
        why = f"the text is too large to be looked into ({size:,} bytes); send it in parts of at most {MAX_BYTES:,}"
        return _too_large(text, why)
    parser = _Parser()
    if _PLAIN.match(text) and dialect in _BASH | _POSIX and (words := text.split(" "))[0] not in _NO_COMMAND:
        plain = Segment(text=text, words=tuple(map(Word.of, words)))
        # Nothing in it needs a quote, so the text is the one spelling already.
        return Parsed(text=text, segments=tuple(parser.command(plain, dialect, 0, 0)), canonical=text)
    segments = tuple(parser.script(text, dialect, 0))
    if parser.too_large:
        return _too_large(text, parser.too_large)
    return Parsed(text=text, segments=segments, canonical=_canonical(text, segments))


def _too_large(text: str, why: str) -> Parsed:
    return Parsed(text=text, segments=(_opaque(text[:200], why),), canonical=_trimmed(text), too_large=True)


def _canonical(text: str, segments: tuple[Segment, ...]) -> str:
    trimmed = _trimmed(text)
    if len(segments) != 1 or segments[0].clarity is Clarity.OPAQUE or segments[0].writes:
        return trimmed
    argv = segments[0].argv
    # A redirection that only reads is not in the words; without its sign it cannot be there.
    if argv is None or segments[0].text != trimmed or re.search(r"[<>=&]", text):
        return trimmed
    return shlex.join(argv)


def _trimmed(text: str) -> str:
    return text.strip(" \t\n")


def _opaque(text: str, why: str) -> Segment:
    return Segment(text=text, clarity=Clarity.OPAQUE, why=why)


def _without_characters(brace: re.Match[bytes]) -> bytes:
    return brace[1] + b"x" * len(brace[2])  # of the same length, as the nodes' places are used with the text itself


class _Parser:
    """Reads one command and the texts that it runs in its turn, with one budget of nodes for all."""

    def __init__(self) -> None:
        self.parser: Any = None
        self.nodes = 0
        self.too_large = ""

    def script(self, text: str, dialect: str, depth: int) -> Iterator[Segment]:
        """Yield the segments of `text`, nested ones after what runs them."""
        if depth > MAX_NESTING:
            yield _opaque(text[:200], "commands are nested too deeply to be looked into")
            return
        for char in sorted(set(_UNUSUAL.findall(text))):
            if unicodedata.category(char) in _STRANGE:
                yield _opaque(text[:200], f"the text holds the character U+{ord(char):04X}, which may hide something")
                break
        if dialect not in _BASH | _POSIX:
            yield _opaque(text[:200], f"the dialect {dialect!r} is not looked into")
        yield from self.walk(text, dialect, depth)
        if _JOINED.search(text):  # `r\\<newline>m` is rm, which the grammar does not see
            yield from self.walk(text.replace("\\\n", ""), dialect, depth)

    def walk(self, text: str, dialect: str, depth: int) -> Iterator[Segment]:
        source = text.encode("utf-8", "replace")
        if self.parser is None:
            from tree_sitter import Language, Parser  # late: 4 ms, and only who has a policy needs it
            from tree_sitter_bash import language

            self.parser = Parser(Language(language()))  # 1 us each: a parser of one's own needs no lock
        tree = self.parser.parse(_BRACE.sub(_without_characters, source))
        self.nodes += tree.root_node.descendant_count
        if self.nodes > MAX_NODES:
            self.too_large = f"the text has too many parts to be looked into (more than {MAX_NODES:,})"
            return
        for found in Walk(source, dialect not in _BASH).run(tree.root_node):
            if found.script is not None:
                yield from self.nested(found.segment, found.script, dialect, depth)
            elif found.segment.words:
                yield from self.command(found.segment, dialect, depth, 0)
            else:
                yield found.segment

    def nested(self, outer: Segment, text: str, dialect: str, depth: int, via: str = "") -> Iterator[Segment]:
        for segment in self.script(text, dialect, depth + 1):
            yield attrs.evolve(segment, line=outer.line, column=outer.column, via=segment.via or via)

    def command(self, segment: Segment, dialect: str, depth: int, wrapped: int) -> Iterator[Segment]:
        """Yield a simple command, and the commands that it starts."""
        if wrapped > MAX_NESTING:
            yield attrs.evolve(segment, clarity=Clarity.OPAQUE, why="too many wrappers", launches=True)
            return
        seen = look(segment.words, dialect)
        if seen.clarity is Clarity.CLEAR:
            yield segment
        else:
            clarity, why = max(segment.clarity, seen.clarity), segment.why or seen.why
            yield attrs.evolve(segment, clarity=clarity, why=why, launches=seen.launches)
        name = _called(segment.words)
        for words in seen.commands:
            inner = Segment(text=segment.text, words=words, line=segment.line, column=segment.column, via=name)
            yield from self.command(inner, dialect, depth, wrapped + 1)
        for text, inner_dialect in seen.texts:
            yield from self.nested(segment, text, inner_dialect, depth, via=name)


def _called(words: tuple[Word, ...]) -> str:
    return words[0].name or words[0].text
