"""Check what callers pass: wrong types and values end here, with an error that names the remedy (contract B2, F5).

Pure functions; executors call them before anything runs.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from ..errors import InvalidWorkdir
from ..policy.confinement import Confinement, ConfinementMode
from ..sessions.base import Mode, OnTimeout
from ..sessions.spill import SpillStore
from ..sessions.spill.store import LEAST_LIMIT

__all__ = [
    "UNSET",
    "Unset",
    "check_callback",
    "check_confinement",
    "check_env",
    "check_input",
    "check_mode",
    "check_on_timeout",
    "check_seconds",
    "check_size",
    "check_spill",
    "check_text_list",
    "check_timeout",
    "check_workdir",
    "check_yield",
]

Choice = TypeVar("Choice")
_MODES: tuple[Mode, ...] = get_args(Mode)
_ON_TIMEOUTS: tuple[OnTimeout, ...] = get_args(OnTimeout)
_CONFINEMENTS: tuple[ConfinementMode, ...] = get_args(ConfinementMode)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Unset:
    """The type of `UNSET`: an argument that was left out, where None has a meaning of its own."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()


def check_timeout(value: object, default: float | None) -> float | None:
    """Return the time-out in seconds; `UNSET` is the default, None none."""
    if isinstance(value, Unset):
        return default
    return None if value is None else check_seconds("timeout", value)


def check_seconds(name: str, value: object) -> float:
    """Return a positive, finite number of seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not math.isfinite(value) or value <= 0:
        hint = "; use None for no limit" if name == "timeout" else ""
        raise ValueError(f"{name} must be a positive finite number of seconds, not {value}{hint}")
    return float(value)


def check_yield(value: object) -> float:
    """Return after how many seconds a call comes back at the latest; 0 is at once."""
    return 0.0 if value == 0 and not isinstance(value, bool) else check_seconds("yield_time", value)


def check_size(name: str, value: object) -> int:
    """Return a number of bytes that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a number of bytes (int), not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must not be negative; 0 keeps nothing")
    return value


def check_spill(directory: object, limit: object, retention: object, confinement: Confinement) -> SpillStore | None:
    """Return where larger output is kept; None if `directory` is."""
    size = check_size("spill_limit", limit)
    if size < LEAST_LIMIT:
        raise ValueError(f"spill_limit must be at least {LEAST_LIMIT} bytes; leave spill_dir out to keep nothing")
    seconds = None if retention is None else check_seconds("spill_retention", retention)
    if directory is None:
        return None
    if not isinstance(directory, (str, bytes, os.PathLike)):
        raise TypeError(f"spill_dir must be a path, not {type(directory).__name__}")
    path = os.fsencode(directory)
    if not path or b"\0" in path:
        raise ValueError("spill_dir must be a path without NUL, and not empty; leave it out to keep nothing")
    path = os.path.abspath(os.path.expanduser(path))
    if os.path.exists(path) and not os.path.isdir(path):
        raise ValueError(f"spill_dir is not a directory: {os.fsdecode(path)}; name another")
    # A command that lists, commits or deletes everything in its directory must not meet the files.
    if confinement.resolve(confinement.root) != b"/" and confinement.contains(path):
        raise ValueError(
            f"spill_dir {os.fsdecode(path)} lies inside the working directory {os.fsdecode(confinement.root)}; name "
            "one outside"
        )
    return SpillStore(os.fsdecode(path), size, seconds)


def _one_of(choices: tuple[Choice, ...], value: object, demand: str) -> Choice:
    for choice in choices:
        if value == choice:
            return choice
    raise ValueError(f"{demand}, not {value!r}")


def check_mode(value: object) -> Mode:
    """Return the mode."""
    return _one_of(_MODES, value, "mode must be 'persistent' or 'stateless'")


def check_on_timeout(value: object) -> OnTimeout:
    """Return what happens to a command whose time is over."""
    return _one_of(_ON_TIMEOUTS, value, "on_timeout must be 'kill' or 'background'")


def check_confinement(value: object, *, workdir_given: bool) -> ConfinementMode:
    """Return the confinement; None is "root" when there is a workdir to keep to."""
    if value is None:
        return "root" if workdir_given else "off"
    return _one_of(_CONFINEMENTS, value, "confinement must be 'root', 'anchor', 'off' or None")


def check_workdir(value: object, base: bytes) -> bytes:
    """Return an existing directory as an absolute path; a relative one is taken from `base`, `~` is home.

    Raises:
        InvalidWorkdir: it does not exist, is no directory, or may not be entered.
    """
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"workdir must be a path, not {type(value).__name__}")
    path = os.fsencode(value)
    if not path or b"\0" in path:
        raise ValueError("workdir must be a path without NUL, and not empty; leave it out for the current directory")
    path = os.path.normpath(os.path.join(base, os.path.expanduser(path)))
    shown = os.fsdecode(path)
    if not os.path.exists(path):
        raise InvalidWorkdir(f"working directory does not exist: {shown}; create it or name another")
    if not os.path.isdir(path):
        raise InvalidWorkdir(f"working directory is not a directory: {shown}; name its parent")
    if not os.access(path, os.X_OK):
        raise InvalidWorkdir(f"working directory may not be entered: {shown}; chmod u+x it or name another")
    return path


def check_env(value: object) -> dict[str, str | None]:
    """Return variables; None as a value unsets."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"env must be a mapping of names to str or None, not {type(value).__name__}")
    for name, text in value.items():
        if not isinstance(name, str) or not (text is None or isinstance(text, str)):
            raise TypeError(f"env must map str to str or None; {name!r} maps to {type(text).__name__}")
        if not _NAME.match(name):
            raise ValueError(f"env name {name!r} is no variable name: letters, digits and _ only, no digit first")
        if text is not None and "\0" in text:
            raise ValueError(f"env value of {name} contains a NUL character; remove it")
        if text is not None and any("\ud800" <= c <= "\udfff" and not "\udc80" <= c <= "\udcff" for c in text):
            raise ValueError(f"env value of {name} contains a lone surrogate, which is no character")
    return dict(value)


def check_input(value: object) -> bytes:
    """Return what a command reads from its stdin."""
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"input must be str or bytes, not {type(value).__name__}")


def check_callback(value: object) -> None:
    """Check what shall be called with output."""
    if value is not None and not callable(value):
        raise TypeError(f"on_output must be callable with (stream, text), not {type(value).__name__}")


def check_text_list(name: str, value: Any) -> tuple[str, ...]:
    """Return a sequence of strings as a tuple; one string is refused, since it is one by mistake."""
    if isinstance(value, str):
        raise TypeError(f"{name} must be a list of strings, not one string: write [{value!r}]")
    items = tuple(value)
    if not all(isinstance(item, str) for item in items):
        raise TypeError(f"{name} must be a list of strings")
    return items
