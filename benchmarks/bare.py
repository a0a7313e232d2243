"""The yardsticks: the least that anybody could do to get the same bytes through a shell."""

from __future__ import annotations

import os
import subprocess
import tempfile

from shellkit.process.pipes import Pipe, pipe_source
from shellkit.protocol.base import Call, Endpoints, Link
from shellkit.protocol.bash import BashDialect
from shellkit.protocol.machine import Machine

__all__ = ["BASH", "BareBash", "BareEcho"]

BASH = ["bash", "--noprofile", "--norc"]


class BareBash:
    """A bash that is sent shellkit's own lines by a loop that blocks: no time-out, no cancelling, no limit.

    It reads the report and both streams, as a result needs them, and decodes nothing.
    """

    def __init__(self) -> None:
        import signal

        pipes = pipe_source()
        self._control = pipes.make()
        self._streams: tuple[Pipe, Pipe] = (pipes.make(), pipes.make())
        os.set_blocking(self._control.fd, True)
        with open(self._control.path, "wb", buffering=0) as control:
            self._process = subprocess.Popen(
                BASH, stdin=subprocess.PIPE, stdout=control, stderr=subprocess.DEVNULL, start_new_session=True
            )
        assert self._process.stdin is not None
        self._stdin = self._process.stdin.fileno()
        machine = Machine(BashDialect(), Link(b"0" * 24, self._control.path, signal.SIGRTMAX))
        os.write(self._stdin, machine.start(tempfile.gettempdir().encode()))
        machine.receive(self._report())
        call = Call(b"true", Endpoints(self._streams[0].path, self._streams[1].path))
        os.write(self._stdin, machine.begin(call))
        machine.receive(self._report())
        #: The line of a second call: the shell holds the wrapper by then.
        self._line = machine.begin(call)

    def run_true(self) -> None:
        """Run `true` and read what came of it."""
        os.write(self._stdin, self._line)
        self._report()
        for stream in self._streams:
            while os.read(stream.fd, 65536):
                pass

    def close(self) -> None:
        """End the shell and give everything back."""
        self._process.kill()
        self._process.communicate()
        for pipe in (self._control, *self._streams):
            pipe.close()

    def _report(self) -> bytes:
        data = b""
        while not data.endswith(b"\0"):
            data += os.read(self._control.fd, 65536)
        return data


class BareEcho:
    """A round trip of `echo` on a plain pipe to bash: the floor under everything."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(BASH, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()

    def run_echo(self) -> None:
        """Send `echo` and wait for its line."""
        os.write(self._stdin, b"echo\n")
        os.read(self._stdout, 64)

    def close(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.communicate()
