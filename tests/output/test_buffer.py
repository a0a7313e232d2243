"""What is kept of a stream, checked against a model that keeps everything."""

from __future__ import annotations

import random
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shellkit.output.buffer import HeadTailBuffer

KIB = 1024


def read_into(buffer: HeadTailBuffer, data: bytes, size: int) -> None:
    """Feed `data` as a driver does, at most `size` bytes a read; what is reserved but not committed is spoilt."""
    while data:
        region = buffer.reserve()
        count = min(size, len(data), len(region))
        region[:] = b"\xff" * len(region)
        region[:count] = data[:count]
        buffer.commit(count)
        data = data[count:]


@cache
def is_unfinished(piece: bytes) -> bool:
    """Whether some bytes after `piece` would make it one character."""
    if piece[0] < 0xC2:
        return False
    edges = (0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF)
    for missing in (1, 2, 3):
        for rest in product(edges, repeat=missing):
            try:
                if len((piece + bytes(rest)).decode()) == 1:
                    return True
            except UnicodeDecodeError:
                continue
    return False


def model(data: bytes, limit: int) -> tuple[str, int]:
    """Return the text and the bytes omitted that a buffer must report for `data`."""
    if len(data) <= limit:
        return data.decode("utf-8", "replace"), 0
    head, tail = data[: limit // 2], data[len(data) - (limit - limit // 2) :]
    for size in (1, 2, 3):
        if len(head) >= size and is_unfinished(head[-size:]):
            head = head[:-size]
            break
    for _ in range(3):
        if tail and 0x80 <= tail[0] <= 0xBF:
            tail = tail[1:]
    omitted = len(data) - len(head) - len(tail)
    line_end = "\n" if head and not head.endswith(b"\n") else ""
    marker = f"{line_end}[... {omitted} bytes omitted ...]\n"
    return head.decode("utf-8", "replace") + marker + tail.decode("utf-8", "replace"), omitted


def check(buffer: HeadTailBuffer, data: bytes, limit: int) -> None:
    text, omitted = model(data, limit)
    assert buffer.text() == text
    assert buffer.omitted == omitted
    assert buffer.total == len(data)
    assert buffer.truncated == (len(data) > limit)


CASES = [
    # limit, stream, text
    (10, b"", ""),
    (10, b"0123456789", "0123456789"),
    (10, b"0123456789a", "01234\n[... 1 bytes omitted ...]\n6789a"),
    (5, b"0123456789", "01\n[... 5 bytes omitted ...]\n789"),
    (1, b"ab", "[... 1 bytes omitted ...]\nb"),
    (0, b"", ""),
    (0, b"abc", "[... 3 bytes omitted ...]\n"),
    (6, b"ab\ncdefghi", "ab\n[... 4 bytes omitted ...]\nghi"),
    (6, b"abc\ndefg\nhi", "abc\n[... 5 bytes omitted ...]\n\nhi"),
    (6, "äöü".encode(), "äöü"),
    (7, "äöüß".encode(), "ä\n[... 2 bytes omitted ...]\nüß"),
    (6, "äöüß".encode(), "ä\n[... 4 bytes omitted ...]\nß"),
    (8, "a😀b😀c".encode(), "a\n[... 9 bytes omitted ...]\nc"),
    (8, "€€€€€".encode(), "€\n[... 9 bytes omitted ...]\n€"),
    (8, b"\x80" * 20, "\ufffd" * 4 + "\n[... 15 bytes omitted ...]\n\ufffd"),
    (8, b"\xf0" * 20, "\ufffd" * 3 + "\n[... 13 bytes omitted ...]\n" + "\ufffd" * 4),
    (4, b"\xe2\x82" * 5, "[... 8 bytes omitted ...]\n\ufffd"),
    (9, b"a\0b\xffc\0d\0e", "a\0b\ufffdc\0d\0e"),
]


@pytest.mark.parametrize(("limit", "data", "text"), CASES)
def test_keeps_head_and_tail(limit: int, data: bytes, text: str) -> None:
    """E2: over the limit head and tail stay, cut at characters, and one line names the bytes left out."""
    for cut in range(len(data) + 1):
        appended, read = HeadTailBuffer(limit), HeadTailBuffer(limit)
        for part in (data[:cut], data[cut:]):
            appended.append(part)
            read_into(read, part, KIB)
        assert appended.text() == read.text() == text
        check(read, data, limit)
    one_by_one = HeadTailBuffer(limit)
    read_into(one_by_one, data, 1)
    assert one_by_one.text() == text
    check(one_by_one, data, limit)


@pytest.mark.parametrize("limit", [1, 2, 3, KIB, 64 * KIB, 300 * KIB])
@pytest.mark.parametrize("size", [KIB, 4 * KIB, 64 * KIB, 10**9])
def test_exactly_at_the_limit_is_untouched(limit: int, size: int) -> None:
    """E2: a stream as long as the limit is whole, one byte more is not."""
    data = random.Random(limit).randbytes(limit)
    buffer = HeadTailBuffer(limit)
    read_into(buffer, data, size)
    check(buffer, data, limit)
    assert not buffer.truncated
    buffer.append(b"x")
    check(buffer, data + b"x", limit)
    assert buffer.truncated


@settings(max_examples=60, deadline=None)
@given(
    limit=st.one_of(st.integers(0, 20), st.integers(0, 400 * KIB), st.sampled_from([64 * KIB, 64 * KIB + 1])),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["read", "append"]),
            st.one_of(st.integers(0, 300), st.integers(0, 200 * KIB), st.sampled_from([4 * KIB, 64 * KIB])),
            st.one_of(st.integers(1, 200 * KIB), st.just(10**9)),
        ),
        max_size=12,
    ),
    alphabet=st.sampled_from(["bytes", "text"]),
    seed=st.integers(0, 1000),
)
def test_equals_the_model(limit: int, steps: list[tuple[str, int, int]], alphabet: str, seed: int) -> None:
    """E2: however the stream arrives, the buffer keeps what a buffer of everything would cut to."""
    source = random.Random(seed)
    buffer, seen = HeadTailBuffer(limit), b""
    for how, length, size in steps:
        data = source.randbytes(length) if alphabet == "bytes" else ("aé€😀\n"[source.randrange(5)] * length).encode()
        if how == "append":
            buffer.append(data)
        else:
            read_into(buffer, data, max(size, length // 100))
        seen += data
        region = buffer.reserve()
        region[:] = b"?" * len(region)
        check(buffer, seen, limit)


@settings(max_examples=200, deadline=None)
@given(limit=st.integers(0, 40), data=st.binary(max_size=80), text=st.text(max_size=40), size=st.integers(1, 90))
def test_small_streams_equal_the_model(limit: int, data: bytes, text: str, size: int) -> None:
    """E2: the cut is right for any bytes and any characters."""
    for stream in (data, text.encode("utf-8", "replace")):
        buffer = HeadTailBuffer(limit)
        read_into(buffer, stream, size)
        check(buffer, stream, limit)


@pytest.mark.parametrize("limit", [0, 1, 64 * KIB, 3 * KIB * KIB])
def test_memory_and_regions_are_bounded(limit: int) -> None:
    """E1: the buffer holds at most its limit and 192 KiB, and a busy stream is read 64 to 128 KiB at a time."""
    buffer = HeadTailBuffer(limit)
    read_into(buffer, bytes(4 * KIB), 4 * KIB)
    for _ in range(200):
        region = buffer.reserve()
        assert 64 * KIB <= len(region) <= 128 * KIB
        assert region.contiguous
        assert not region.readonly
        buffer.commit(50_000)
    held = len(buffer._ring) + len(buffer._head)
    assert held <= limit + 192 * KIB
    assert buffer.total == 4 * KIB + 200 * 50_000


def test_a_quiet_stream_is_cheap() -> None:
    """E1: nothing is held before the first read, 4 KiB for a short stream, and 4 KiB at most after `clear`."""
    buffer = HeadTailBuffer(64 * KIB)
    assert len(buffer._ring) == 0
    read_into(buffer, b"hi\n", 10)
    assert len(buffer._ring) == 4 * KIB
    buffer.clear()
    assert len(buffer._ring) == 4 * KIB
    buffer.append(bytes(1000 * KIB))
    buffer.clear()
    assert len(buffer._ring) == 0


def test_clear_begins_a_new_stream() -> None:
    """C2: nothing of one command is left for the next."""
    buffer = HeadTailBuffer(10)
    buffer.append(b"x" * 1000 * KIB)
    buffer.clear()
    check(buffer, b"", 10)
    buffer.append(b"next")
    check(buffer, b"next", 10)


def test_a_region_may_outlive_the_ring() -> None:
    """E4: a driver that still holds an old region does not stop the buffer from growing."""
    buffer = HeadTailBuffer(64 * KIB)
    regions, seen = [], b""
    for number in range(20):
        region = buffer.reserve()
        region[:] = bytes([number]) * len(region)
        buffer.commit(len(region))
        seen += bytes(region)
        regions.append(region)
    check(buffer, seen, 64 * KIB)


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc"), memoryview(b"aXbXcX")[::2].tobytes()])
def test_appends_anything_bytes_like(data: bytes | bytearray | memoryview) -> None:
    """C2: in-band transports hand over slices, not only `bytes`."""
    buffer = HeadTailBuffer(10)
    buffer.append(data)
    assert buffer.text() == "abc"


@pytest.mark.parametrize("limit", ["1", 1.0, None, True])
def test_limit_must_be_an_int(limit: object) -> None:
    """E3: a limit that is no number of bytes is a `TypeError` that says so."""
    with pytest.raises(TypeError, match="must be an int"):
        HeadTailBuffer(limit)  # type: ignore[arg-type]  # the point of the test


def test_limit_must_not_be_negative() -> None:
    """E3: a negative limit is a `ValueError` that names the remedy."""
    with pytest.raises(ValueError, match="0 \\(keep nothing\\)"):
        HeadTailBuffer(-1)


def test_commit_needs_a_region() -> None:
    """C2: bytes that were never reserved cannot get into the output."""
    buffer = HeadTailBuffer(10)
    with pytest.raises(ValueError, match="reserve"):
        buffer.commit(1)
    size = len(buffer.reserve())
    for count in (-1, size + 1):
        with pytest.raises(ValueError, match="reserve"):
            buffer.commit(count)
    buffer.append(b"abc")
    with pytest.raises(ValueError, match="reserve"):
        buffer.commit(1)
    assert buffer.text() == "abc"
