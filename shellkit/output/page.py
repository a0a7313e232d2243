"""`OutputPage`: a part of an output that was kept in a file, as a value. Sessions build it, callers read it."""

from __future__ import annotations

import attrs

from .ansi import clean

__all__ = ["OutputPage"]


@attrs.frozen(kw_only=True)
class OutputPage:
    """What `executor.read_output` found.

    Attributes:
        ref: the reference that was asked for.
        text: the part, decoded from UTF-8 with undecodable bytes as U+FFFD and cut at characters. Of a search: the
            cleaned lines as `grep -n` shows them, `12:` before a match and `11-` before its context.
        offset: bytes of the stream before the part (of a search: before the first line that was looked at).
        next_offset: where to go on; None if the stream has ended and nothing follows.
        first_line: number of the line that the part begins in; the stream's first is 1.
        total: bytes of the stream until now.
        missing: the ranges of bytes, from and up to, that were given up to keep the limit on disk.
        ended: whether nothing will be added.
        matches: lines that matched; None if nothing was searched for.
        notes: what a model must be told, each with the remedy.
    """

    ref: str
    text: str
    offset: int
    next_offset: int | None
    first_line: int
    total: int
    missing: tuple[tuple[int, int], ...] = ()
    ended: bool = True
    matches: int | None = None
    notes: tuple[str, ...] = ()

    def for_model(self) -> str:
        """Return the part as text for a model: cleaned as in `ShellResult.for_model`, then where it stands."""
        shown = clean(self.text).removesuffix("\n")
        if self.matches is None:
            where = f"from byte {self.offset} (line {self.first_line}) of {self.total}"
        else:
            where = f"{self.matches} matching lines, searched from byte {self.offset} of {self.total}"
        if not self.ended:
            where += ", which are still growing"
        if self.next_offset is not None:
            where += f"; go on with offset={self.next_offset}"
        lines = [shown] if shown else ["[nothing there]"]
        lines.append(f"[{where}]")
        lines += [f"[bytes {begin} to {end} were not kept: the output was too large]" for begin, end in self.missing]
        lines += [f"[note: {note}]" for note in self.notes]
        return "\n".join(lines)
