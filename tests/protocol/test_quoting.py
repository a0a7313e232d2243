"""Quoting: any bytes without NUL are one word to every shell."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shellkit.protocol.dialects import dialect_for
from shellkit.protocol.posix import PosixDialect
from shellkit.protocol.quoting import quote

TEXT = st.binary(max_size=40).filter(lambda text: b"\0" not in text) | st.text(
    alphabet="'\"\\$`!\n\t #;&|<>(){}[]*?~=%^-é😀a", max_size=30
).map(str.encode)
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile"], "dash": ["dash"], "busybox": ["busybox", "sh"], "zsh": ["zsh", "-f"],
    "ksh": ["ksh93"], "mksh": ["mksh"],
}  # fmt: skip


def printed(argv: list[str], words: list[bytes]) -> bytes:
    """Return what the shell prints for the words, each between brackets."""
    script = b"for word in " + b" ".join(words) + b"; do command cat <<E\n[$word]\nE\ndone\n"
    return subprocess.run(argv, input=script, capture_output=True, check=True).stdout


@pytest.mark.parametrize("family", [pytest.param(f, marks=pytest.mark.requires(a[0])) for f, a in SHELLS.items()])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXT, min_size=1, max_size=20))
def test_any_text_is_one_word(family: str, texts: list[bytes]) -> None:
    """B1: the command's text is data; no quote, newline or byte of it reaches the wrapper."""
    dialect = dialect_for(family)
    assert isinstance(dialect, PosixDialect)
    expected = b"".join(b"[" + text + b"]\n" for text in texts)
    assert printed(SHELLS[family], [quote(text) for text in texts]) == expected
    assert printed(SHELLS[family], [dialect._quote(text) for text in texts]) == expected
