"""Live chunks of a stream as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shellkit.output.text import StreamDecoder


def decode(*chunks: bytes | bytearray | memoryview) -> str:
    decoder = StreamDecoder()
    return "".join(map(decoder.feed, chunks)) + decoder.finish()


CASES = [
    (b"", ""),
    (b"plain\n", "plain\n"),
    (b"a\0b\0", "a\0b\0"),
    ("äöü € 😀\n".encode(), "äöü € 😀\n"),
    (b"\xff", "\ufffd"),
    (b"a\xffb", "a\ufffdb"),
    (b"a\xe2\x82", "a\ufffd"),
    (b"a\xe2\x82b", "a\ufffdb"),
    (b"\xf0\x9f\x98", "\ufffd"),
    (b"\xc0\x80", "\ufffd\ufffd"),
    (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
    (b"\x80\x80a", "\ufffd\ufffda"),
    (b"\xef\xbb\xbfbom", "\ufeffbom"),
    (b"a\r\nb\rc", "a\r\nb\rc"),
]


@pytest.mark.parametrize(("data", "text"), CASES)
def test_decodes_wherever_the_chunks_are_cut(data: bytes, text: str) -> None:
    """C3: UTF-8 with replacement, incremental, NUL included: the cuts do not show."""
    assert decode(data) == text
    assert decode(*(data[i : i + 1] for i in range(len(data)))) == text
    for cut in range(len(data) + 1):
        assert decode(data[:cut], data[cut:]) == text
        assert decode(bytearray(data[:cut]), memoryview(data)[cut:]) == text


@given(chunks=st.lists(st.binary(max_size=8), max_size=8))
def test_equals_decoding_at_once(chunks: list[bytes]) -> None:
    """C3: the chunks joined are what decoding everything at once gives."""
    assert decode(*chunks) == b"".join(chunks).decode("utf-8", "replace")


def test_keeps_an_unfinished_character_back() -> None:
    """C4: live text is split on characters, never inside one."""
    decoder = StreamDecoder()
    assert [decoder.feed(bytes([byte])) for byte in "é😀".encode()] == ["", "é", "", "", "", "😀"]
    assert decoder.finish() == ""


def test_can_be_used_again_after_the_end() -> None:
    """C2: half a character at the end of one command is not put before the next one's output."""
    decoder = StreamDecoder()
    assert decoder.feed(b"a\xe2") == "a"
    assert decoder.finish() == "\ufffd"
    assert decoder.feed(b"\x82b") + decoder.finish() == "\ufffdb"
