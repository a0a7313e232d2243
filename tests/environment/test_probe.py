"""Probing through an executor, remembering, and what a model is told (contract H1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from shellkit import LocalExecutor, ShellResult, SpawnError
from shellkit.environment import EnvironmentProbe, ShellEnvironment, probe
from shellkit.environment.scripts import check_tools


class Scripted:
    """An executor that answers from a list: a result's stdout, or an exception to raise."""

    def __init__(self, *answers: str | BaseException) -> None:
        self.answers = list(answers)
        self.commands: list[str] = []
        self.gate: asyncio.Event | None = None

    async def run(self, command: str, *, timeout: float | None = None) -> ShellResult:
        self.commands.append(command)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return ShellResult(command=command, stdout=answer, exit_code=0, workdir="/w")


ANSWER = "shellkit-probe shell - 0 5.2.15(1)-release\nshellkit-probe tool git 0 git version 2.39.5\n"


@pytest.mark.parametrize(
    "name", ["--help", "-x", "", "a b", "a;b", "$(id)", "../git", "/bin/git", "a\n", "é", ".git", "a'b"]
)
def test_wrong_names_never_reach_a_shell(name: str) -> None:
    """H1: the name of a tool is validated before anything runs."""
    executor = Scripted()
    with pytest.raises(ValueError, match="cannot be the name of a tool"):
        asyncio.run(probe(executor, "bash", tools=("git", name)))
    assert executor.commands == []


@pytest.mark.parametrize(
    ("tools", "error"), [("git", TypeError), ((1,), TypeError), ([f"t{n}" for n in range(65)], ValueError)]
)
def test_wrong_collections(tools: Any, error: type[Exception]) -> None:
    """H1: a string, another type and a flood of names are refused with the reason."""
    with pytest.raises(error):
        check_tools(tools)


@pytest.mark.parametrize(
    ("timeout", "error"), [(0, ValueError), (-1, ValueError), (float("nan"), ValueError), ("5", TypeError)]
)
def test_wrong_timeouts(timeout: Any, error: type[Exception]) -> None:
    """F5: a time-out that is none is refused before anything runs."""
    with pytest.raises(error):
        EnvironmentProbe(Scripted(), "bash", timeout=timeout)


def test_names_are_unique_but_for_case() -> None:
    """H1: a tool that is named twice is asked for once, by its first spelling."""
    executor = Scripted(ANSWER)
    found = asyncio.run(probe(executor, "bash", tools=("Git", "git", "GIT", "jq")))
    assert list(found.tools) == ["Git", "jq"]
    assert executor.commands[0].count("__sk_ask tool") == 2


# -- through an executor ---------------------------------------------------------------------------------


def test_one_command_for_everything() -> None:
    """H1: a probe is one round trip, and what an executor cannot ask for is taken from its arguments."""
    executor = Scripted(ANSWER)
    found = asyncio.run(probe(executor, "bash", mode="stateless", confinement="anchor", tools=("git",)))
    assert len(executor.commands) == 1
    assert (found.mode, found.confinement, found.workdir) == ("stateless", "anchor", "/w")
    assert (found.shell_version, found.tools) == ("5.2.15", {"git": "2.39.5"})


@pytest.mark.parametrize("error", [SpawnError("no shell"), TimeoutError(), OSError(5, "gone"), RuntimeError("bug")])
def test_failures_are_none(error: Exception) -> None:
    """H4: a probe that goes wrong, in whatever way, says nothing instead of raising."""
    found = asyncio.run(probe(Scripted(error), "dash", tools=("git",)))
    assert (found.answered, found.shell_version, found.tools, found.missing) == (False, None, {"git": None}, ())
    assert "Not installed" not in found.instructions()


def test_cancellation_is_no_failure() -> None:
    """H4: `CancelledError` passes through."""

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await probe(Scripted(asyncio.CancelledError()), "dash")

    asyncio.run(main())


@pytest.mark.parametrize("family", ["bash", pytest.param("dash", marks=pytest.mark.requires("dash"))])
def test_a_real_session(family: Any, mode: Any, tmp_path: Path) -> None:
    """H1: a session is probed, goes on with its state, and keeps no job of the probe."""

    async def main() -> None:
        async with LocalExecutor(shell=family, mode=mode, workdir=tmp_path) as shell:
            await shell.run("x=kept; mkdir -p sub; cd sub; (exit 5)")
            found = await probe(shell, family, mode=mode, tools=("sh", "nosuch"))
            assert (found.answered, found.missing) == (True, ("nosuch",))
            assert found.workdir == str(tmp_path / "sub" if mode == "persistent" else tmp_path)
            result = await shell.run('echo "$? ${x-gone} $(jobs)"')
            assert result.stdout == ("5 kept \n" if mode == "persistent" else "0 gone \n")
            assert (result.shell_state, result.background) == ("alive", ())

    asyncio.run(main())


@pytest.mark.slow
def test_nothing_of_a_tool_lives_on(tmp_path: Path, tool: Callable[[str, str], Path], sleeps: Any) -> None:
    """H1: the child of a hanging tool is ended, too, and the session is the same (slow: the tool's limit is 0.6 s)."""
    tool("forks", f"setsid sleep {sleeps()} & echo forks 1.0; wait")

    async def main() -> None:
        env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
        async with LocalExecutor(shell="bash", workdir=tmp_path, env=env) as shell:
            await shell.run("x=kept")
            found = await probe(shell, "bash", tools=("forks", "sh"), timeout=1.0)
            assert (found.answered, found.tools["forks"]) == (True, None)
            assert sleeps.left() == []
            assert (await shell.run("echo $x")).stdout == "kept\n"

    asyncio.run(main())


# -- remembering -----------------------------------------------------------------------------------------


def test_first_callers_share_one_probe() -> None:
    """H1: callers that come together cause one probe; later ones none."""
    executor = Scripted(ANSWER)
    asked = EnvironmentProbe(executor, "bash", tools=("git",))

    async def main() -> None:
        found = await asyncio.gather(*(asked.get() for _ in range(20)))
        assert all(one is found[0] for one in found)
        assert asked.known is found[0]

    asyncio.run(main())
    assert asyncio.run(asked.get()) is asked.known  # from another event loop
    assert len(executor.commands) == 1


def test_a_failed_probe_is_not_remembered() -> None:
    """H1: callers that waited share the failure; the next one asks again."""
    executor = Scripted(SpawnError("busy"), ANSWER)
    asked = EnvironmentProbe(executor, "bash")

    async def main() -> None:
        executor.gate = asyncio.Event()
        callers = [asyncio.create_task(asked.get()) for _ in range(5)]
        await asyncio.sleep(0)
        executor.gate.set()
        found = await asyncio.gather(*callers)
        assert [one.answered for one in found] == [False] * 5
        assert (len(executor.commands), asked.known) == (1, None)
        assert (await asked.get()).answered

    asyncio.run(main())


def test_a_cancelled_probe_is_not_remembered() -> None:
    """H1: the first caller is cancelled; the one that waited asks itself."""
    executor = Scripted(ANSWER)
    asked = EnvironmentProbe(executor, "bash")

    async def main() -> None:
        executor.gate = asyncio.Event()
        first, second = asyncio.create_task(asked.get()), asyncio.create_task(asked.get())
        await asyncio.sleep(0)
        first.cancel()
        executor.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await second).answered

    asyncio.run(main())
    assert len(executor.commands) == 2


def test_refresh_always_asks() -> None:
    """H1: `refresh` asks again; when nothing comes, what is remembered stays."""
    executor = Scripted(ANSWER, ANSWER.replace("2.39.5", "2.40.0"), SpawnError("gone"))
    asked = EnvironmentProbe(executor, "bash", tools=("git",))

    async def main() -> None:
        assert (await asked.get()).tools == {"git": "2.39.5"}
        assert (await asked.refresh()).tools == {"git": "2.40.0"}
        assert not (await asked.refresh()).answered
        assert (await asked.get()).tools == {"git": "2.40.0"}

    asyncio.run(main())


# -- what a model is told --------------------------------------------------------------------------------


def test_the_block() -> None:
    """H1: the block for a model is stable text."""
    found = asyncio.run(
        probe(Scripted(ANSWER + "shellkit-probe missing jq 127 \n"), "bash", tools=("git", "jq", "npm"))
    )
    found = attrs.evolve(found, os_name="Debian GNU/Linux", os_version="12", architecture="x86_64", user="ann")
    assert found.instructions() == (
        "Commands run in bash 5.2.15 on Debian GNU/Linux 12 (x86_64), as ann.\n"
        "- Working directory: /w\n"
        "- One shell runs all commands: variables, functions and options persist, and so does cd.\n"
        "- bash syntax works: [[ ]], arrays, <( ), <<<, {1..3}, ${x//a/b}, set -o pipefail.\n"
        "- A command's stdin is empty: nobody answers prompts, so pass flags such as -y.\n"
        "- End what shall keep running (a server) with &; the command then returns at once.\n"
        "- Available: git 2.39.5, npm\n"
        "- Not installed: jq"
    )


@pytest.mark.parametrize(
    ("mode", "confinement", "words"),
    [
        ("stateless", "off", "do not reach the next one"),
        ("persistent", "anchor", "so cd does not"),
        ("persistent", "root", "is brought back"),
    ],
)
def test_what_persists(mode: Any, confinement: Any, words: str) -> None:
    """H1, H5: a model is told whether cd and variables persist."""
    assert words in ShellEnvironment(family="bash", mode=mode, confinement=confinement).instructions()


def test_every_dialect_has_idioms() -> None:
    """H1: each family has a block of its own, of at most 12 lines."""
    families: tuple[Any, ...] = ("bash", "dash", "busybox", "zsh", "ksh", "mksh", "sh", "powershell", "cmd")
    blocks = [ShellEnvironment(family=family, shell_version="3.2.57").instructions() for family in families]
    assert len(set(blocks)) == len(families)
    assert all(3 <= block.count("\n") <= 11 and len(block) < 1500 for block in blocks)
    assert "no associative arrays" in blocks[0]


def test_a_value_is_json() -> None:
    """H1: the environment is a hashable value that JSON can carry, whatever the directory's bytes are."""

    class Odd(Scripted):
        async def run(self, command: str, *, timeout: float | None = None) -> ShellResult:
            return attrs.evolve(await super().run(command), workdir="/caf\udce9")

    found = asyncio.run(probe(Odd(ANSWER), "bash", tools=("git",)))
    assert json.loads(json.dumps(found.to_dict()).encode()) == found.to_dict()
    assert hash(found) == hash(attrs.evolve(found))
