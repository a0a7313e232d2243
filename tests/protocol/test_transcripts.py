"""One transcript a dialect: the machine talks to the real shell over pipes, with no session in between."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shellkit.protocol.base import Call, Endpoints, Link
from shellkit.protocol.dialects import dialect_for
from shellkit.protocol.events import CheckpointTaken, Event, Finished
from shellkit.protocol.machine import Machine
from shellkit.protocol.state import Checkpoint

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile"], "dash": ["dash"], "busybox": ["busybox", "sh"], "zsh": ["zsh", "-f"],
    "ksh": ["ksh93"], "mksh": ["mksh"], "sh": ["yash"],
}  # fmt: skip


class Conversation:
    """A shell on pipes and the machine that talks to it; commands write to two files."""

    def __init__(self, family: str, workdir: Path) -> None:
        self.workdir = workdir
        self._control, writer = os.pipe()
        dialect = dialect_for(family)
        number = int(getattr(signal, dialect.interrupt_signal))
        control = b"/proc/%d/fd/%d" % (os.getpid(), self._control)
        self.machine = Machine(dialect, Link(os.urandom(8).hex().encode(), control, number))
        self.process = subprocess.Popen(
            SHELLS[family], stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.DEVNULL, start_new_session=True
        )
        os.close(writer)
        self.endpoints = Endpoints(os.fsencode(workdir / "out"), os.fsencode(workdir / "err"))
        self.code = 0

    def tell(self, line: bytes, count: int = 1) -> list[Event]:
        """Send a line and return the next `count` events, fewer at the shell's end."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()
        events: list[Event] = []
        while len(events) < count:
            ready, _, _ = select.select([self._control], [], [], 10)
            assert ready, f"no answer, but {bytes(self.machine._received)!r}"
            data = os.read(self._control, 1 << 16)
            if not data:
                break
            events += self.machine.receive(data)
        return events

    def start(self) -> Event:
        """Make the shell ready."""
        return self.tell(self.machine.start(os.fsencode(self.workdir)))[0]

    def run(self, text: str, path: Path | None = None) -> tuple[int | None, str, str]:
        """Run a command and return (exit code, stdout, stderr)."""
        call = Call(text.encode(), self.endpoints, os.fsencode(path) if path else None, self.code)
        (event,) = self.tell(self.machine.begin(call))
        assert isinstance(event, Finished)
        self.code = event.exit_code or 0
        return event.exit_code, *((self.workdir / name).read_text() for name in ("out", "err"))

    def checkpoint(self) -> Checkpoint:
        """Have the idle shell print its state."""
        (event,) = self.tell(self.machine.checkpoint())
        assert isinstance(event, CheckpointTaken)
        return event.checkpoint

    def close(self) -> None:
        """Let the shell read end-of-file, and wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while os.read(self._control, 1 << 16):
            pass
        os.close(self._control)
        self.process.wait(10)


@pytest.fixture(params=[pytest.param(f, marks=pytest.mark.requires(a[0]), id=f) for f, a in SHELLS.items()])
def family(request: pytest.FixtureRequest) -> str:
    """Each dialect."""
    return str(request.param)


@pytest.fixture
def conversation(family: str, tmp_path: Path) -> Iterator[Conversation]:
    """A shell that is ready in a directory of its own."""
    talk = Conversation(family, tmp_path)
    assert talk.start() == Finished(0, os.fsencode(tmp_path))
    yield talk
    talk.close()


def test_a_transcript(conversation: Conversation, tmp_path: Path) -> None:
    """B, C: commands in, reports and separate streams out, `$?` carried over, long text by a file."""
    assert conversation.run("echo out; echo err >&2; (exit 3)") == (3, "out\n", "err\n")
    assert conversation.run("echo $?; cat; x='it''s'\n# end") == (0, "3\n", "")
    assert conversation.run("cd /; echo $x") == (0, "its\n", "")
    script = tmp_path / "script"
    for size in (10, 100_000):
        script.write_text("echo 'a b'\n" + "# comment\n" * size + 'echo "$x"')
        assert conversation.run(script.read_text(), script) == (0, "a b\nits\n", "")


def test_what_holds_for_one_command(conversation: Conversation) -> None:
    """A: workdir= and env= hold for one command; values, exports and unset names are what they were."""
    machine = conversation.machine
    link, dialect = machine.link, machine.dialect
    conversation.run("NEW=; unset NEW; PLAIN='p q'; export OUT='o\nx'")
    values = {"NEW": "n'n", "PLAIN": "changed", "OUT": None}
    assert conversation.tell(machine.send(dialect.arrange(link, b"/", values))) == [Finished(0, b"/")]
    shown = 'echo "${NEW-no} ${PLAIN-no} ${OUT-no} $PWD"; env | grep -c -e ^NEW= -e ^PLAIN= -e ^OUT='
    assert conversation.run(shown)[1] == "n'n changed no /\n2\n"
    back = os.fsencode(conversation.workdir)
    assert conversation.tell(machine.send(dialect.settle(link, back, list(values)))) == [Finished(0, back)]
    assert conversation.run(shown)[1] == f"no p q o\nx {conversation.workdir}\n1\n"


def test_a_directory_that_is_not_there(conversation: Conversation, tmp_path: Path) -> None:
    """D5: the shell says so and stays where it is."""
    machine = conversation.machine
    line = machine.send(machine.dialect.arrange(machine.link, b"/nonexistent", {}))
    assert conversation.tell(line) == [Finished(1, os.fsencode(tmp_path))]
    missing = Conversation(machine.dialect.family, tmp_path / "missing")
    event = missing.start()
    assert isinstance(event, Finished)
    assert event.exit_code
    missing.close()


def test_state_goes_from_one_shell_to_another(conversation: Conversation, family: str, tmp_path: Path) -> None:
    """D2, J2: what one shell prints, another takes back by a script, and prints the same."""
    conversation.run(
        "cd /; A='1\n\"2\"'; export B=\"it's\"; umask 027; alias q='echo q'; set -f; set -- x '' 'y\n#\nz'"
    )
    state = conversation.checkpoint()
    assert state.workdir == b"/"
    second = Conversation(family, tmp_path)
    second.start()
    script = tmp_path / "restore"
    script.write_bytes(second.machine.restore(state, ["B", "PATH", "HOME"]))
    line = second.machine.dialect.run_script(second.machine.link, os.fsencode(script))
    assert second.tell(second.machine.send(line)) == [Finished(0, b"/")]
    show = "echo \"$A|$B|$#|$1|$3\"; umask; alias q; case $- in *f*) echo f;; esac; env | grep '^B='"
    assert second.run(show) == conversation.run(show)
    again = second.checkpoint()
    same = [name for name in state.sections if name in ("workdir", "umask", "aliases", "options", "limits")]
    assert {name: again[name] for name in same} == {name: state[name] for name in same}
    assert [again[name] for name in again.sections if name.startswith("argument")] == [
        state[name] for name in state.sections if name.startswith("argument")
    ]
    second.close()


def test_a_shell_that_ends_prints_its_state_first(conversation: Conversation) -> None:
    """D2: `exit` within a command is preceded by the state on the control channel, and by no report."""
    call = Call(b"X=1; exec >/dev/full 2>&1; exit 7", conversation.endpoints)
    events = conversation.tell(conversation.machine.begin(call), count=2)
    assert [type(event) for event in events] == [CheckpointTaken]
    assert isinstance(events[0], CheckpointTaken)
    assert (
        b"X=1" in events[0].checkpoint["variables"]
        or b"X='1'" in events[0].checkpoint["variables"]
        or (b'X="1"' in events[0].checkpoint["variables"])
    )
    assert conversation.process.wait(10) == 7


@pytest.mark.parametrize("forcibly", [False, True])
def test_recovery_gives_the_wrapper_back(conversation: Conversation, forcibly: bool) -> None:
    """B4: a shell that lost the wrapper's functions gets them again, and reports."""
    machine = conversation.machine
    assert conversation.process.stdin is not None
    conversation.process.stdin.write(machine.send(b"unset -f __skt __skr __sks\n"))
    (event,) = conversation.tell(machine.recover(forcibly=forcibly))
    assert isinstance(event, Finished)
    assert conversation.run("echo on") == (0, "on\n", "")


def test_an_interrupt_ends_the_shell_with_its_state(conversation: Conversation) -> None:
    """F3: the private signal makes the shell abandon a loop, print its state and end."""
    machine = conversation.machine
    ready = conversation.workdir / "ready"
    os.mkfifo(ready)
    line = machine.begin(Call(b"X=1; : >ready; while :; do :; done; X=2", conversation.endpoints))
    assert conversation.process.stdin is not None
    conversation.process.stdin.write(line)
    conversation.process.stdin.flush()
    ready.read_bytes()
    conversation.process.send_signal(machine.link.interrupt)
    events = conversation.tell(b"", count=2)
    assert [type(event) for event in events] == [CheckpointTaken]
    assert conversation.process.wait(10) == 130


TEXTS = [
    (b"echo hello", False),
    (b"f() { :; }", True),
    (b"function f { :; }", True),
    (b". ./file", True),
    (b"true; . ./file", True),
    (b"eval x", True),
    (b"ls ./file", False),
    (b"cd ..; make", False),
    (b"true\n" * 100_000, True),  # longer than is worth a search
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
@pytest.mark.parametrize("name", sorted(SHELLS))
def test_what_may_define_a_function(name: str, text: bytes, expected: bool) -> None:
    """B4: only after a text that may hide a word of the wrapper is the shell asked."""
    if name != "bash" or len(text) < 100_000:
        assert dialect_for(name).may_shadow(text) is expected
