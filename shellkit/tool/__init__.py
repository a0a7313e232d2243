"""What a model sees: the tool, its schema, its text, and who approves."""

from __future__ import annotations

from .approvers import AllowAll, Approver, Callback, DenyAll, TimeLimit
from .base import OnOutput, ProgramRunner, Runner, ToolOutput
from .programs import TypingMode
from .tool import ShellTool, Tool

__all__ = [
    "AllowAll",
    "Approver",
    "Callback",
    "DenyAll",
    "OnOutput",
    "ProgramRunner",
    "Runner",
    "ShellTool",
    "TimeLimit",
    "Tool",
    "ToolOutput",
    "TypingMode",
]
