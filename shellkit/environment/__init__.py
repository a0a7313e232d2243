"""What shell is this: asked once, kept as a value, told to a model. Used by the tool's description and by adapters."""

from __future__ import annotations

from .base import ShellEnvironment
from .probe import CommandRunner, EnvironmentProbe, probe
from .scripts import DEFAULT_TOOLS

__all__ = ["DEFAULT_TOOLS", "CommandRunner", "EnvironmentProbe", "ShellEnvironment", "probe"]
