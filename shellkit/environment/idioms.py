"""What a model must know of each dialect to write commands in it. Pure text; `ShellEnvironment` calls it.

Only what a model that thinks in bash gets wrong elsewhere. Each claim about a POSIX shell is run against that shell
in `tests/environment/test_shells.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..resolver import Family

__all__ = ["idioms"]

_STDIN = "A command's stdin is empty: nobody answers prompts, so pass flags such as -y."
_SERVERS = "End what shall keep running (a server) with &; the command then returns at once."
# dash has had pipefail since 0.5.13; `&>` is a background job and a truncated file (POSIX 2.9.3, 2.7).
_PLAIN = (
    "Write POSIX sh, not bash: no [[ ]], arrays, <( ), <<<, {1..3}, $'...', ${x//a/b}, ${x:0:3}, source or function.",
    "Instead: [ a = b ], case, printf (not echo -e), . ./file, and >file 2>&1 (&> would put the command into "
    "the background).",
)

_IDIOMS: Mapping[Family, tuple[str, ...]] = {
    "bash": ("bash syntax works: [[ ]], arrays, <( ), <<<, {1..3}, ${x//a/b}, set -o pipefail.",),
    "sh": (*_PLAIN, "Do not count on local or set -o pipefail."),
    "dash": (*_PLAIN, "local works; do not count on set -o pipefail."),
    "busybox": (
        "This is busybox ash, not bash: no arrays, <<< or {1..3}, <( ) only in some builds. [[ ]], ${x//a/b}, "
        "${x:0:3}, $'...', local, source and set -o pipefail work.",
        "Programs may be busybox applets with fewer options than GNU's: look at PROGRAM --help.",
    ),
    "zsh": (
        "This is zsh: arrays start at 1, an unquoted $x is not split into words (${=x} is), and a pattern that matches "
        "no file is an error (quote it, or append (N)).",
        "Do not use path, status or argv as variables: they are special.",
        "[[ ]], <( ), <<<, {1..3}, ${x//a/b} and set -o pipefail work.",
    ),
    "ksh": (
        "This is ksh93: write typeset for local, and function f { ...; } where variables shall be local.",
        "[[ ]], arrays, <( ), <<<, {1..3}, ${x//a/b} and set -o pipefail work.",
    ),
    "mksh": (
        "This is mksh: no <( ), {1..3} or associative arrays.",
        "[[ ]], indexed arrays, <<<, ${x//a/b}, local and set -o pipefail work.",
    ),
    "powershell": (
        "Write PowerShell: $env:NAME = 'value' sets a variable of the environment, $env:NAME reads it; 'single quotes' "
        'are literal, "double quotes" expand; a backtick escapes.',
        "Separate commands with ; (&& and || need PowerShell 7). $LASTEXITCODE holds a program's exit code, $? whether "
        "the last command succeeded; -ErrorAction Stop makes a cmdlet's error final.",
        "Call a program whose path has blanks as & 'C:\\path\\to it.exe'. Discard output with >$null, errors with "
        "2>$null. Search with Select-String, delete with Remove-Item -Recurse -Force; in Windows PowerShell curl and "
        "wget are aliases, curl.exe is the program.",
    ),
    "cmd": (
        "Write cmd.exe: set NAME=value without blanks around =; %NAME% is expanded when the line is read, !NAME! when "
        "it runs, and so is !errorlevel!.",
        "Only double quotes quote; ^ escapes & | < > ^. Join commands with &, && and ||.",
        "cd /d D:\\dir changes the drive, too. Use dir, type, copy, move, del, findstr; discard output with >nul 2>&1.",
    ),
}


def idioms(family: Family, version: str | None = None) -> tuple[str, ...]:
    """Return the idioms of a dialect, one sentence or two an entry.

    Args:
        family: the dialect.
        version: the shell's, if known; old ones lack things.
    """
    lines = _IDIOMS[family]
    if family == "bash" and version is not None and version.startswith("3."):
        lines = (*lines, "This bash is old (macOS): no associative arrays, mapfile, ${x,,}, |& or &>>.")
    if family == "sh" and version is not None:
        lines = (*lines, "It is another shell in POSIX mode; what it has beyond sh may be switched off.")
    if family in ("powershell", "cmd"):
        return (*lines, _STDIN)
    return (*lines, _STDIN, _SERVERS)
