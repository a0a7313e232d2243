"""How users call shellkit, for the type checker only: `mypy --strict` reads this file, nothing runs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, assert_type

from openai import AsyncOpenAI

from shellkit import (
    BackgroundJob,
    BlockingExecutor,
    BlockingJob,
    CommandFailed,
    Executor,
    ExecutorClosed,
    InteractiveSession,
    JobOutput,
    LocalExecutor,
    OutputPage,
    ProcessInfo,
    ProcessLimits,
    ProcessUpdate,
    Shell,
    ShellkitError,
    ShellResult,
    UnknownProcess,
    resolve,
)
from shellkit.adapters.openai_tools import Container
from shellkit.agent import (
    Agent,
    CallFinished,
    CallRequested,
    Event,
    HostedShell,
    Stopped,
    Transcript,
    Usage,
)
from shellkit.tool import Tool, ToolOutput


async def conversation() -> str:
    async with LocalExecutor() as shell:
        assert_type(shell, LocalExecutor)
        result = await shell.run("export GREETING=hi; cd src")
        assert_type(result, ShellResult)
        result = await shell.run("echo $GREETING from $PWD", timeout=10)
        await shell.run("make", timeout=None, workdir=Path("/src"), env={"CC": "clang", "CFLAGS": None})
        await shell.run("cat", input=b"bytes")
        await shell.run("cat", input="text", merge_stderr=True)
        await shell.run("make", on_output=lambda stream, text: print(stream, text))
        await shell.restart()
    return result.stdout


async def options(environ: Mapping[str, str | None]) -> None:
    executor = LocalExecutor(
        mode="stateless",
        shell=["bash", "--norc"],
        workdir="/src",
        confinement="anchor",
        env=environ,
        clean_env=True,
        keep_env=("GITHUB_TOKEN", "CI_*"),
        startup_commands=["source .venv/bin/activate"],
        timeout=None,
        grace=1,
        start_timeout=5.0,
        max_output_bytes=1 << 20,
        spill_dir=Path("/var/tmp/agent"),
        spill_limit=1 << 28,
        spill_retention=7 * 86400,
        record="session.cast",
    )
    await executor.start()
    await executor.close()


def blocking() -> None:
    with LocalExecutor().sync() as shell:
        assert_type(shell, BlockingExecutor)
        result = shell.run("uname -a", on_output=print)
        assert_type(result.stdout, str)
        assert_type(result.exit_code, int | None)
        assert_type(result.timed_out, bool)
        assert_type(result.workdir, str | None)
        assert_type(result.notes, tuple[str, ...])
        assert_type(result.background, tuple[BlockingJob, ...])
        assert_type(result.background[0].wait(timeout=1), JobOutput)
        assert_type(result.ok, bool)
        assert_type(result.for_model(), str)
        assert_type(result.to_dict(), dict[str, Any])
        assert_type(result.raise_for_exit(), ShellResult[BlockingJob])
        plain: ShellResult = result  # code that takes results takes these, too
        assert_type(plain.background, tuple[BackgroundJob, ...])


async def kept_output(shell: Executor, result: ShellResult) -> None:
    assert_type(result.stdout_ref, str | None)
    if result.stdout_ref is not None:
        page = await shell.read_output(result.stdout_ref, pattern="error", context=2)
        assert_type(page, OutputPage)
        assert_type(page.next_offset, int | None)
        assert_type(shell.sync().read_output(result.stdout_ref, lines=(1, 10)), OutputPage)
    assert_type(result.for_model(max_tokens=1000, count_tokens=len), str)


async def jobs(result: ShellResult) -> None:
    for job in result.background:
        assert_type(job.pids, tuple[int, ...])
        assert_type(job.running, bool)
        assert_type(await job.read(), JobOutput)
        assert_type(await job.wait(), JobOutput)
        await job.stop()


async def programs(executor: Executor) -> ProcessUpdate:
    update = await executor.launch("python3", tty=True, env={"A": None}, rows=30, yield_time=5, until="exit")
    assert_type(update.process_id, int | None)
    assert_type(update.exit_code, int | None)
    assert_type(update.notes, tuple[str, ...])
    assert_type(update.for_model(max_tokens=100), str)
    assert_type(executor.processes(), tuple[ProcessInfo, ...])
    assert_type((await executor.screen(1)).lines, tuple[str, ...])
    executor.resize(1, rows=30, columns=90)
    try:
        await executor.write(1, "exit()\n", until="exit", yield_time=10)
    except UnknownProcess:
        return await executor.stop(2)
    tools: tuple[Tool, ...] = executor.as_tools()
    assert_type([tool.name for tool in tools], list[str])
    for tool in executor.as_tools(approval="never", acknowledge_unsafe=True, typing="first", on_timeout="background"):
        assert_type(await tool.call({}), ToolOutput)
    LocalExecutor(process_limits=ProcessLimits(count=8, idle=None))
    return executor.sync().write(1)


async def interactive() -> None:
    async with InteractiveSession(["python3", "-q"], rows=24, columns=120) as python:
        assert_type(python, InteractiveSession)
        await python.write("6 * 7\n")
        assert_type((await python.expect([">>> ", re.compile("Error")], timeout=10)).before, str)
        assert_type(python.read().text, str)
        assert_type((await python.screen()).lines, tuple[str, ...])
        assert_type(python.waits_for_input, bool | None)
        assert_type(await python.wait(timeout=1), int | None)


async def errors(executor: Executor) -> ShellResult | None:
    try:
        return (await executor.run("make")).raise_for_exit()
    except CommandFailed as failed:
        return failed.result
    except ExecutorClosed as closed:
        return closed.result
    except ShellkitError:
        return None


def which_shell() -> tuple[str, ...]:
    shell = resolve("bash", environ={})
    assert_type(shell, Shell)
    return shell.persistent_argv


async def agent(client: AsyncOpenAI, executor: Executor) -> str:
    talk = Agent(client, "gpt-5", executor.as_tool(), api="chat", max_tokens=100_000, transcript=Transcript("talk"))
    async with aclosing(talk.run("what is slow here?")) as events:
        async for event in events:
            assert_type(event, Event)
            match event:
                case CallRequested(call_id=call_id, commands=commands):
                    assert_type(call_id, str)
                    assert_type(commands, tuple[str, ...])
                case CallFinished(output=output):
                    assert_type(output, ToolOutput)
                case Stopped(reason="error", error=error):
                    assert_type(error, str)
                    talk.stop()
    assert_type(talk.cancel(), bool)
    async with HostedShell(client, container=Container(memory_limit="4g")) as hosted:
        hosted_talk = Agent(client, "gpt-5", None, form="hosted", hosted=hosted)
        assert_type(hosted_talk.usage, Usage)
        return str([await hosted.read(file) for file in await hosted.files()])


def wrong_calls_are_errors(executor: Executor, result: ShellResult) -> None:
    executor.run(["ls", "-la"])  # type: ignore[arg-type, unused-coroutine]
    executor.run("ls", 5)  # type: ignore[call-arg, unused-coroutine]
    LocalExecutor(mode="interactive")  # type: ignore[arg-type]
    LocalExecutor(max_output_bytes="1")  # type: ignore[arg-type]
    result.stdout = "frozen"  # type: ignore[misc]
