"""Spans follow OpenTelemetry's conventions, hold no secrets, and cost nothing without a provider (issue 3, H9)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from shellkit import ShellResult
from shellkit.telemetry import ToolSpan, tool_span

pytestmark = pytest.mark.requires("opentelemetry")


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Collect the spans of a provider that is set for this test only."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def only(exporter: Any) -> Any:
    [span] = exporter.get_finished_spans()
    return span


def result(**values: Any) -> ShellResult:
    return ShellResult(**{"command": "echo hunter2", "stdout": "hunter2", "exit_code": 0, **values})


def test_a_call(exporter: Any) -> None:
    """H9: name, kind and attributes are those of the "execute tool" span; a success sets no status."""
    with tool_span("run_shell", "call_1") as span:
        span.record(result())
        span.set("gen_ai.conversation.id", "c1")
    done = only(exporter)
    assert (done.name, done.kind.name, done.status.status_code.name) == ("execute_tool run_shell", "INTERNAL", "UNSET")
    assert dict(done.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "run_shell",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.conversation.id": "c1",
        "process.exit.code": 0,
        "shellkit.shell_state": "alive",
        "shellkit.truncated": False,
    }
    assert done.instrumentation_scope.name == "shellkit"


def test_without_a_call_id(exporter: Any) -> None:
    """H9: an id that is not known is left out."""
    with tool_span("run_shell"):
        pass
    assert "gen_ai.tool.call.id" not in only(exporter).attributes


@pytest.mark.parametrize(
    ("outcome", "is_error", "error_type"),
    [
        (result(exit_code=3), False, "shellkit.errors.CommandFailed"),
        (result(exit_code=124, timed_out=True), False, "timeout"),
        (result(exit_code=None), False, "shellkit.errors.CommandFailed"),
        (None, True, "shellkit.errors.ShellkitError"),
    ],
)
def test_errors(outcome: ShellResult | None, is_error: bool, error_type: str, exporter: Any) -> None:
    """H9: another exit code than 0, a time-out and a refusal are errors, each with its type."""
    with tool_span("run_shell") as span:
        span.record(outcome, is_error=is_error)
    done = only(exporter)
    assert (done.status.status_code.name, done.attributes["error.type"]) == ("ERROR", error_type)
    code = None if outcome is None else outcome.exit_code
    assert done.attributes.get("process.exit.code") == code


@pytest.mark.parametrize(
    ("error", "name"),
    [(ValueError("hunter2"), "ValueError"), (asyncio.CancelledError(), "asyncio.exceptions.CancelledError")],
)
def test_exceptions_pass(error: BaseException, name: str, exporter: Any) -> None:
    """H9: an exception ends the span with its type, and goes on."""
    with pytest.raises(type(error)), tool_span("run_shell"):
        raise error
    assert only(exporter).attributes["error.type"] == name


def test_nothing_of_command_and_output(exporter: Any) -> None:
    """H9: neither a command nor its output, nor the text of an exception, is in a span."""
    with pytest.raises(ValueError, match="hunter2"), tool_span("run_shell") as span:
        span.record(result(exit_code=1))
        raise ValueError("hunter2")
    assert "hunter2" not in only(exporter).to_json()


def test_it_is_the_current_span(exporter: Any) -> None:
    """H9: what a call traces itself, in its own task, hangs below its span, and calls side by side stay apart."""
    from opentelemetry import trace

    async def call(name: str) -> None:
        with tool_span(name):
            await asyncio.sleep(0)
            with trace.get_tracer("test").start_as_current_span(f"in {name}"):
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(call("a"), call("b"))

    asyncio.run(main())
    spans = {span.name: span for span in exporter.get_finished_spans()}
    for name in "ab":
        assert spans[f"in {name}"].parent.span_id == spans[f"execute_tool {name}"].context.span_id


def test_without_a_provider() -> None:
    """H9: a program that has set no provider gets a span that records nothing."""
    with tool_span("run_shell") as span:
        span.record(result())
        span.set("x", 1)
    assert type(span) is ToolSpan
    with pytest.raises(ValueError, match="on"), tool_span("run_shell"):
        raise ValueError("goes on")


def test_opentelemetry_is_not_imported() -> None:
    """K: neither importing shellkit nor a call imports opentelemetry."""
    code = (
        "import sys; from shellkit.telemetry import tool_span\n"
        "with tool_span('x') as span: span.record(None)\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
