"""`clean`: the text that a terminal would show, without one (contract E6). Called by `ShellResult.for_model`.

It resolves a single line (carriage return, backspace, erase, column), not a screen: movements between lines are
dropped. A column is one character. It takes linear time and never swallows text past the end of a line, since the
marker line of a truncated output may stand in the middle of a sequence.

Source of the forms: ECMA-48, sections 5.3 to 5.6, and xterm's ctlseqs, "C1 (8-Bit) Control Characters".
"""

from __future__ import annotations

import re

__all__ = ["clean", "draws_screen"]

# BEL, backspace, carriage return, shift out and in (`tput sgr0` on a Linux console), escape, and C1 but for U+0085,
# which Unicode knows as a line end.
_CONTROL = re.compile(r"[\x07\b\r\x0e\x0f\x1b\x80-\x84\x86-\x9f]")

_ASCII_CONTROL = "\x07\b\r\x0e\x0f\x1b"

# Progress bars are drawn with these: CSI K (erase in line), 0J (erase below), G (column) and D (left). A number has at
# most 4 digits: no terminal is wider, and int() refuses more than 4300 (sys.set_int_max_str_digits).
_EDIT_TAIL = r"(?:[0-9]{0,4}[DGK]|0?J)"
_CSI = r"(?:\x1b\[|\x9b)"

# Linear: every payload quantifier is possessive, and no payload holds what could begin another of its kind, so a form
# that fails is scanned only once more.
_SEQUENCE = re.compile(
    rf"{_CSI}(?!{_EDIT_TAIL})[0-?]*+[ -/]*+[@-~]?"  # colours, modes, movements; also cut short
    # OSC, DCS, SOS, PM, APC, up to BEL or ST, CAN or SUB, at most to the end of the line
    r"|\x1b[\]PX^_][^\x07\x18\x1a\x1b\x9c\n]*+(?:[\x07\x18\x1a\x9c]|\x1b\\)?"
    r"|\x1bk[^\x1b\n]*+\x1b\\"  # window title of screen and tmux
    r"|\x1b(?!\[)[ -/]*+[0-~]?"  # charset selection and other two- and three-character escapes; a lone escape
    # 8-bit strings need their end: U+009D without one is a quotation mark that somebody decoded as Latin-1
    r"|[\x90\x98\x9d-\x9f][^\x07\x18\x1a\x1b\n\x80-\x9f]*+(?:[\x07\x9c]|\x1b\\)"
    r"|[\x07\x0e\x0f\x80-\x84\x86-\x9a\x9c-\x9f]+"
)
_EDIT = re.compile(rf"(\r+|\x08+|{_CSI}{_EDIT_TAIL})")


# CUP, HVP and VPA: to a line, wherever the cursor stands. `clear` goes home without naming one, and is no drawing.
_ADDRESSING = re.compile(r"(?:\x1b\[|\x9b)(?:[0-9]+;[0-9]*[Hf]|[0-9]+d)")


def draws_screen(text: str) -> bool:
    """Return whether `text` goes to lines of a screen more often than it ends one: then `clean` cannot show it."""
    return len(_ADDRESSING.findall(text)) > text.count("\n")


def clean(text: str) -> str:
    """Return `text` without terminal control: sequences stripped, progress bars and backspaces resolved.

    Later text overwrites earlier columns of its line, as on a terminal. Text without control characters is returned
    as it is; what only looks like an escape (`[31m`) and NUL stay.
    """
    if not text or not _has_control(text):
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n")
    if not _EDIT.search(text):
        return text
    return "\n".join(_resolve(line) if _EDIT.search(line) else line for line in text.split("\n"))


def _has_control(text: str) -> bool:
    if text.isascii():  # as most output is: memchr(3) is 50 times as fast as a set of characters
        return any(character in text for character in _ASCII_CONTROL)
    return _CONTROL.search(text) is not None


def _resolve(line: str) -> str:
    """Return the line as it looks after all its edits. The cursor never passes the end, so nothing is padded."""
    cells: list[str] = []
    at = 0
    for index, piece in enumerate(_EDIT.split(line)):
        if index % 2:
            at = _edit(cells, at, piece)
        else:
            cells[at : at + len(piece)] = piece
            at += len(piece)
    return "".join(cells)


def _edit(cells: list[str], at: int, edit: str) -> int:
    """Apply one edit to the line and return the new column."""
    if edit[0] == "\r":
        return 0
    if edit[0] == "\b":
        return max(0, at - len(edit))
    number = edit.lstrip("\x1b\x9b[")[:-1]
    match edit[-1], number:
        case "D", _:
            return max(0, at - max(1, int(number or 1)))
        case "G", _:
            return min(len(cells), max(0, int(number or 1) - 1))
        case _, "" | "0":
            del cells[at:]
        case _, "2":
            # A terminal leaves the cursor where it is; the columns before it are blank, so nothing is lost.
            cells.clear()
            return 0
    # "1" would only blank what stands left of the cursor: nobody draws a progress bar with it.
    return at
