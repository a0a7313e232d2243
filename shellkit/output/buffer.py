"""`HeadTailBuffer`: what is kept of one output stream, in bounded memory (contract E1-E3).

Sessions own one for each stream, let the kernel write into it, and read `text()` when the command has ended.
It never reads a descriptor, waits, or keeps more than the limit plus a fixed margin.
"""

from __future__ import annotations

from .text import orphans, unfinished

__all__ = ["HeadTailBuffer"]

# 64 KiB is what a pipe holds by default (pipe(7)), so no smaller region empties a full pipe in one read.
_SMALL = 4 * 1024
_LEAST = 64 * 1024
_MOST = 128 * 1024


class HeadTailBuffer:
    """Keep the first and the last half of `limit` bytes of a stream, and count all of it.

    A driver reads without a copy: `n = os.readv(fd, [buffer.reserve()]); buffer.commit(n)`. The tail stays where
    the kernel wrote it, in a ring whose write position moves on; only the head is copied out.

    Memory: nothing before the first byte, 4 KiB until a read fills its whole region, in the end `limit` plus
    192 KiB; while the ring grows, the old one (at most half of that) beside it. Not for concurrent writers.

    Args:
        limit: bytes to keep; the odd byte goes to the tail. 0 keeps nothing and still counts.

    Raises:
        TypeError: `limit` is no integer.
        ValueError: `limit` is negative.
    """

    __slots__ = (
        "_at",
        "_capacity",
        "_head",
        "_head_limit",
        "_lap_end",
        "_least",
        "_limit",
        "_reserved",
        "_ring",
        "_total",
    )

    def __init__(self, limit: int) -> None:
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"the output limit must be an int (bytes), not {type(limit).__name__}")
        if limit < 0:
            raise ValueError(f"the output limit must be 0 (keep nothing) or more bytes, not {limit}")
        self._limit = limit
        self._head_limit = limit // 2
        # A lap ends less than _LEAST before the end of the ring, and a region out for reading covers at most _MOST
        # of the lap before: this is what leaves the whole tail alive between `reserve` and `commit`.
        self._capacity = limit - self._head_limit + _LEAST + _MOST
        self._ring = memoryview(b"")
        self.clear()

    def clear(self) -> None:
        """Forget the stream, and give a grown ring back, so that an idle session holds at most 4 KiB."""
        if len(self._ring) > _SMALL:
            self._ring = memoryview(b"")
        self._head = bytearray()
        self._at = 0  # where the next byte goes; the tail ends here
        self._lap_end = 0  # where the lap before this one ended
        self._least = 1  # the smallest region worth a read; _LEAST once a read has filled its region
        self._reserved = 0
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes seen, kept or not."""
        return self._total

    @property
    def truncated(self) -> bool:
        """Whether bytes are left out of `text()`."""
        return self._total > self._limit

    def has_room(self, count: int) -> bool:
        """Return whether `count` more bytes leave nothing out of `text()`."""
        return self._total + count <= self._limit

    @property
    def omitted(self) -> int:
        """Bytes left out of `text()`, those included that were left out to cut at a character."""
        if not self.truncated:
            return 0
        head, tail = self._cut()
        return self._total - len(head) - len(tail)

    def reserve(self) -> memoryview:
        """Return the region that the next bytes go to.

        It is contiguous, never empty, and void after the next `reserve`, `append` or `clear`. Until a read has
        filled its region it is at most 4 KiB; from then on it has 64 to 128 KiB.
        """
        at = self._at
        ring = self._ring
        while len(ring) - at < self._least:
            ring = self._make_room()
            at = self._at
        region = ring[at : at + _MOST]
        self._reserved = len(region)
        return region

    def commit(self, count: int) -> None:
        """Take the first `count` bytes of the region reserved last as the next bytes of the stream.

        Raises:
            ValueError: there is no region of this size; call `reserve` before each `commit`.
        """
        reserved = self._reserved
        if not 0 <= count <= reserved:
            raise ValueError(f"cannot commit {count} bytes of {reserved}: call reserve() before each commit()")
        self._reserved = 0
        self._total += count
        if count == reserved:
            self._least = _LEAST
        missing = self._head_limit - len(self._head)
        if missing:  # the tail is still empty and its place is 0
            self._head += self._ring[: min(count, missing)]
            if count <= missing:
                return
        self._at += count

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Take `data` (bytes-like, of any size) as the next bytes of the stream, by a copy."""
        rest = memoryview(data).cast("B")
        while rest:
            region = self.reserve()
            count = min(len(region), len(rest))
            region[:count] = rest[:count]
            self.commit(count)
            rest = rest[count:]

    def content(self) -> bytes:
        """Return what was kept, head and tail: the whole stream unless `truncated`."""
        return b"".join((self._head, self._tail()))

    def text(self) -> str:
        """Return what was kept, decoded from UTF-8 with undecodable bytes as U+FFFD.

        Over the limit, head and tail are cut at characters and joined by one line that names the bytes left out.
        """
        if not self.truncated:
            return self.content().decode("utf-8", "replace")
        head, tail = self._cut()
        omitted = self._total - len(head) - len(tail)
        before = "\n" if head and not head.endswith(b"\n") else ""
        marker = f"{before}[... {omitted} bytes omitted ...]\n"
        return head.decode("utf-8", "replace") + marker + tail.decode("utf-8", "replace")

    def _make_room(self) -> memoryview:
        """Grow the ring, or start a new lap if it has its full size."""
        ring, at = self._ring, self._at
        size = len(ring)
        if size == self._capacity:
            self._lap_end, self._at = at, 0
            return ring
        wanted = max(_SMALL if self._least == 1 else _LEAST, 2 * size)
        if 2 * wanted > self._capacity:
            wanted = self._capacity  # the last step, so that the old ring is less than half of the new one
        # A new array, never a resize: a driver may still hold a region of the old one.
        grown = memoryview(bytearray(wanted))
        grown[:at] = ring[:at]
        self._ring = grown
        return grown

    def _tail(self) -> bytes:
        """Return the last bytes of the stream, those in the head left out."""
        at = self._at
        size = min(self._total - len(self._head), self._limit - self._head_limit)
        if size <= at:
            return bytes(self._ring[at - size : at])
        return b"".join((self._ring[self._lap_end - (size - at) : self._lap_end], self._ring[:at]))

    def _cut(self) -> tuple[bytes, bytes]:
        """Return head and tail without the pieces of characters at the cut: at most 3 bytes on either side."""
        head, tail = bytes(self._head), self._tail()
        return head[: len(head) - unfinished(head)], tail[orphans(tail) :]
