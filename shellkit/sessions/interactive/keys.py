"""Names of keys, and what a terminal sends for them. Called by `InteractiveSession.send_keys`; pure.

The names are tmux's (tmux(1), "KEY BINDINGS"), the bytes those of the terminal `linux` (console_codes(4), terminfo(5)):
cursor keys have one form only there, whatever mode a program has set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["encode_key"]

_FUNCTION = ("[[A", "[[B", "[[C", "[[D", "[[E", "[17~", "[18~", "[19~", "[20~", "[21~", "[23~", "[24~")

_NAMED: Mapping[str, str] = {
    "Enter": "\r",
    "Tab": "\t",
    "BTab": "\x1b[Z",
    "Space": " ",
    "BSpace": "\x7f",
    "Escape": "\x1b",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "Right": "\x1b[C",
    "Left": "\x1b[D",
    "Home": "\x1b[1~",
    "Insert": "\x1b[2~",
    "Delete": "\x1b[3~",
    "End": "\x1b[4~",
    "PageUp": "\x1b[5~",
    "PageDown": "\x1b[6~",
    **{f"F{number}": f"\x1b{code}" for number, code in enumerate(_FUNCTION, 1)},
}

#: What has a code with Ctrl: the column of ASCII 64 to 95, in either case, and DEL (ASCII; tmux takes C-Space for C-@).
_CONTROL: Mapping[str, str] = {
    **{chr(code): chr(code - 64) for code in range(64, 96)},
    **{chr(code): chr(code - 96) for code in range(97, 123)},
    "Space": "\0",
    "?": "\x7f",
}

#: What a wrong name may have meant.
_SUGGESTED = (*_NAMED, *(f"C-{name}" for name in _CONTROL if not name.isupper()))


def encode_key(name: str) -> str:
    """Return what a terminal sends for a key.

    Args:
        name: "Enter", "Up", "F5", one character, "C-c" (Ctrl), "M-x" (Alt; before any other name).

    Raises:
        ValueError: there is no such key; the message lists near names.
    """
    if name.startswith("M-") and len(name) > 2:
        return "\x1b" + encode_key(name[2:])
    if name.startswith("C-") and name[2:] in _CONTROL:
        return _CONTROL[name[2:]]
    if name in _NAMED:
        return _NAMED[name]
    if len(name) == 1:
        return name
    import difflib  # 3 ms, for a mistake only

    near = [*_differently_written(name), *difflib.get_close_matches(name, _SUGGESTED, cutoff=0.5)]
    meant = f"did you mean {', '.join(dict.fromkeys(near))}? " if near else ""
    raise ValueError(
        f"no key is called {name!r}: {meant}Keys are {', '.join(_NAMED)}, one character, C-a to C-z, and M- before any "
        "of them; text is typed with write()"
    )


def _differently_written(name: str) -> list[str]:
    """Return what differs only in case or in how Ctrl is written: ENTER, ctrl-c, Ctrl+C, ^C."""
    plain = re.sub(r"^(?:control|ctrl|c)[-+]|^\^", "c-", name.lower())
    return [known for known in _SUGGESTED if known.lower() == plain]
