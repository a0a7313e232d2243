"""`ShellResult`: what one command did, as a value. Built by sessions, read by callers and tools.

It never touches the system, and everything in it can be put into JSON, whatever the bytes were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Self

import attrs

from .errors import CommandFailed
from .output.ansi import clean
from .output.tokens import TokenCounter, estimate_tokens, truncate_tokens

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from .sessions.jobs import BackgroundJob

    #: Which twin of a job a result holds: `BackgroundJob`, or the `BlockingJob` of `executor.sync()`.
    Job = TypeVar("Job", bound=BackgroundJob, covariant=True, default=BackgroundJob)
else:
    from typing import TypeVar

    Job = TypeVar("Job", covariant=True)  # no default before Python 3.13, and only a type checker needs it

__all__ = ["ShellResult", "ShellState"]

ShellState = Literal["alive", "restored", "restarted"]


@attrs.frozen(kw_only=True)
class ShellResult(Generic[Job]):
    """What one command printed, how it ended and where it left the shell.

    Attributes:
        command: the text as it was given to the shell.
        stdout: decoded output (UTF-8, undecodable bytes as U+FFFD), exact but for the limit.
        stderr: the same for standard error; empty under `merge_stderr`.
        exit_code: 0-255; a signal is 128+n, a time-out 124; None only if it did not run, runs on in the background
            (`on_timeout="background"`), or nobody can know.
        timed_out: whether the command's time was over before it had ended.
        duration: seconds from the start of the command, queueing excluded.
        workdir: where the shell stands afterwards, or None if unknown.
        truncated: whether output was left out of `stdout` or `stderr`.
        stdout_omitted: bytes left out of `stdout`.
        stderr_omitted: bytes left out of `stderr`.
        shell_state: "alive"; "restored" (a new shell with the state of the old one);
            "restarted" (a new shell, the state is gone).
        notes: what a model must be told, each with the remedy.
        stdout_ref: opaque reference to the whole output, for `executor.read_output`.
        stderr_ref: the same for standard error.
        background: the job that the command left running, if any (at most one per command).
        process_id: for `executor.write` and the rest, if the command outlived its time-out and runs on.
    """

    command: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    duration: float = 0.0
    workdir: str | None = None
    truncated: bool = False
    stdout_omitted: int = 0
    stderr_omitted: int = 0
    shell_state: ShellState = "alive"
    notes: tuple[str, ...] = ()
    stdout_ref: str | None = None
    stderr_ref: str | None = None
    background: tuple[Job, ...] = attrs.field(default=(), eq=False)
    process_id: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the command ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out

    def raise_for_exit(self) -> Self:
        """Return self if `ok`.

        Raises:
            CommandFailed: the command ended with another exit code, or ran out of time.
        """
        if self.ok:
            return self
        how = "timed out" if self.timed_out else f"ended with exit code {self.exit_code}"
        last = (self.stderr or self.stdout).strip()[-500:]
        raise CommandFailed(f"command {how}: {self.command[:200]!r}" + (f"\n{last}" if last else ""), self)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a model must be told beside the output, a line each: where more of it is, what still runs, the notes."""
        refs = (("stdout", self.stdout_ref), ("stderr", self.stderr_ref))
        lines = [f"[more of {stream}: read_output, ref {ref}]" for stream, ref in refs if ref]
        if self.process_id is not None:
            lines.append(f"[still running, session_id {self.process_id}]")
        else:
            lines += [_still_runs(job.pids) for job in self.background if job.running]
        lines += [f"[note: {note}]" for note in self.notes]
        return tuple(map(_encodable, lines))

    def for_model(self, *, max_tokens: int | None = None, count_tokens: TokenCounter = estimate_tokens) -> str:
        """Return the result as text for a model: cleaned output, then how the command ended.

        ANSI sequences are stripped, carriage-return progress bars and backspaces resolved; `stdout` and
        `stderr` themselves stay raw (contract E6). A silent command says so, with its exit code.

        Args:
            max_tokens: about the most that the text may have; None for no limit. Output is cut in its middle, stderr
                to no less than half of the room if it needs as much; how the command ended and the notes stay.
            count_tokens: how to count; `shellkit.output.tokens.tokenizer` gives a model's own.
        """
        ending = self._ending()
        stdout, stderr = clean(self.stdout), clean(self.stderr)
        if max_tokens is not None:
            room = max(0, max_tokens - sum(count_tokens(line + "\n") for line in ending))
            stdout, stderr = _fitted(stdout, stderr, room, count_tokens)
        parts = []
        if stdout:
            parts.append(stdout.removesuffix("\n"))
        if stderr:
            parts.append("[stderr]\n" + stderr.removesuffix("\n"))
        if not parts:
            parts.append("[no output]")
        return _encodable("\n".join(parts + ending))

    def _ending(self) -> list[str]:
        if self.exit_code is not None:
            ended = f"exit code {self.exit_code}" + (", timed out" if self.timed_out else "")
        else:
            ended = "not ended yet" if self.timed_out else "exit code unknown"
        where = "" if self.workdir is None else f", in {self.workdir}"
        return [f"[{ended}, {self.duration:.2f} s{where}]", *self.remarks]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `json.dumps(..., allow_nan=False)` and UTF-8 accept, whatever the bytes."""
        values = {name: _json_safe(getattr(self, name)) for name in (field.name for field in attrs.fields(ShellResult))}
        values["background"] = [{"pids": list(job.pids), "running": job.running} for job in self.background]
        return values


def _fitted(stdout: str, stderr: str, room: int, count: TokenCounter) -> tuple[str, str]:
    """Return both, cut to `room` tokens in all: each may have half, and what the other leaves of its half."""
    wanted = [count(stdout), count(stderr)]
    if sum(wanted) <= room:
        return stdout, stderr
    for_stderr = min(wanted[1], max(room // 2, room - wanted[0]))
    return truncate_tokens(stdout, room - for_stderr, count), truncate_tokens(stderr, for_stderr, count)


def _still_runs(pids: tuple[int, ...]) -> str:
    named = " ".join(map(str, pids[:8]))
    more = f" and {len(pids) - 8} more" if len(pids) > 8 else ""
    return f"[still running in the background: pid {named}{more}; what it writes from now on is not shown]"


def _encodable(text: str) -> str:
    # A directory name may hold bytes that are not UTF-8; they live in `str` as lone surrogates (PEP 383),
    # which JSON text in UTF-8 cannot carry.
    return text.encode("utf-8", "replace").decode("utf-8")


def _json_safe(value: Any) -> Any:
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, tuple):
        return [_json_safe(item) for item in value]
    return value
