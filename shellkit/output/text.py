"""Bytes as text: live chunks decoded one after another (`StreamDecoder`), and pieces cut at whole characters.

Sessions own a decoder for each stream of a command (contract C3, C4). Nothing here waits or splits a character.
"""

from __future__ import annotations

from codecs import getincrementaldecoder

__all__ = ["StreamDecoder", "orphans", "unfinished"]


class StreamDecoder:
    """Decode one stream of UTF-8 as it arrives; undecodable bytes become U+FFFD, NUL stays.

    The chunks joined are what decoding the whole stream at once gives, wherever the chunks were cut.
    """

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes | bytearray | memoryview) -> str:
        """Return the characters that `data` completes; up to 3 bytes of the next one are kept back."""
        return self._decoder.decode(bytes(data))

    def finish(self) -> str:
        """Return U+FFFD if the stream ended within a character, else nothing; then begin a new stream."""
        return self._decoder.decode(b"", final=True)


def unfinished(data: bytes | bytearray | memoryview) -> int:
    """Return how many bytes at the end of `data` begin a character that later bytes would complete: 0 to 3."""
    if not data or data[-1] < 0x80:  # most ends, and asked for with every read of a program
        return 0
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(bytes(data[-3:]))
    return len(decoder.getstate()[0])


def orphans(data: bytes | bytearray) -> int:
    """Return how many bytes at the start of `data` may continue a character that earlier bytes began: 0 to 3."""
    # Continuation bytes are 10xxxxxx, and a character has at most three (RFC 3629, section 3).
    return next((i for i, byte in enumerate(data[:3]) if byte & 0xC0 != 0x80), min(3, len(data)))
