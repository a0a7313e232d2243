"""What `import shellkit` costs beyond `import asyncio`, and what it must not load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .measure import Row, alternate, report

#: Loaded when they are used, never before.
_LATE = ("openai", "pexpect", "ptyprocess", "psutil", "tree_sitter", "tree_sitter_bash", "click", "rich", "anyio")
_FRAMEWORKS = ("anthropic", "langchain", "langchain_core", "pydantic_ai", "agents", "agent_framework", "mcp")


def _python(code: str) -> str:
    root = Path(__file__).parents[1]
    return subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout


def _seconds_to_import(name: str) -> float:
    return float(_python(f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"))


def main() -> bool:
    """Measure and report."""
    candidates = {name: lambda name=name: _seconds_to_import(name) for name in ("shellkit", "asyncio")}
    times = alternate(candidates, calls=5)
    code = f"import sys, shellkit; print(*sorted(set(sys.modules) & set({(*_LATE, *_FRAMEWORKS)!r})))"
    loaded = _python(code).split()
    rows = [
        Row(
            what="import shellkit",
            yardstick="import asyncio",
            value=(times.median("shellkit") - times.median("asyncio")) * 1e3,
            unit="ms",
            bound=60.0,
            aim=30.0,
            detail=", ".join(f"{name} {times.median(name) * 1e3:.0f} ms" for name in candidates),
        ),
        Row(
            what="modules that must load late",
            yardstick="none loaded",
            value=float(len(loaded)),
            unit="loaded",
            bound=0.0,
            detail=", ".join(loaded),
        ),
    ]
    return report("import_time", rows)


if __name__ == "__main__":
    sys.exit(not main())
