"""A shell's state as a value: what it printed about itself, in named sections.

`Dialect.checkpoint` makes the shell print them, `Dialect.restore` turns them back into a script.
Sections hold the shell's own syntax as bytes; nothing here runs or interprets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import attrs

__all__ = ["Checkpoint", "parse_sections", "split_statements"]


@attrs.frozen
class Checkpoint:
    """The state of one shell at one moment.

    Attributes:
        family: the dialect that printed it; only the same family can take it back.
        sections: section name -> what the shell printed, without the final newline.
    """

    family: str
    sections: dict[str, bytes] = attrs.field(factory=dict)

    def __getitem__(self, name: str) -> bytes:
        """Return a section; one that the shell could not print is empty."""
        return self.sections.get(name, b"")

    @property
    def errexit(self) -> bool:
        """Whether `set -e` was on."""
        return b"e" in self["flags"]

    def without_errexit(self) -> Checkpoint:
        """Return the same state with `set -e` off: one that has just fired must not come back (contract D2)."""
        return attrs.evolve(self, sections={**self.sections, "flags": self["flags"].replace(b"e", b"")})

    def without_traps(self) -> Checkpoint:
        """Return the same state with no trap set: one that exits at every command (DEBUG) would end each new shell."""
        kept = {name: text for name, text in self.sections.items() if name not in ("traps", "toplevel")}
        return attrs.evolve(self, sections=kept)

    @property
    def workdir(self) -> bytes:
        """The directory that the shell stood in."""
        return self["workdir"]


def parse_sections(text: bytes, token: bytes) -> dict[str, bytes]:
    """Split what a state function printed at its `#TOKEN:name` lines.

    The token is random for every session, so a variable's value cannot end a section.
    """
    mark = b"\n#" + token + b":"
    sections: dict[str, bytes] = {}
    latest = ""
    for part in text.split(mark)[1:]:
        name, _, body = part.partition(b"\n")
        if name.isalnum():
            latest = name.decode("ascii")
            sections[latest] = body
        elif latest:  # the text of the function that prints the marks, among the functions
            sections[latest] += mark + part
    return sections


def split_statements(text: bytes) -> Iterator[bytes]:
    """Yield the statements of assignments that a shell printed, newlines inside quotes kept.

    Knows single quotes, double quotes, `$'...'` and back-slashes: the quoting that `declare -p`,
    `typeset -p`, `export -p`, `set` and `alias` print (POSIX 2.2, bash manual 3.1.2).
    """
    start = 0
    for end in _statement_ends(text):
        if statement := text[start:end].strip(b"\n"):
            yield statement
        start = end + 1


_QUOTED = re.compile(
    rb"\\.|\$'(?:[^'\\]|\\.)*'|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(\n)|[^\\$'\"\n]+|.",
    re.DOTALL,
)


def _statement_ends(text: bytes) -> Iterable[int]:
    for match in _QUOTED.finditer(text):
        if match.group(1) is not None:
            yield match.start()
    yield len(text)
