"""A span for each call of the tool, as OpenTelemetry's conventions for generative AI have it. Called by the tool.

opentelemetry is never imported before the program has done so itself: who sets a tracer provider has imported it, and
without a provider there is nothing to record. Neither commands nor output go into a span, since both may hold secrets.

Names are those of the "execute tool" span (semantic conventions for generative AI, status: development); exit code and
what counts as an error, those of the conventions for command line programs.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .errors import CommandFailed, ShellkitError
from .result import ShellResult

if TYPE_CHECKING:
    from opentelemetry.trace import Span

__all__ = ["ToolSpan", "tool_span"]


class ToolSpan:
    """The span of one call, as a context manager. This one records nothing, and costs less than a microsecond."""

    __slots__ = ()

    def __enter__(self) -> ToolSpan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the span; an exception that passes through is recorded by its type."""

    def record(self, result: ShellResult | None, *, is_error: bool = False) -> None:
        """Record what came of the call.

        Args:
            result: what the command did; None if it did not run.
            is_error: whether the model is told that the call failed (refused, wrong arguments, no shell).
        """

    def set(self, name: str, value: str | bool | int | float) -> None:
        """Set an attribute of the caller's own."""


class _RecordingSpan(ToolSpan):
    __slots__ = ("_current", "_name", "_span")

    def __init__(self, name: str, call_id: str | None) -> None:
        self._name = name
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
        }
        if call_id is not None:
            attributes["gen_ai.tool.call.id"] = call_id
        from opentelemetry import trace

        from . import __version__

        # Of an exception the text may hold the command, so it is recorded by `__exit__` and not by opentelemetry.
        self._current = trace.get_tracer("shellkit", __version__).start_as_current_span(
            f"execute_tool {name}",
            kind=trace.SpanKind.INTERNAL,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        )

    def __enter__(self) -> ToolSpan:
        self._span: Span = self._current.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._fail(_type_name(kind))
        self._current.__exit__(kind, error, trace)

    def record(self, result: ShellResult | None, *, is_error: bool = False) -> None:
        if not self._span.is_recording():
            return
        if result is not None:
            if result.exit_code is not None:
                self._span.set_attribute("process.exit.code", result.exit_code)
            self._span.set_attribute("shellkit.shell_state", result.shell_state)
            self._span.set_attribute("shellkit.truncated", result.truncated)
        if result is not None and result.timed_out:
            self._fail("timeout")
        elif result is not None and not result.ok:
            self._fail(_type_name(CommandFailed))
        elif is_error:
            self._fail(_type_name(ShellkitError))

    def set(self, name: str, value: str | bool | int | float) -> None:
        self._span.set_attribute(name, value)

    def _fail(self, error_type: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR))


_NOTHING = ToolSpan()


def tool_span(name: str, call_id: str | None = None) -> ToolSpan:
    """Return the span for one call of a tool, the current span while its `with` block runs.

    Args:
        name: the tool's name.
        call_id: the model's id of the call, if there is one.
    """
    api = sys.modules.get("opentelemetry.trace")
    if api is None or isinstance(api.get_tracer_provider(), api.ProxyTracerProvider):
        return _NOTHING
    return _RecordingSpan(name, call_id)


def _type_name(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
