"""Take what looks like a secret out of a text. Pure; the audit log uses it before it writes, `show` before it prints.

A net with holes: it knows the shapes of common tokens, and the names that passwords and keys are given. A secret with
neither passes. One that a command takes from a variable or a file never was in the text, which is the way to go.
"""

from __future__ import annotations

import re

__all__ = ["redact"]

# Repetitions are bounded, so that no text takes more than linear time.
_NAME = (
    r"(?:(?<![a-z])pass|password|passwd|passphrase|passcode|_pwd|secret|token|credential|_key|api-?key|private-?key"
    r"|access-?key|account-?key)s?"
)
_NAMED = rf"{_NAME}(?<!tokens)(?:[_-][\w-]{{0,40}})?"
# A variable or a substitution is not the secret; what is redacted already stays.
_VALUE = (
    r"(?!\[redacted )(?:'[^'\n]{1,4096}'|\"(?![$`])[^\"\n]{1,4096}\"|(?![$`'\"&|;<>()])[^\s'\"&|;<>()]{1,4096})"
)
_WORD = r"(?!\$|\[redacted )[\w.~+/=-]"

#: Texts of which one must occur, without case, before the pattern is tried (a tenth of the time, and most commands
#: hold none); the pattern, whose groups are kept; the kind of secret.
_SECRETS = tuple(
    (hints.split(), re.compile(pattern, re.IGNORECASE if kind != "API key" else 0), kind)
    for hints, pattern, kind in (
        ("private", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [^-\n]{0,60}-----|\Z)", "private key"),
        ("akia asia", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "API key"),
        ("ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{20,255}", "API key"),
        ("github_pat_ glpat- pypi- npm_ hf_", r"\b(?:github_pat_|glpat-|pypi-|npm_|hf_)[\w-]{20,1024}", "API key"),
        ("sk- sk_", r"\b(?:sk-[\w-]{16,255}|[rs]k_(?:live|test)_\w{10,255})", "API key"),
        ("xox aiza sg. ya29.", r"\b(?:xox[abeprs]-|AIza|SG\.|ya29\.)[\w.-]{16,1024}", "API key"),
        ("eyj", r"\beyJ[\w-]{8,4096}\.eyJ[\w-]{8,4096}\.[\w-]{0,4096}", "API key"),
        ("authorization", rf"(\bauthorization['\"]?[ \t]{{0,4}}[:=][ \t]{{0,4}}['\"]?(?:\w{{1,16}} {{1,4}})?)(?!\w{{1,16}} ){_WORD}{{3,4096}}", "credentials"),
        ("bearer", rf"(\bbearer {{1,4}}){_WORD}{{8,4096}}", "credentials"),
        ("://", r"(\b[a-z][a-z0-9+.-]{0,31}://(?:[^\s/:@'\"]{0,255}:)?)(?![$\[])[^\s/@'\"]{1,1024}(?=@)", "userinfo"),
        ("-u --user --proxy-user", r"((?<=\s)(?:-u|--(?:proxy-)?user)[ =]?['\"]?[^\s:'\"$/]{1,255}:)(?![$\[])[^\s'\"]{1,255}", "password"),
        ("sshpass mysql mariadb", rf"(\b(?:sshpass\b[^|;&\n]{{0,100}}? -p ?|(?:mysql|mariadb)[\w-]{{0,20}}\b[^|;&\n]{{0,200}}? -p)){_VALUE}", "password"),
        ("pass _pwd secret token credential key", rf"({_NAMED}['\"]?[ \t]{{0,4}}[=:][ \t]{{0,4}}){_VALUE}", "secret"),
        ("--", rf"(--[a-z-]{{0,20}}?{_NAMED}[ \t]{{1,4}})(?!-){_VALUE}", "secret"),
    )
)  # fmt: skip


def redact(text: str) -> str:
    """Return `text` with `[redacted KIND]` where something looks like a secret; the same object where nothing does."""
    lower = text.lower()
    for hints, pattern, kind in _SECRETS:
        if any(hint in lower for hint in hints):
            text = pattern.sub(rf"\1[redacted {kind}]" if pattern.groups else f"[redacted {kind}]", text)
    return text
