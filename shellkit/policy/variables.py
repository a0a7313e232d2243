"""Names of shell variables that matter: which an inherited environment must not carry, which one may assign freely.

Used by `environ` (what reaches the child) and by the parser (an assignment that changes what later words mean).
"""

from __future__ import annotations

import re

__all__ = ["STARTUP_HOOKS", "is_plain_assignment", "is_plain_prefix"]

# What a shell reads from the environment when it starts, and then runs, obeys or ends itself by
# (bash(1) "Shell Variables" and "INVOCATION", dash(1), zsh(1) "FILES", mksh(1), ksh93 `ENV`/`FPATH`).
# CDPATH makes `cd name` go elsewhere and print; PS0 PS1 PS2 PS4 are expanded, with command substitutions;
# BASH_XTRACEFD moves trace output onto a descriptor that may be ours; BASH_LOADABLES_PATH feeds `enable -f`.
STARTUP_HOOKS = (
    "BASH_COMPAT", "BASH_ENV", "BASH_FUNC_*", "BASH_LOADABLES_PATH", "BASH_XTRACEFD", "BASHOPTS", "CDPATH", "ENV",
    "EXECIGNORE", "FPATH", "GLOBIGNORE", "HISTFILE", "POSIXLY_CORRECT", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4",
    "SHELLOPTS", "TMOUT", "ZDOTDIR",
)  # fmt: skip

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")
# Lower-case names that a shell or a program gives a meaning to.
_SPECIAL_LOWER = re.compile(r"histchars|auto_resume|_|.*_proxy|npm_.*|argv0")
_PREFIX = re.compile(r"(?:LC_[A-Z]+|LANG|LANGUAGE|TZ|COLUMNS|LINES|NO_COLOR|CLICOLOR|GIT_OPTIONAL_LOCKS)\Z")


def is_plain_assignment(name: str) -> bool:
    """Return whether assigning `name` in the shell changes no command's meaning.

    That list cannot be made of forbidden names (every program adds some: PATH, LD_PRELOAD, GIT_SSH_COMMAND,
    LESSOPEN ...), so it is made of allowed ones: lower-case names, which by POSIX 8.1 belong to applications.
    """
    return bool(_PLAIN.match(name)) and not _SPECIAL_LOWER.fullmatch(name)


def is_plain_prefix(name: str) -> bool:
    """Return whether `name=value command` leaves open nothing but how the command words its output."""
    return bool(_PREFIX.match(name))
