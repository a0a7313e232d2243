"""The shells that the tests of `test_shells*.py` run over, one test a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from shellkit import BlockingExecutor


@attrs.frozen
class Kind:
    """A shell and what is particular about it."""

    name: str
    argv: tuple[str, ...]
    syntax_error: int
    #: A syntax error, `set -u` and the like end the shell, and a new one gets its state.
    dies_of_errors: bool = False
    #: Text that makes an array `xs` of two, and text that prints it.
    array: str = ""
    prints_array: str = 'echo "${#xs[@]} ${xs[1]}"'

    def alone(self, command: str, workdir: Path) -> tuple[int, str]:
        """Return what the shell's own -c makes of a command: (exit code, stdout)."""
        done = subprocess.run([*self.argv, "-c", command], stdin=subprocess.DEVNULL, capture_output=True, cwd=workdir)
        return done.returncode, done.stdout.decode()


KINDS = {
    kind.name: kind
    for kind in (
        Kind("bash", ("bash", "--norc", "--noprofile"), 2, array="xs=(1 '2 3')"),
        Kind("dash", ("dash",), 2),
        Kind("busybox", ("busybox", "sh"), 2),
        Kind("yash", ("yash",), 2, dies_of_errors=True),
        Kind("zsh", ("zsh", "-f"), 1, array="xs=(1 '2 3')", prints_array='echo "${#xs} ${xs[2]}"'),
        Kind("ksh93", ("ksh93",), 3, array="xs=(1 '2 3')"),
        Kind("mksh", ("mksh",), 1, dies_of_errors=True, array="set -A xs 1 '2 3'"),
    )
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "shells(name, ...): the shells that a test with `kind` runs over; without it, all"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `kind` once a shell; one that is not here is skipped, or demanded (SHELLKIT_REQUIRE)."""
    if "kind" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("shells")
        names = marker.args if marker is not None else tuple(KINDS)
        params = [pytest.param(KINDS[name], marks=pytest.mark.requires(name), id=name) for name in names]
        metafunc.parametrize("kind", params)


@pytest.fixture
def shell(request: pytest.FixtureRequest, open_shell: Callable[..., BlockingExecutor]) -> BlockingExecutor:
    """A persistent session in `tmp_path`: on the shell that the test is about (`kind`), or else on bash."""
    kind = request.getfixturevalue("kind") if "kind" in request.fixturenames else KINDS["bash"]
    return open_shell(shell=kind.name)
