"""Where a here-document ends, and whether its body runs anything; a reading of lines that checks the grammar's.

The grammar places here-documents by its own scanner, and is wrong about several on one line, about continued
lines, and about backticks. The reading here knows only the plain form, which is the common one; the rest is hidden.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["check_heredoc"]

_DELIMITER = re.compile(r"[A-Za-z0-9_.-]+|'[A-Za-z0-9_.-]+'|\"[A-Za-z0-9_.-]+\"|\\[A-Za-z0-9_.-]+")
# The rest of the line that opens the document: words, simple quotes and operators, no second document.
_REST = re.compile(r"(?:[^'\"\\`$#(){}<\n]|<(?!<)|'[^'\n]*'|\"(?:[^\"\\`$\n]|\$\w+)*\"|\$\w+)*\n")
# What the shell expands in the body and this file does not follow; `${name}` alone is harmless.
_EXPANDS = re.compile(r"`|\$(?!\{\w+\})[({\[]|\\\n")


def check_heredoc(text: str, node: Node) -> str:
    """Return why the here-document is not understood, or "".

    Args:
        text: the source, one character a byte.
        node: a `heredoc_redirect`.
    """
    parts = {child.type: child for child in node.children}
    start, end = parts.get("heredoc_start"), parts.get("heredoc_end")
    if start is None or end is None or any(node.field_name_for_child(i) == "argument" for i in range(node.child_count)):
        return "a here-document is not understood"
    opening = text[start.start_byte : start.end_byte]
    rest = _REST.match(text, start.end_byte)
    line = text[text.rfind("\n", 0, start.start_byte) + 1 : start.start_byte]
    if not _DELIMITER.fullmatch(opening) or not rest or line.count("<<") != 1:
        return "a here-document is not understood"
    delimiter = opening.strip("'\"\\")
    tabs = text.startswith("<<-", node.start_byte) or text[start.start_byte - 1] == "-"
    position = rest.end()
    while position < len(text):
        stop = text.find("\n", position)
        stop = len(text) if stop < 0 else stop
        found = text[position:stop]
        if (found.lstrip("\t") if tabs else found) == delimiter:
            break
        position = stop + 1
    else:
        return "a here-document has no end"
    if not position <= end.start_byte <= stop or end.end_byte != stop:
        return "a here-document is not understood"
    if opening == delimiter and _EXPANDS.search(text, rest.end(), position):
        return "a here-document expands something that is not looked into"
    return ""
