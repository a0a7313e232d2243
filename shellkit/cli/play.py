"""`shellkit play`: a recorded session in the terminal, at the pace it had."""

from __future__ import annotations

import os
import sys
import time
from typing import BinaryIO

import click

from ..output.asciicast import OUTPUT, Header, parse_event, parse_header
from .options import INTERRUPTED
from .output import OutputClosed, note, write

__all__ = ["play"]

#: Ends colours and a hidden cursor that the recording may have left.
_RESET = "\x1b[0m\x1b[?25h"


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option(
    "--speed", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Times as fast."
)
@click.option(
    "--idle-limit",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="The longest pause; 0 makes none. The default is what the recording says.",
)
def play(file: BinaryIO, speed: float, idle_limit: float | None) -> None:
    """Show a session that was recorded with record="FILE" (asciicast version 2).

    A recording that is still being written, or that a crash has cut off, is shown as far as it goes.

    \b
    shellkit play session.cast
    shellkit play --speed 2 --idle-limit 1 session.cast
    """
    terminal = os.isatty(1)
    try:
        header = _header(file, terminal)
        _show(file, speed, header.idle_limit if idle_limit is None else idle_limit)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OutputClosed:
        terminal = False
        raise
    finally:
        if terminal:
            write(1, _RESET)


def _header(file: BinaryIO, terminal: bool) -> Header:
    try:
        header = parse_header(file.readline())
    except ValueError as error:
        raise click.ClickException(f"{file.name}: {error}") from None
    if terminal:
        columns, rows = os.get_terminal_size(1)
        if 0 < columns < header.columns or 0 < rows < header.rows:  # 0: it does not know
            note(f"recorded at {header.columns}x{header.rows}, and this terminal has {columns}x{rows}")
    return header


def _show(file: BinaryIO, speed: float, idle_limit: float | None) -> None:
    due, last = time.monotonic(), 0.0
    for number, line in enumerate(file, 2):
        try:
            event = parse_event(line)
        except ValueError as error:
            if not line.endswith(b"\n"):  # cut off in the middle of an event
                return
            raise click.ClickException(f"{file.name}, line {number}: {error}") from None
        if event.code != OUTPUT:
            continue
        pause = max(0.0, event.time - last) / speed
        due += pause if idle_limit is None else min(pause, idle_limit)
        last = event.time
        time.sleep(max(0.0, due - time.monotonic()))
        write(1, event.data)
