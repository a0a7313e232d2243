"""What a model sees: the tool, its schema, its text, and who approves."""

from __future__ import annotations

from .approvers import AllowAll, Approver, Callback, DenyAll, TimeLimit
from .base import ProgramRunner, Runner, ToolOutput
from .programs import TypingMode
from .tool import ShellTool, Tool

__all__ = [
    "AllowAll",
    "Approver",
    "Callback",
    "DenyAll",
    "ProgramRunner",
    "Runner",
    "ShellTool",
    "TimeLimit",
    "Tool",
    "ToolOutput",
    "TypingMode",
]
