"""`StreamDecoder`: live chunks of bytes as text, for `on_output` (contract C3, C4).

Sessions own one for each stream of a command. It never waits, and never splits a character.
"""

from __future__ import annotations

from codecs import getincrementaldecoder

__all__ = ["StreamDecoder"]


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
