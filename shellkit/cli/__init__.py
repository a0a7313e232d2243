"""The `shellkit` command. One file a sub-command; this one only puts them together.

The entry point of the package and of `python -m shellkit`. `import shellkit` must never load it: click and rich
cost more than the rest of the library.
"""

from __future__ import annotations

import os
import sys

import click

from .. import __version__
from .agent import agent
from .audit import audit
from .demo import demo
from .doctor import doctor
from .output import OutputClosed, Stdout
from .play import play
from .policy import policy
from .ps import ps
from .repl import repl
from .run import run

__all__ = ["main"]


def main() -> None:
    """Do what the command line says, and exit."""
    _open_standard_streams()
    try:
        _shellkit(prog_name="shellkit")
    except OutputClosed as closed:
        sys.exit(closed.exit_code)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="shellkit")
def _shellkit() -> None:
    """A shell session that never wedges: run commands, talk to it, see what this machine offers."""


def _open_standard_streams() -> None:
    """Open what the caller has closed, so that no file of ours gets its number and what we print with it.

    What Python prints to stdout fails in one way then, as what commands print does.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115  (as long as the process)
    sys.stdout = Stdout.open()


for _command in (run, repl, agent, ps, play, policy, audit, doctor, demo):
    _shellkit.add_command(_command)
