"""A wrong call gets a clear, typed error before anything runs, and harms nothing (A, B2, F5)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, ExecutorClosed, InvalidWorkdir, LocalExecutor, SpawnError

WRONG_CALLS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"timeout": 0}, ValueError, "timeout"),
    ({"timeout": -3}, ValueError, "timeout"),
    ({"timeout": "30"}, TypeError, "timeout"),
    ({"timeout": float("nan")}, ValueError, "timeout"),
    ({"workdir": "/nonexistent/zz"}, InvalidWorkdir, "/nonexistent/zz"),
    ({"workdir": "/etc/hostname"}, InvalidWorkdir, "not a directory"),
    ({"workdir": ""}, ValueError, "workdir"),
    ({"workdir": "a\0b"}, ValueError, "NUL"),
    ({"workdir": 7}, TypeError, "workdir"),
    ({"env": {"A": 1}}, TypeError, "env"),
    ({"env": {1: "a"}}, TypeError, "env"),
    ({"env": {"A=B": "c"}}, ValueError, "A=B"),
    ({"env": {"": "c"}}, ValueError, "name"),
    ({"env": {"1A": "c"}}, ValueError, "1A"),
    ({"env": {"A B": "c"}}, ValueError, "A B"),
    ({"env": {"A": "a\0b"}}, ValueError, "NUL"),
    ({"env": {"A": "\ud83d"}}, ValueError, "surrogate"),
    ({"env": ["A=b"]}, TypeError, "env"),
    ({"env": "A=b"}, TypeError, "env"),
    ({"input": 5}, TypeError, "input"),
    ({"input": ["a"]}, TypeError, "input"),
    ({"input": "\ud83d"}, ValueError, "surrogate"),
    ({"on_output": "print"}, TypeError, "on_output"),
    ({"bogus": 1}, TypeError, "bogus"),
]


@pytest.mark.parametrize(("options", "error", "says"), WRONG_CALLS)
def test_a_wrong_argument(
    either: BlockingExecutor, tmp_path: Path, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    """A: a wrong argument of `run` is a typed error that names it; nothing ran and the session is unharmed."""
    either.run("true")
    with pytest.raises(error, match=says):
        either.run("touch ran", **options)
    assert not (tmp_path / "ran").exists()
    result = either.run("echo ok; echo err >&2; (exit 3)")
    assert (result.stdout, result.stderr, result.exit_code, result.shell_state) == ("ok\n", "err\n", 3, "alive")


WRONG_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"mode": "interactive"}, ValueError, "mode"),
    ({"confinement": "sandbox"}, ValueError, "confinement"),
    ({"timeout": 0}, ValueError, "timeout"),
    ({"timeout": "5"}, TypeError, "timeout"),
    ({"grace": 0}, ValueError, "grace"),
    ({"grace": None}, TypeError, "grace"),
    ({"start_timeout": -1}, ValueError, "start_timeout"),
    ({"max_output_bytes": -1}, ValueError, "max_output_bytes"),
    ({"max_output_bytes": 1.5}, TypeError, "max_output_bytes"),
    ({"max_output_bytes": True}, TypeError, "max_output_bytes"),
    ({"env": {"A": 1}}, TypeError, "env"),
    ({"env": {"A=": "x"}}, ValueError, "A="),
    ({"keep_env": "PATH"}, TypeError, "keep_env"),
    ({"startup_commands": "cd /"}, TypeError, "startup_commands"),
    ({"startup_commands": [1]}, TypeError, "startup_commands"),
    ({"startup_commands": ["a\0b"]}, ValueError, "NUL"),
    ({"workdir": 5}, TypeError, "workdir"),
    ({"workdir": ""}, ValueError, "workdir"),
    ({"shell": "/nonexistent/bash"}, SpawnError, "/nonexistent/bash"),
    ({"shell": 5}, TypeError, "shell"),
    ({"colour": "red"}, TypeError, "colour"),
]


@pytest.mark.parametrize(("options", "error", "says"), WRONG_OPTIONS)
def test_a_wrong_option(options: dict[str, Any], error: type[Exception], says: str) -> None:
    """A: a wrong option is a typed error of the constructor that names it, before any process exists."""
    with pytest.raises(error, match=says):
        LocalExecutor(**options)


def test_options_are_keyword_only() -> None:
    """A: options are keyword-only, and so are those of `run`."""
    with pytest.raises(TypeError):
        LocalExecutor("stateless")  # type: ignore[misc]
    with pytest.raises(TypeError):
        LocalExecutor().sync().run("true", 5)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("cat", "did not answer"),
        ("sleep", "did not answer"),
        ("yes", "did not answer"),
        ("false", "exited during start"),
        ("true", "exited during start"),
    ],
)
def test_what_is_no_shell(program: str, says: str, mode: str) -> None:
    """A, F: a program that does not speak like a shell is a `SpawnError` in time, and leaves no process."""
    argv = [f"/bin/{program}", *(["3823.1"] if program == "sleep" else [])]
    blocking = LocalExecutor(mode=mode, shell=argv, start_timeout=0.5).sync()
    for _ in range(2):
        with pytest.raises(SpawnError, match=says):
            blocking.run("echo hi", timeout=5)
    blocking.close()


def test_a_closed_executor_says_so(mode: str) -> None:
    """A, G3: every method of a closed executor but `close` is `ExecutorClosed`, which names the remedy."""

    async def main() -> None:
        executor = LocalExecutor(mode=mode, shell="bash")
        await executor.run("true")
        await executor.close()
        for call in (executor.run("true"), executor.start(), executor.restart()):
            with pytest.raises(ExecutorClosed, match="make a new one"):
                await call
        await executor.close()

    asyncio.run(main())


def test_nothing_starts_before_it_is_needed(mode: str) -> None:
    """A: an executor that is only made starts nothing and needs no `close`."""
    for _ in range(50):
        LocalExecutor(mode=mode, shell="bash")


def test_raise_for_exit(either: BlockingExecutor) -> None:
    """A: `raise_for_exit` raises `CommandFailed` with the result for a failure and a time-out, else returns it."""
    from shellkit import CommandFailed

    good = either.run("true")
    assert good.raise_for_exit() is good
    for result in (either.run("echo why >&2; (exit 3)"), either.run("sleep 5", timeout=0.05)):
        with pytest.raises(CommandFailed) as failed:
            result.raise_for_exit()
        assert failed.value.result is result
