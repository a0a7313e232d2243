"""What a model sees: the tool, its schema, its text, and who approves."""

from __future__ import annotations

from .approvers import AllowAll, Approver, Callback, DenyAll, TimeLimit
from .base import Runner, ToolOutput
from .tool import ShellTool

__all__ = ["AllowAll", "Approver", "Callback", "DenyAll", "Runner", "ShellTool", "TimeLimit", "ToolOutput"]
