"""Take what looks like a secret out of a text. Pure; the audit log uses it before it writes, `show` before it prints.

A net with holes: it knows the shapes of common tokens, and the names that passwords and keys are given. A secret with
neither passes. One that a command takes from a variable or a file never was in the text, which is the way to go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

__all__ = ["redact"]

# Repetitions are bounded, so that no text takes more than linear time.
_NAMED = (
    r"(?:(?<![a-z])pass|password|passwd|passphrase|passcode|_pwd|secret|token|credential|_key|api-?key|private-?key"
    r"|access-?key|account-?key)s?(?<!tokens)(?:[_-][\w-]{0,24})?"
)
# A variable or a substitution is not the secret; what is redacted already stays.
_VALUE = r"(?!\[redacted )(?:'[^'\n]{1,4096}'|\"(?![$`])[^\"\n]{1,4096}\"|(?![$`'\"&|;<>()])[^\s'\"&|;<>()]{1,4096})"
_WORD = r"(?!\$|\[redacted )[\w.~+/=-]"
_ASSIGNED = rf"(?i)({_NAMED}['\"]?[ \t]{{0,4}}[=:][ \t]{{0,4}}){_VALUE}"
_OPTION = rf"(?i)((?<=-){_NAMED}[ \t]{{1,4}})(?!-){_VALUE}"
_HEADER = (
    rf"(?i)(\bauthorization['\"]?[ \t]{{0,4}}[:=][ \t]{{0,4}}['\"]?(?:\w{{1,16}} {{1,4}})?)(?!\w{{1,16}} )"
    rf"{_WORD}{{3,4096}}"
)
_CURL_USER = (
    r"(\bcurl\b[^|;&\n]{0,200}? (?:-u|--(?:proxy-)?user)[ =]?['\"]?[^\s:'\"$/]{1,255}:)(?![$\[])[^\s'\"]{1,255}"
)
_PRIVATE_KEY = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [^-\n]{0,60}-----|\Z)"
_NAME_HINTS = ("pass", "_pwd", "secret", "token", "credential", "key")

# Texts of which one must occur, without case, before the pattern is tried: most commands hold none, and looking for
# them takes a tenth of the time. The pattern, whose group is kept. The kind of secret.
_KINDS = (
    (("private key",), _PRIVATE_KEY, "private key"),
    (("akia", "asia"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "API key"),
    (("gh",), r"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255})", "API key"),
    (("glpat-",), r"\bglpat-[\w-]{20,255}", "API key"),
    (("pypi-",), r"\bpypi-[\w-]{20,1024}", "API key"),
    (("npm_", "hf_"), r"\b(?:npm|hf)_[A-Za-z0-9]{20,255}", "API key"),
    (("sk-", "sk_"), r"\b(?:sk-[\w-]{16,255}|sk_(?:live|test)_\w{10,255})", "API key"),
    (("xox",), r"\bxox[abeprs]-[\w-]{10,255}", "API key"),
    (("aiza",), r"\bAIza[\w-]{30,255}", "API key"),
    (("ya29.",), r"\bya29\.[\w.-]{16,1024}", "API key"),
    (("eyj",), r"\beyJ[\w-]{8,4096}\.eyJ[\w-]{8,4096}\.[\w-]{0,4096}", "API key"),
    (("authorization",), _HEADER, "credentials"),
    (("bearer",), rf"(?i)(\bbearer {{1,4}}){_WORD}{{8,4096}}", "credentials"),
    (
        ("://",),
        r"(?i)(\b[a-z][a-z0-9+.-]{0,31}://(?:[^\s/:@'\"]{0,255}:)?)(?![$\[])[^\s/@'\"]{1,1024}(?=@)",
        "userinfo",
    ),
    (("curl",), _CURL_USER, "password"),
    (("sshpass",), rf"(\bsshpass\b[^|;&\n]{{0,100}}? -p ?){_VALUE}", "password"),
    (("mysql",), rf"(\bmysql[\w-]{{0,20}}[^|;&\n]{{0,100}}? -p){_VALUE}", "password"),
    (_NAME_HINTS, _ASSIGNED, "secret"),
    (_NAME_HINTS, _OPTION, "secret"),
)


@cache
def _secrets() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """Return (hint, pattern, replacement); compiled at the first use, which takes 5 ms."""
    return tuple(_compiled())


def _compiled() -> Iterator[tuple[str, re.Pattern[str], str]]:
    for hints, text, kind in _KINDS:
        pattern = re.compile(text)
        template = rf"\1[redacted {kind}]" if pattern.groups else f"[redacted {kind}]"
        yield from ((hint, pattern, template) for hint in hints)


def redact(text: str) -> str:
    """Return `text` with `[redacted KIND]` where something looks like a secret; the same text where nothing does."""
    lower = text.lower()
    done = None
    for hint, pattern, template in _secrets():
        if hint in lower and pattern is not done:
            text = pattern.sub(template, text)
            done = pattern
    return text
