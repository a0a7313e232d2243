"""`Sink`: what gets everything that passes between the host and an interactive program, as it passes."""

from __future__ import annotations

__all__ = ["Sink"]


class Sink:
    """Override what is wanted. Calls come from any thread, one at a time, and hold the program up: be quick.

    A sink that raises is logged and gets no more calls.
    """

    def output(self, data: memoryview) -> None:
        """Take what the program printed; valid during the call only."""

    def input(self, data: bytes) -> None:
        """Take what was typed; while the program asks for a secret, asterisks in its place."""

    def resized(self, rows: int, columns: int) -> None:
        """Account for a new size of the terminal."""
