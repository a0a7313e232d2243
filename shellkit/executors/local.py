"""`LocalExecutor`: a shell on this machine, as this user. Isolates nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..errors import ExecutorUnavailable, InvalidWorkdir
from ..policy.confinement import Confinement, ConfinementMode
from ..policy.environ import FilteredEnvironment, filter_environment, is_startup_hook
from ..process.local import LocalProcess
from ..process.pipes import PipeSource
from ..process.tree import Containment
from ..protocol.command import encode_command
from ..protocol.dialects import dialect_for
from ..resolver import Shell, resolve
from ..sessions.base import Mode, Session, SessionSettings
from ..sessions.persistent import PersistentSession
from ..sessions.stateless import StatelessSession
from ..sessions.turnstile import Turnstile
from . import options
from .base import Executor
from .host import LaunchCall
from .process_limits import ProcessLimits

if TYPE_CHECKING:
    from ..environment.base import ShellEnvironment
    from ..sessions.interactive import InteractiveSession, Pump, Sink
    from ..sessions.recording import Recorder

__all__ = ["LocalExecutor"]


class LocalExecutor(Executor):
    """Run commands in a shell on this machine (Linux 5.4 or later).

    Args:
        mode: "persistent" keeps one shell and its state from command to command; "stateless" gives every
            command a fresh shell.
        shell: name, path or argv list; None takes `SHELLKIT_SHELL`, then `AGENT_FRAMEWORK_SHELL`, then bash,
            then sh. See `shellkit.resolver.resolve`.
        workdir: where the shell starts; None is the current directory.
        confinement: "root" brings a command that ends outside `workdir` back, with a note; "anchor" starts
            every command in `workdir`; "off" does neither. None is "root" when `workdir` is given, else
            "off". It guides a model; it is no security boundary.
        env: variables over the inherited environment; None as a value removes.
        clean_env: inherit only PATH, HOME, LANG and their like.
        keep_env: names that are inherited although they look like secrets; `*` matches.
        startup_commands: run in every new shell, restarts included. One that fails is named in the notes.
        timeout: default time-out of a command in seconds; None for none.
        grace: seconds that ending a command, a job or the executor may take.
        start_timeout: seconds that a new shell may take to answer.
        max_output_bytes: bytes to keep of each stream: the head and the tail, half and half.
        spill_dir: directory, outside `workdir`, for the whole of what is larger; `read_output` reads it. It is made at
            the first need. None keeps no more than `max_output_bytes`.
        spill_limit: bytes of disk for that, from 1 MiB; the oldest output is removed first. One stream gets half of it;
            of a larger one its head, its newest part and samples of its middle stay.
        spill_retention: seconds that the files stay after `close`, for an executor with the same `spill_dir` to read;
            None removes them with it.
        record: a new file to record the session to, as it happens (asciicast version 2, `shellkit play`); each launched
            program has one of its own beside it, named session-1.cast beside session.cast.
        process_limits: how many launched programs are kept, and for how long; None for the defaults.

    Raises:
        SpawnError: no such shell. (At the first start: `InvalidWorkdir` for a missing directory.)
        InvalidWorkdir: `workdir` is relative to a directory of this process that was deleted.
        ExecutorUnavailable: this platform is not supported yet.
        TypeError, ValueError: an argument is wrong.
    """

    def __init__(
        self,
        *,
        mode: Mode = "persistent",
        shell: str | os.PathLike[str] | Sequence[str] | None = None,
        workdir: str | os.PathLike[str] | None = None,
        confinement: ConfinementMode | None = None,
        env: Mapping[str, str | None] | None = None,
        clean_env: bool = False,
        keep_env: Collection[str] = (),
        startup_commands: Sequence[str] = (),
        timeout: float | None = 30.0,
        grace: float = 2.0,
        start_timeout: float = 10.0,
        max_output_bytes: int = 65536,
        spill_dir: str | os.PathLike[str] | None = None,
        spill_limit: int = 1 << 30,
        spill_retention: float | None = None,
        record: str | os.PathLike[str] | None = None,
        process_limits: ProcessLimits | None = None,
    ) -> None:
        super().__init__(timeout=timeout, grace=grace, process_limits=process_limits)
        if sys.platform != "linux":
            raise ExecutorUnavailable(f"LocalExecutor needs Linux; this is {sys.platform}")
        if not os.path.exists("/proc/self/stat"):
            raise ExecutorUnavailable("LocalExecutor needs /proc; mount it (mount -t proc proc /proc)")
        self.mode = options.check_mode(mode)
        self.env = options.check_env(env)
        self.clean_env = bool(clean_env)
        self.keep_env = options.check_text_list("keep_env", keep_env)
        self.startup_commands = options.check_text_list("startup_commands", startup_commands)
        for command in self.startup_commands:
            encode_command(command)
        self.start_timeout = options.check_seconds("start_timeout", start_timeout)
        self.max_output_bytes = options.check_size("max_output_bytes", max_output_bytes)
        self.shell: Shell = resolve(shell, environ={**os.environ, **_present(self.env)})
        self._dialect = dialect_for(self.shell.family)
        mode_of_confinement = options.check_confinement(confinement, workdir_given=workdir is not None)
        self._workdir = _absolute(workdir)
        self._confinement = Confinement(mode_of_confinement, self._workdir, os.path.realpath)
        self._spills = options.check_spill(spill_dir, spill_limit, spill_retention, self._confinement)
        self._environment = _Environment(self.keep_env, self.clean_env, self.env)
        self._environment.encoded()  # a wrong name or value is an error here, not at the first command
        self._recorder: Recorder | None = None
        if record is not None:  # last, so that no other mistake leaves a file
            from ..sessions.recording import Recorder

            self._recorder = Recorder(record, title=" ".join(self.shell.persistent_argv))

    @property
    def confinement(self) -> Confinement:
        return self._confinement

    @property
    def base_workdir(self) -> bytes:
        return self._workdir

    @property
    def family(self) -> str:
        return self.shell.family

    def facts(self) -> ShellEnvironment:
        from ..environment.base import ShellEnvironment

        system = os.uname()
        return ShellEnvironment(
            family=self.shell.family,
            mode=self.mode,
            confinement=self._confinement.mode,
            kernel=f"{system.sysname} {system.release}",
            architecture=system.machine,
            workdir=self.workdir,
        )

    def environment(self) -> FilteredEnvironment:
        """Return the environment that a shell started now would get, and the names that were left out."""
        return self._environment.filtered()

    def make_session(self, turnstile: Turnstile) -> Session:
        argv = self.shell.persistent_argv if self.mode == "persistent" else self.shell.stateless_argv
        dialect = self._dialect
        settings = SessionSettings(
            dialect=dialect,
            spawn=partial(_spawn, argv, dialect.interrupt_signal),
            shell_name=" ".join(argv),
            environment=self._environment.encoded,
            workdir=self._workdir,
            confinement=self._confinement,
            startup_commands=self.startup_commands,
            grace=self.grace,
            start_timeout=self.start_timeout,
            max_output_bytes=self.max_output_bytes,
            spills=self._spills,
            recorder=self._recorder,
        )
        if self.mode == "persistent":
            return PersistentSession(settings, turnstile)
        return StatelessSession(settings, turnstile)

    def make_program(self, call: LaunchCall, pump: Pump, sinks: Sequence[Sink]) -> InteractiveSession:
        from ..sessions.interactive import InteractiveSession

        recorders = []
        if self._recorder is not None:
            recorders = [self._recorder.beside(rows=call.rows, columns=call.columns, title=call.command)]
        return InteractiveSession(
            (*self.shell.persistent_argv, "-c", call.command),
            tty=call.tty,
            workdir=call.workdir,
            env=self._environment.encoded(call.env),
            rows=call.rows,
            columns=call.columns,
            max_output_bytes=call.max_output_bytes,
            grace=self.grace,
            pump=pump,
            sinks=[*sinks, *recorders],
        )


class _Environment:
    """The environment of a new shell. Not a method of the executor: a session outlives a reference to that."""

    def __init__(self, keep: Collection[str], clean: bool, extra: Mapping[str, str | None]) -> None:
        self._keep = keep
        self._clean = clean
        self._extra = extra
        self._cached: tuple[dict[bytes, bytes], dict[bytes, bytes]] | None = None

    def filtered(self) -> FilteredEnvironment:
        """Return names and values as the caller reads them."""
        return filter_environment(os.environ, keep=self._keep, clean=self._clean, extra=self._extra)

    def encoded(self, own: Mapping[str, str | None] | None = None) -> dict[bytes, bytes]:
        """Return them as a shell gets them, with some of its own over them."""
        # Asked for with every new shell, and filtering costs some tenths of a millisecond.
        inherited = dict(os.environb)
        if self._cached is None or self._cached[0] != inherited:
            # What a shell starts by never reaches it, not even on request (contract H8).
            variables = {n: text for n, text in self.filtered().variables.items() if not is_startup_hook(n)}
            self._cached = (inherited, {os.fsencode(n): os.fsencode(text) for n, text in variables.items()})
        if not own:
            return self._cached[1]
        changed = {os.fsencode(name): text for name, text in own.items()}
        kept = {name: text for name, text in self._cached[1].items() if name not in changed}
        return kept | {name: os.fsencode(text) for name, text in changed.items() if text is not None}


def _spawn(
    argv: tuple[str, ...],
    interrupt_signal: str,
    env: Mapping[bytes, bytes],
    pipes: PipeSource,
    containment: Containment,
) -> LocalProcess:
    import signal

    return LocalProcess(argv, env, pipes, containment, int(getattr(signal, interrupt_signal)))


def _absolute(workdir: object) -> bytes:
    """Return the path without asking whether it exists: a missing one is an error of the first start."""
    if workdir is not None and not isinstance(workdir, (str, bytes, os.PathLike)):
        raise TypeError(f"workdir must be a path, not {type(workdir).__name__}")
    path = b"." if workdir is None else os.fsencode(workdir)
    if not path or b"\0" in path:
        raise ValueError("workdir must be a path without NUL, and not empty; leave it out for the current directory")
    path = os.path.expanduser(path)
    try:
        here = b"/" if os.path.isabs(path) else os.getcwdb()
    except FileNotFoundError as error:
        raise InvalidWorkdir(
            f"the current directory is gone ({error.strerror}); go to another, or name an absolute workdir"
        ) from error
    return os.path.normpath(os.path.join(here, path))


def _present(env: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in env.items() if value is not None}
