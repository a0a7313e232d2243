"""Keep a session in its working directory: which directories are inside, and where to go back to.

Confinement guides a model; it is no boundary (a command can read anything the user can). Resolving paths
needs the system, so it is handed in as a function. Contract H5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import attrs

__all__ = ["Confinement", "ConfinementMode"]

ConfinementMode = Literal["root", "anchor", "off"]


@attrs.frozen
class Confinement:
    """What happens when a command leaves the working directory.

    Attributes:
        mode: "root": `cd` inside persists, a command that ends outside is brought back, with a note;
            "anchor": every command starts in the root; "off": nothing.
        root: the working directory as the user gave it, absolute.
        resolve: returns a path with every symbolic link resolved, as `os.path.realpath` does.
    """

    mode: ConfinementMode
    root: bytes
    resolve: Callable[[bytes], bytes] = attrs.field(eq=False)

    def contains(self, path: bytes) -> bool:
        """Return whether `path` is the root or lies below it, symbolic links resolved."""
        root = self.resolve(self.root).rstrip(b"/") + b"/"
        return (self.resolve(path).rstrip(b"/") + b"/").startswith(root)

    def admits(self, path: bytes) -> bool:
        """Return whether a caller may ask for a command to run in `path`."""
        return self.mode == "off" or self.contains(path)

    def way_back(self, here: bytes | None, before: bytes | None) -> bytes | None:
        """Return where the shell must be brought, or None if it may stay.

        Args:
            here: where the shell stands (None if it cannot be told, as in a deleted directory).
            before: where it stood before the command.
        """
        if self.mode == "off":
            return None
        if self.mode == "anchor":
            return None if here is not None and self.resolve(here) == self.resolve(self.root) else self.root
        if here is not None and self.contains(here):
            return None
        return before if before is not None and before != here and self.contains(before) else self.root
