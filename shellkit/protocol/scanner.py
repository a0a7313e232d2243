"""Find a record in a stream that it shares with a command's output (in-band framing).

Transports that have only standard input, output and error (a container, ssh, a terminal) carry the report on the
same streams as the output. A record is `MARKER <report> NUL`; the marker is random for every command and no
newline need stand before it, so output without a final newline stays exact. Pure: bytes in, bytes out.
"""

from __future__ import annotations

__all__ = ["MarkerScanner"]


class MarkerScanner:
    """Separates one stream into output and the report behind the marker.

    Args:
        marker: what the record starts with; not empty, and without NUL.

    Attributes:
        report: what stood between marker and NUL, once both have come.
    """

    def __init__(self, marker: bytes) -> None:
        if not marker or b"\0" in marker:
            raise ValueError("a marker is not empty and holds no NUL")
        self._marker = marker
        self._held = b""
        self._in_record = False
        self.report: bytes | None = None

    def feed(self, data: bytes) -> bytes:
        """Take bytes and return those that are certainly output.

        What could be the beginning of the marker is held back until more has come. Bytes behind the record are
        output again: a background job may go on writing.
        """
        if self.report is not None:
            return data
        data = self._held + data
        self._held = b""
        output = b""
        if not self._in_record:
            at = data.find(self._marker)
            if at < 0:
                keep = self._overlap(data)
                self._held = data[len(data) - keep :]
                return data[: len(data) - keep]
            output, data = data[:at], data[at + len(self._marker) :]
            self._in_record = True
        end = data.find(b"\0")
        if end < 0:
            self._held = data
            return output
        self.report = data[:end]
        return output + data[end + 1 :]

    def finish(self) -> bytes:
        """The stream has ended: return what was held back, which is output unless a record was cut in half."""
        held, self._held = self._held, b""
        return b"" if self._in_record else held

    def _overlap(self, data: bytes) -> int:
        """Return how many bytes at the end of `data` could be the beginning of the marker."""
        for length in range(min(len(self._marker) - 1, len(data)), 0, -1):
            if data.endswith(self._marker[:length]):
                return length
        return 0
