"""Output that is too large to keep in memory (contract E5): written to files (`store`), read in parts (`page`)."""

from .store import SpillFile, SpillStore

__all__ = ["SpillFile", "SpillStore"]
