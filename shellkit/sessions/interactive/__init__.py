"""Programs that are talked to while they run: `InteractiveSession`, one for each; `Pump`, shared by many."""

from .display import ScreenView
from .expectation import Match
from .program import Output
from .pump import Pump
from .session import InteractiveSession
from .sink import Sink

__all__ = ["InteractiveSession", "Match", "Output", "Pump", "ScreenView", "Sink"]
