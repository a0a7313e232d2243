"""The command as a whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]


def test_help_lists_the_commands(shellkit: Shellkit) -> None:
    """`shellkit --help` names every sub-command."""
    done = shellkit("--help")
    assert done.returncode == 0
    for name in ("run", "repl", "policy", "audit", "doctor", "demo"):
        assert f"\n  {name} " in done.stdout


def test_version(shellkit: Shellkit) -> None:
    """`shellkit --version` is the package's."""
    import shellkit as package

    assert package.__version__ in shellkit("--version").stdout


def test_unknown_command(shellkit: Shellkit) -> None:
    """A command that there is not is a usage error."""
    assert shellkit("no-such-command").returncode == 2


def test_import_loads_no_command_line() -> None:
    """`import shellkit` loads neither click nor rich, nor the command line, nor the test suite."""
    code = "import shellkit, sys; print([n for n in sys.modules if n.split('.')[0] in ('click', 'rich', 'pytest')"
    code += " or n.startswith(('shellkit.cli', 'shellkit.testing'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=Path(__file__).parents[2], text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
