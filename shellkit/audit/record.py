"""The form of one line: canonical JSON that ends with its own SHA-256 and holds that of the line before. Pure.

`{...,"prev":"<hash of the line before>","seq":7,...,"hash":"<hash>"}`: without its last member the object is canonical
JSON (sorted names, no blanks, ASCII), and `hash` is the SHA-256 of exactly those bytes. `log` writes lines, `verify`
checks them; a change of one character, of the order or of the number of lines breaks the chain.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import attrs

from ..errors import ShellkitError

__all__ = ["NOTHING_BEFORE", "AuditEntry", "AuditError", "encode", "parse"]

#: What `prev` is in the first line.
NOTHING_BEFORE = "0" * 64
_HASH = b',"hash":"'
_HASH_LENGTH = len(_HASH) + 64 + len(b'"}')
# ASCII, so that a lone surrogate (a byte of a file name, PEP 383) survives.
_canonical = json.JSONEncoder(
    sort_keys=True, check_circular=False, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode


class AuditError(ShellkitError):
    """The audit log cannot be written or read; the command that it was to record must not run."""


@attrs.frozen
class AuditEntry:
    """A line that was written; one without arguments stands for what is before the first.

    Attributes:
        seq: its number in the file, counted from 0.
        hash: its hash; kept elsewhere, it proves later that the file up to here is the same (`verify(anchor=)`).
    """

    seq: int = -1
    hash: str = NOTHING_BEFORE


def encode(fields: dict[str, Any], after: AuditEntry) -> tuple[bytes, AuditEntry]:
    """Return the line that continues the chain with `fields` after a line, and what stands for it."""
    body = _canonical({**fields, "seq": after.seq + 1, "prev": after.hash}).encode("ascii")
    digest = hashlib.sha256(body).hexdigest()
    return b'%b,"hash":"%b"}\n' % (body[:-1], digest.encode("ascii")), AuditEntry(after.seq + 1, digest)


def parse(line: bytes) -> tuple[dict[str, Any] | None, bool]:
    """Return the record of a line (without its line end), or None if it is none, and whether its hash is right."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None, False
    if (
        not isinstance(record, dict)
        or not isinstance(record.get("seq"), int)
        or not isinstance(record.get("prev"), str)
    ):
        return None, False
    body, rest = line[:-_HASH_LENGTH], line[-_HASH_LENGTH:]
    digest = hashlib.sha256(body + b"}").hexdigest()
    return record, rest == _HASH + digest.encode("ascii") + b'"}'
