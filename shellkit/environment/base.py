"""`ShellEnvironment`: what is known of the shell that a model speaks to, and how to tell the model. Pure.

`probe` makes it, the tool's description and the adapters read it. It never asks anything itself: what is not known
is None, and nothing here is taken from the host that Python runs on, which need not be where the shell runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ..policy.confinement import ConfinementMode
from ..resolver import Family
from ..sessions.base import Mode
from .idioms import idioms

__all__ = ["ShellEnvironment"]

_NAMES: Mapping[Family, str] = {
    "sh": "POSIX sh", "dash": "dash", "busybox": "busybox ash", "powershell": "PowerShell", "cmd": "cmd.exe",
}  # fmt: skip


def _as_dict(tools: Mapping[str, str | None]) -> dict[str, str | None]:
    return dict(tools)


@attrs.frozen(kw_only=True)
class ShellEnvironment:
    """What a shell and its machine are. `to_dict` is JSON; `attrs.evolve` changes a fact.

    Attributes:
        family: which dialect the shell speaks.
        mode: "persistent" or "stateless".
        confinement: "root", "anchor" or "off".
        shell_version: the shell's own, e.g. "5.2.15"; None where it tells nobody (dash).
        os_name: the operating system as its machine names it, e.g. "Debian GNU/Linux".
        os_version: e.g. "12".
        kernel: name and release, e.g. "Linux 6.1.0".
        architecture: e.g. "x86_64".
        workdir: where the shell stood after the probe.
        user: the name of the user that commands run as.
        tools: for each tool that was asked for, its version; None if it is missing or did not say.
        missing: the tools that are not there.
        answered: whether the shell answered the probe; if not, all that had to be asked is unknown.
    """

    family: Family
    mode: Mode = "persistent"
    confinement: ConfinementMode = "off"
    shell_version: str | None = None
    os_name: str | None = None
    os_version: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    workdir: str | None = None
    user: str | None = None
    tools: Mapping[str, str | None] = attrs.field(factory=dict, converter=_as_dict, hash=False)
    missing: tuple[str, ...] = ()
    answered: bool = True

    @property
    def shell(self) -> str:
        """The shell with its version, e.g. "bash 5.2.15"."""
        return _joined((_NAMES.get(self.family, self.family), self.shell_version))

    @property
    def system(self) -> str:
        """The system with version and architecture, e.g. "Debian GNU/Linux 12 (x86_64)"; "" if it is unknown."""
        name = _joined((self.os_name, self.os_version)) or self.kernel or ""
        return f"{name} ({self.architecture})" if name and self.architecture else name

    def instructions(self) -> str:
        """Return a block of text that tells a model which shell it speaks to: one fact or idiom a line."""
        as_user = f", as {self.user}" if self.user else ""
        on_system = f" on {self.system}" if self.system else ""
        lines = [
            f"Commands run in {self.shell}{on_system}{as_user}.",
            *([f"Working directory: {self.workdir}"] if self.workdir else []),
            _persistence(self.mode, self.confinement),
            *idioms(self.family, self.shell_version),
        ]
        known = [f"{name} {version}" for name, version in self.tools.items() if version]
        silent = [name for name, version in self.tools.items() if not version and name not in self.missing]
        if self.answered and known + silent:
            lines.append(f"Available: {', '.join(known + silent)}")
        if self.missing:
            lines.append(f"Not installed: {', '.join(self.missing)}")
        return "\n".join(f"- {line}" if at else line for at, line in enumerate(lines))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**attrs.asdict(self, recurse=False), "tools": dict(self.tools), "missing": list(self.missing)}


def _joined(parts: Iterable[str | None]) -> str:
    return " ".join(part for part in parts if part)


def _persistence(mode: str, confinement: str) -> str:
    if mode == "stateless":
        return "Each command runs in a fresh shell: cd, variables and functions do not reach the next one."
    kept = "One shell runs all commands: variables, functions and options persist"
    if confinement == "anchor":
        return f"{kept}; each command starts in the working directory, so cd does not."
    if confinement == "root":
        return f"{kept}; so does cd inside the working directory, and a command that ends outside is brought back."
    return f"{kept}, and so does cd."
