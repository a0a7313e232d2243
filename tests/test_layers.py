"""The layers of the package hold: a line may import the lines above it and its own package."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import shellkit

PACKAGE = Path(shellkit.__file__).parent
LAYERS = [
    {"errors"},
    {"protocol", "output", "policy"},
    {"result", "process", "resolver"},
    {"sessions"},
    {"environment", "audit", "telemetry"},
    {"tool"},
    {"executors"},
    {"adapters", "testing"},
    {"agent"},
    {"cli"},
    {"__main__"},
]
PURE = LAYERS[1]
SYSTEM = {"asyncio", "os", "subprocess", "signal", "socket", "time", "pathlib", "threading", "select"}
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of a module, late ones included, but for those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        yield from imports(node)


def modules(node: ast.Import | ast.ImportFrom, package: list[str]) -> list[list[str]]:
    """Return what an import names, as absolute dotted names."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".") for alias in node.names]
    base = package[: len(package) - node.level + 1] if node.level else []
    base += node.module.split(".") if node.module else []
    return [[*base, alias.name] for alias in node.names] if base == ["shellkit"] else [base]


def violations(source: str, path: Path) -> list[str]:
    """Return what a module at `path` (below the package) imports against the rule."""
    package = ["shellkit", *path.parent.parts]
    own = path.parts[0].removesuffix(".py")
    found = []
    for node in imports(ast.parse(source)):
        for name in modules(node, package):
            if name[0] in SYSTEM and own in PURE:
                found.append(f"{path}:{node.lineno} pure, imports {name[0]}")
            if name[0] == "shellkit" and own != "__init__":
                unit = name[1] if len(name) > 1 else ""
                if unit not in (own, "__version__") and LEVEL.get(unit, 99) >= LEVEL[own]:
                    found.append(f"{path}:{node.lineno} imports {'.'.join(name)}")
    return found


def test_every_module_keeps_to_its_layer() -> None:
    """Architecture, layers: no module imports sideways or upwards, and the pure ones touch no system."""
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    assert [line for path in paths for line in violations((PACKAGE / path).read_text(), path)] == []


@pytest.mark.parametrize(
    ("path", "source", "wrong"),
    [
        ("protocol/machine.py", "import os", True),
        ("policy/base.py", "def f():\n    from time import sleep", True),
        ("output/text.py", "import os.path as p", True),
        ("output/text.py", "from ..protocol import base", True),
        ("protocol/machine.py", "from .base import Dialect", False),
        ("process/local.py", "from ..sessions.base import Session", True),
        ("process/local.py", "from .. import executors", True),
        ("process/local.py", "import os\nfrom ..errors import SpawnError", False),
        ("sessions/base.py", "import shellkit.executors.local", True),
        (
            "result.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .sessions.jobs import BackgroundJob",
            False,
        ),
        ("result.py", "from .sessions.jobs import BackgroundJob", True),
        ("executors/base.py", "from ..tool.base import ShellTool", False),
    ],
)
def test_the_check_sees_what_it_must(path: str, source: str, wrong: bool) -> None:
    """Architecture, layers: the check refuses each kind of wrong import, and only those."""
    assert bool(violations(source, Path(path))) is wrong


def test_importing_is_light() -> None:
    """K: `import shellkit` loads no framework, terminal or tree-sitter library."""
    heavy = (
        "openai pyte h11 pydantic pexpect psutil pyte tree_sitter tree_sitter_bash click rich anyio ptyprocess wcwidth"
    )
    script = f"import shellkit, sys; print(sorted(set({heavy.split()!r}) & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    assert answer.stdout == "[]\n"
