"""The in-band scanner against a simple model, and in-band framing with real shells over plain pipes."""

from __future__ import annotations

import os
import secrets
import selectors
import shutil
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shellkit.protocol.dialects import dialect_for
from shellkit.protocol.events import Channel, Finished, OutputReceived
from shellkit.protocol.machine import InBandMachine, ProtocolViolation
from shellkit.protocol.scanner import MarkerScanner

MARKER = b"abab-c"


def feed_all(chunks: list[bytes]) -> tuple[bytes, bytes | None]:
    """Return (output, report) of a stream that comes in these chunks and then ends."""
    scanner = MarkerScanner(MARKER)
    output = b"".join(scanner.feed(chunk) for chunk in chunks)
    return output + scanner.finish(), scanner.report


STREAMS = {
    b"abab-c 0 /x\0": (b"", b" 0 /x"),
    b"out\nabab-c 7 /a b\0": (b"out\n", b" 7 /a b"),
    b"no newlineabab-c 0 /\0later": (b"no newlinelater", b" 0 /"),
    b"abababab-c\0": (b"abab", b""),
    b"aba\0bab-ababab-c 1 \0": (b"aba\0bab-ab", b" 1 "),
    b"abab": (b"abab", None),
    b"x\xff\0y": (b"x\xff\0y", None),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_whole_byte_by_byte_and_cut_at_every_index(stream: bytes) -> None:
    """C2: output is exact, wherever the transport cuts it."""
    expected = STREAMS[stream]
    assert feed_all([stream]) == expected
    assert feed_all([stream[at : at + 1] for at in range(len(stream))]) == expected
    for cut in range(len(stream)):
        assert feed_all([stream[:cut], stream[cut:]]) == expected


@given(
    before=st.binary(max_size=40).filter(lambda data: MARKER not in data + MARKER[:-1]),
    report=st.binary(max_size=20).filter(lambda data: b"\0" not in data),
    after=st.binary(max_size=20),
    cuts=st.lists(st.integers(0, 90), max_size=6),
)
def test_against_a_model(before: bytes, report: bytes, after: bytes, cuts: list[int]) -> None:
    """C2: whatever surrounds a record, and however it is cut, output and report come apart as they went in."""
    stream = before + MARKER + report + b"\0" + after
    edges = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    output, found = feed_all(chunks)
    first = stream.index(MARKER)
    assert output == stream[:first] + after
    assert found == report


@pytest.mark.parametrize("marker", [b"", b"a\0b"])
def test_a_marker_must_be_findable(marker: bytes) -> None:
    """C2: a marker that could not be found is refused."""
    with pytest.raises(ValueError, match="marker"):
        MarkerScanner(marker)


class Conversation:
    """A real shell over three plain pipes, as ssh or `docker exec -i` would give them."""

    def __init__(self, family: str, argv: list[str]) -> None:
        self.machine = InBandMachine(dialect_for(family), lambda: secrets.token_hex(12).encode())
        self.process = subprocess.Popen(argv, stdin=-1, stdout=-1, stderr=-1, bufsize=0)
        self.selector = selectors.DefaultSelector()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.selector.register(self.process.stdout, selectors.EVENT_READ, Channel.STDOUT)
        self.selector.register(self.process.stderr, selectors.EVENT_READ, Channel.STDERR)

    def exchange(self, line: bytes) -> tuple[bytes, bytes, Finished]:
        """Send a line and collect (stdout, stderr, report)."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        output = {Channel.STDOUT: b"", Channel.STDERR: b""}
        while True:
            for key, _ in self.selector.select(10):
                for event in self.machine.receive(key.data, os.read(key.fd, 7)):
                    if isinstance(event, OutputReceived):
                        output[event.channel] += event.data
                    elif isinstance(event, Finished):
                        return output[Channel.STDOUT], output[Channel.STDERR], event

    def close(self) -> None:
        """End the shell."""
        self.process.kill()
        self.process.communicate()
        self.selector.close()


SHELLS = {
    "bash": ["bash", "--norc", "--noprofile"],
    "dash": ["dash"],
    "busybox": ["busybox", "sh"],
    "zsh": ["zsh", "-f"],
    "ksh": ["ksh93"],
    "mksh": ["mksh"],
}


@pytest.mark.parametrize("family", SHELLS)
def test_a_real_shell_over_plain_pipes(family: str) -> None:
    """B1, C1, C2, D1: in-band, output is exact on both streams, exit codes and directory are reported, stdin is empty."""
    argv = SHELLS[family]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    shell = Conversation(family, argv)
    try:
        begin = shell.machine.begin
        assert shell.exchange(shell.machine.start(b"/usr"))[2] == Finished(0, b"/usr")
        assert shell.exchange(begin(b"printf 'no newline'; printf err >&2")) == (
            b"no newline", b"err", Finished(0, b"/usr"),
        )  # fmt: skip
        assert shell.exchange(begin(b"cd /; (exit 9)"))[2] == Finished(9, b"/")
        assert shell.exchange(begin(b"echo $?", 9))[0] == b"9\n"
        assert shell.exchange(begin(b'cat; echo "it\'s"')) == (b"it's\n", b"", Finished(0, b"/"))
    finally:
        shell.close()


def test_order_is_enforced() -> None:
    """C2: a command cannot be begun before the shell is ready, nor two at a time."""
    machine = InBandMachine(dialect_for("bash"), lambda: b"m")
    with pytest.raises(ProtocolViolation):
        machine.begin(b"true")
