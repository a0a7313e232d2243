"""Quote arbitrary bytes for POSIX shells. Used by every POSIX dialect."""

from __future__ import annotations

__all__ = ["quote"]


def quote(text: bytes) -> bytes:
    """Return `text` as one single-quoted shell word (POSIX 2.2.2: nothing is special inside but the quote)."""
    return b"'" + text.replace(b"'", b"'\\''") + b"'"
