"""One word of shell text -> the word that a program gets. Called by `tree` for every word of every command.

This is a second reading, independent of tree-sitter's tokens: a word whose text does not form exactly one shell
word here gets None, and the caller treats it as hidden. So a disagreement between the grammar and the shell
ends in a question, not in an allowed command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .base import Word

__all__ = ["read_word", "read_words"]

_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+-]+")  # nothing here is special in any place: most words, read at once
_META = frozenset(" \t\n;|&<>()")
# What `$` may introduce (POSIX 2.6; `[` is bash's old arithmetic). Where one stands, the grammar must have seen an
# expansion; a backslash may hide a newline between `$` and its name.
_AFTER_DOLLAR = re.compile(r"[A-Za-z_0-9@*#?$!({\[\\-]")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)|,[^{}]*\}")
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|([0-7]{1,3})|(.))", re.DOTALL
)
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HOLE = "\0"  # stands for text that only the shell knows; a command cannot hold a NUL


def read_word(text: str, holes: Mapping[int, tuple[int, bool]]) -> Word | None:
    """Return the word that `text` stands for, or None if it is not exactly one shell word.

    Args:
        text: source text, one character a byte (Latin-1), so that offsets are those of the syntax tree.
        holes: offset of each expansion -> (its end, whether it is a process substitution).
    """
    if _PLAIN.fullmatch(text):
        return Word.of(text)
    state = _Reading(text, holes)
    position = 0
    while position < len(text):
        step = state.quoted(position) if state.inside else state.plain(position)
        if step < 0:
            return None
        position = step
    return None if state.inside else state.word()


def read_words(text: str, holes: Mapping[int, tuple[int, bool]], blanks: str) -> Iterator[tuple[str, Word | None]]:
    """Yield the parts of `text` between unquoted `blanks`, each with the word that it stands for, or None."""
    start = position = 0
    state = _Reading(text, holes)
    while position <= len(text):
        if position == len(text) or (not state.inside and text[position] in blanks):
            if position > start:
                inner = {at - start: (end - start, p) for at, (end, p) in holes.items() if start <= at < position}
                yield text[start:position], read_word(text[start:position], inner)
            position += 1
            start = position
            continue
        step = state.quoted(position) if state.inside else state.plain(position)
        position = step if step > 0 else position + 1


class _Reading:
    """The state of reading one word: what has been read, and whether it may split or be an option."""

    def __init__(self, text: str, holes: Mapping[int, tuple[int, bool]]) -> None:
        self.text = text
        self.holes = holes
        self.inside = False  # double quotes
        self.out: list[str] = []
        self.bare: list[str] = []  # unquoted characters only; quoted ones as "x"
        self.splits = False
        self.unknown = False

    def put(self, literal: str, bare: str = "") -> None:
        self.out.append(literal)
        self.bare.append(bare or "x" * len(literal))

    def hole(self, position: int) -> int:
        end, process = self.holes[position]
        self.unknown = True
        self.splits = self.splits or not (self.inside or process)
        self.put("/dev/fd/" + _HOLE if process else _HOLE)
        return end

    def plain(self, position: int) -> int:
        """Read on outside of quotes; return the next offset, or -1 if this is not one word."""
        char = self.text[position]
        if position in self.holes:
            return self.hole(position)
        after = self.text[position + 1 : position + 2]
        if char in _META or char == "`" or (char == "#" and position == 0):
            return -1
        if char == "'":
            return self.literal(position + 1, escapes=False)
        if char == '"':
            self.inside = True
            self.put("")
            return position + 1
        if char == "\\":
            if not after:
                return -1
            if after != "\n":
                self.put(after)
            return position + 2
        if char == "$":
            return self.dollar(position, after)
        if char in "*?[" and self.text != "[":
            self.unknown = True
        self.put(char, char)
        return position + 1

    def dollar(self, position: int, after: str) -> int:
        if after == "'":
            return self.literal(position + 2, escapes=True)
        if after == '"':
            return position + 1  # a translated string is read as the string
        if _AFTER_DOLLAR.match(after):
            return -1
        self.put("$")
        return position + 1

    def literal(self, position: int, escapes: bool) -> int:
        if not escapes:
            end = self.text.find("'", position)
            if end < 0:
                return -1
            self.put(self.text[position:end])
            return end + 1
        found = re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL).match(self.text, position)
        if not found:
            return -1
        value = _ESCAPE.sub(_unescape, self.text[position : found.end() - 1])
        self.put(value)
        return -1 if _HOLE in value else found.end()  # the shell cuts the word at a NUL

    def quoted(self, position: int) -> int:
        """Read on inside double quotes; return the next offset, or -1 if this is not one word."""
        char = self.text[position]
        if position in self.holes:
            return self.hole(position)
        after = self.text[position + 1 : position + 2]
        if char == '"':
            self.inside = False
            return position + 1
        if char == "`" or (char == "$" and _AFTER_DOLLAR.match(after)):
            return -1
        if char == "\\" and after and after in '$`"\\\n':
            if after != "\n":
                self.put(after)
            return position + 2
        self.put(char)
        return position + 1

    def word(self) -> Word:
        bare, value = "".join(self.bare), "".join(self.out)
        braces = bool(_BRACES.search(bare))
        tilde = bare.startswith("~")
        name = value.rsplit("/", 1)[-1]
        if not (self.unknown or braces or tilde):
            return Word(_utf8(value), name=_utf8(name))
        start = re.split(r"[\0*?\[{~]", value, maxsplit=1)[0]
        fixed = (start != "" and not start.startswith("-")) or tilde
        if _HOLE in name or braces or re.search(r"[*?\[]", bare[len(bare) - len(name) :]):
            name = ""
        return Word(_utf8(self.text), known=False, operand=fixed and not self.splits, name=_utf8(name))


def _unescape(found: re.Match[str]) -> str:
    hexa, short, long, control, octal, other = found.groups()
    if hexa:
        return chr(int(hexa, 16))
    if short or long:
        point = int(short or long, 16)
        valid = point < 0x110000 and not 0xD800 <= point < 0xE000
        return (chr(point) if valid else "\ufffd").encode().decode("latin-1")
    if control:
        return chr(ord(control) & 0x1F)
    if octal:
        return chr(int(octal, 8) & 0xFF)
    return _LETTERS.get(other, other if other in "\\'\"?" else "\\" + other)


def _utf8(value: str) -> str:
    return value.encode("latin-1").decode("utf-8", "replace")
