"""The resource limits of a shell: from the table that it prints to the commands that set them again.

Every shell has a table of its own; `PosixDialect.restore` calls this with whatever `ulimit -S -a` printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["FEWEST_DESCRIPTORS", "limit_commands"]

#: A shell keeps the originals of redirected descriptors above 9: with a lower limit it cannot run a command.
FEWEST_DESCRIPTORS = 16

#: "stack size (kbytes, -s) 8192" (bash, busybox, ksh93), "-s: stack(KiB) 8192" (zsh, mksh, yash), "stack(kbytes) 8192".
_LIMIT = re.compile(rb"(?:.*\(.*?-([a-zA-Z])\)|-([a-zA-Z]): .*?|(\w+)\b.*?)\s+(unlimited|\d+)\s*")
_DASH_LIMITS = {
    b"time": b"t", b"file": b"f", b"data": b"d", b"stack": b"s", b"coredump": b"c", b"memory": b"m", b"locked": b"l",
    b"process": b"p", b"nofiles": b"n", b"vmemory": b"v", b"locks": b"w", b"rtprio": b"r",
}  # fmt: skip


def limit_commands(text: bytes, *, fewest: int = FEWEST_DESCRIPTORS) -> Iterator[bytes]:
    """Turn the table of `ulimit -S -a` into commands; limits that cannot be set are refused quietly."""
    for line in text.splitlines():
        if match := _LIMIT.fullmatch(line):
            letter = match.group(1) or match.group(2) or _DASH_LIMITS.get(match.group(3), b"")
            if letter == b"n" and match.group(4).isdigit() and int(match.group(4)) < fewest:
                continue
            if letter and b"pipe" not in line:  # the size of a pipe is read-only
                yield b"\\ulimit -S -%b %b" % (letter, match.group(4))
