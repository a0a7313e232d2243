"""The state machine over a control channel: each record whole, byte by byte and cut anywhere gives the same events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import attrs
import pytest

from shellkit.protocol.base import Call, Endpoints, Link
from shellkit.protocol.dialects import DIALECTS, dialect_for
from shellkit.protocol.events import CheckpointTaken, Event, Finished
from shellkit.protocol.machine import Machine, ProtocolViolation, State
from shellkit.protocol.state import Checkpoint

LINK = Link(b"70ce17", b"/proc/1/fd/9", 64)
ENDPOINTS = Endpoints(b"/proc/1/fd/3", b"/proc/1/fd/5")
CALL = Call(b"true", ENDPOINTS)
STATE = b"70ce17 S \n#70ce17:flags\nhB\n#70ce17:workdir\n/tmp\n#70ce17:variables\nX='#70ce18:no\n#:no\n'"
SECTIONS = {"flags": b"hB", "workdir": b"/tmp", "variables": b"X='#70ce18:no\n#:no\n'"}


def idle(family: str = "bash") -> Machine:
    """Return a machine whose shell has just reported that it is ready."""
    machine = Machine(dialect_for(family), LINK)
    machine.start(b"/tmp")
    assert machine.receive(b"70ce17 E 0 /tmp\0") == [Finished(0, b"/tmp")]
    return machine


def running(family: str = "bash") -> Machine:
    """Return a machine whose shell runs a command."""
    machine = idle(family)
    machine.begin(CALL)
    return machine


RECORDS: list[tuple[bytes, list[Event]]] = [
    (b"70ce17 E 0 /tmp\0", [Finished(0, b"/tmp")]),
    (b"70ce17 E 255 \0", [Finished(255, b"")]),
    (b"70ce17 E  /a b\nc\0", [Finished(None, b"/a b\nc")]),
    (b"70ce17 E 1 /\xff\xfe\0", [Finished(1, b"/\xff\xfe")]),
    (b"noise of a DEBUG trap\n70ce17 E 3 /tmp\0", [Finished(3, b"/tmp")]),
    (b"a NUL in noise\0 and more\n70ce17 E 3 /tmp\0", [Finished(3, b"/tmp")]),
    (b"printf '%s\\0' \"70ce17 E $__skq ${PWD-}\"\n70ce17 E 4 /tmp\0", [Finished(4, b"/tmp")]),
    (b"70ce16 E 0 /tmp\0", []),
    (b"70ce17 X 0 /tmp\0", []),
    (b"", []),
    (STATE + b"\0", [CheckpointTaken(Checkpoint("bash", SECTIONS))]),
    (
        b"noise\n" + STATE + b"\0" + b"70ce17 E 0 /\0",
        [CheckpointTaken(Checkpoint("bash", SECTIONS)), Finished(0, b"/")],
    ),
    (b"70ce17 E 0 /\0" + STATE + b"\0", [Finished(0, b"/"), CheckpointTaken(Checkpoint("bash", SECTIONS))]),
]


def pieces(data: bytes) -> Iterator[list[bytes]]:
    """Yield every way of feeding that a rule is tried with."""
    yield [data]
    yield [data[index : index + 1] for index in range(len(data))]
    for cut in range(1, len(data)):
        yield [data[:cut], data[cut:]]


@pytest.mark.parametrize(("data", "expected"), RECORDS)
def test_records_give_the_same_events_however_they_arrive(data: bytes, expected: list[Event]) -> None:
    """C2: a report is recognised whole, byte by byte and cut at every index; noise before it is not."""
    for parts in pieces(data):
        machine = running()
        assert [event for part in parts for event in machine.receive(part)] == expected, parts


def test_a_report_makes_the_machine_idle_and_a_checkpoint_while_running_does_not() -> None:
    """D2: a shell that prints its state within a command is about to end; it is not idle."""
    machine = running()
    machine.receive(STATE + b"\0")
    assert machine.state is State.RUNNING
    machine.receive(b"70ce17 E 0 /\0")
    assert machine.state is State.IDLE
    machine.checkpoint()
    assert machine.state is State.PRINTING
    machine.receive(STATE + b"\0")
    assert machine.state is State.IDLE


def test_noise_is_taken_once() -> None:
    """B4: what came without a report is handed out, and belongs to no later one."""
    machine = running()
    machine.receive(b"eval: no such thing\n")
    assert machine.take_noise() == b"eval: no such thing\n"
    assert machine.take_noise() == b""
    assert machine.receive(b"70ce17 E 0 /\0") == [Finished(0, b"/")]


VIOLATIONS: list[tuple[str, Callable[[Machine], object]]] = [
    ("begin", lambda machine: machine.begin(CALL)),
    ("checkpoint", lambda machine: machine.checkpoint()),
    ("send", lambda machine: machine.send(b"")),
    ("start", lambda machine: machine.start(b"/")),
]


@pytest.mark.parametrize(("name", "act"), VIOLATIONS)
def test_an_intention_at_the_wrong_time_is_refused(name: str, act: Callable[[Machine], object]) -> None:
    """G1: two lines never run at once; asking for it is a fault in shellkit, said at once."""
    machine = running()
    with pytest.raises(ProtocolViolation, match="running"):
        act(machine)
    machine.shell_ended()
    assert machine.state is State.ENDED
    with pytest.raises(ProtocolViolation, match="ended"):
        act(machine)


def test_the_wrapper_is_sent_once_for_the_same_streams() -> None:
    """K: the part of a line that stays the same is sent once, and anew for other streams or after a recovery."""
    machine = idle()
    wrapper = machine.dialect.wrapper(LINK, ENDPOINTS).split(b";")[0]
    assert b"__skl=" in machine.begin(CALL)
    machine.receive(b"70ce17 E 0 /\0")
    assert wrapper not in machine.begin(CALL)
    machine.receive(b"70ce17 E 0 /\0")
    other = attrs.evolve(CALL, endpoints=attrs.evolve(ENDPOINTS, stderr=None))
    assert b"__skl=" in machine.begin(other)
    machine.recover(forcibly=False)
    machine.receive(b"70ce17 E 0 /\0")
    assert b"__skl=" in machine.begin(other)


SHADOWED = [(family, word) for family in sorted(DIALECTS) for word in sorted(dialect_for(family).watched)]


@pytest.mark.parametrize(("family", "word"), SHADOWED)
def test_a_reported_shadowed_word_is_gone_round(family: str, word: bytes) -> None:
    """B4: a word that the trailer reports as hidden no longer stands in the next line; the functions come anew."""
    machine = idle(family)
    machine.watch(b"true")
    assert machine.receive(word + b"\n70ce17 E 0 /\0") == [Finished(0, b"/")]
    assert machine.link.shadowed == {word}
    line = machine.begin(CALL)
    assert b"__skt()" in line
    assert b"\\" + word + b" \\" not in line
    machine.receive(b"70ce17 E 0 /\0")
    assert b"__skt()" not in machine.begin(CALL)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"printf() { :; }", {b"printf"}),
        (b"true; printf  ( ) (:)", {b"printf"}),
        (b"function printf { :; }", {b"printf"}),
        (b"function  eval() { :; }\ncommand(){ :; }", {b"eval", b"command"}),
        (b"my_printf() { :; }; printf x", set()),
        (b"echo printf", set()),
        (b"()", set()),
    ],
)
def test_what_a_text_defines_counts_as_hidden_before_the_question(text: bytes, names: set[bytes]) -> None:
    """B4: the question whether a word is hidden must not go through a word that the text itself has hidden."""
    machine = idle()
    machine.watch(text)
    assert machine.link.shadowed == names


@pytest.mark.parametrize("text", [b"x" * 1_000_000, b"x " * 500_000, b"function " * 100_000, b"() " * 300_000])
def test_the_search_for_definitions_is_linear(text: bytes) -> None:
    """B3: a megabyte of one word is looked through in far less than a second."""
    machine = idle()
    started = time.process_time()
    machine.watch(text)
    assert time.process_time() - started < 5.0
