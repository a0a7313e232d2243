# ruff: noqa: SIM905 - a long list of words is read more easily as text
"""`READ_ONLY`: the short list of commands that only read, without the arguments that make them write or execute.

Left out on purpose, for what they can be made to run or write: awk, tar, tee, xargs, env, less, more, man, vi, dd,
every interpreter, package managers, and whatever speaks to a network. `sed` is allowed with simple scripts only.

What the list trusts: the directories of PATH, the session's state (aliases, functions and PATH cannot be changed
without a question), and the configuration of the git repository that the command stands in. git runs programs that
this names (`core.fsmonitor`, `diff.external`); who works in repositories of strangers adds a rule that asks about git.
Reading is not harmless either: `cat ~/.ssh/id_ed25519` only reads. Confinement and the sandbox are for that.
"""

from __future__ import annotations

import re

from .base import Word
from .rules import Check, Rule, RulePolicy

__all__ = ["READ_ONLY"]

# Neither an option nor an operand of these writes or runs anything (GNU coreutils 9, util-linux 2.39, procps 4,
# bash 5.2; busybox has fewer options). `cd` moves the session, which is what confinement is for (H5).
_ANY_ARGUMENTS = (
    "[ : arch basename cat cd cksum cmp comm cut df dirname du echo egrep expand expr false fgrep fmt fold free "
    "grep groups head hexdump id jq join locale ls lscpu md5sum nl nproc numfmt od paste pgrep printenv "
    "printf ps pwd read readlink realpath rev seq sha1sum sha224sum sha256sum sha384sum sha512sum sleep stat "
    "strings tac tail test tr true tty type uname unexpand uptime wc whereis which who whoami"
).split()

_WITHOUT = {
    "base64": ("-o", "--output"),  # macOS
    "column": (),
    "diff": ("-l", "--paginate"),  # runs pr
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "fdfind": ("-x", "-X", "--exec", "--exec-batch"),
    "file": ("-C", "--compile", "-z", "-Z", "--uncompress", "--uncompress-noreport"),
    "find": ("-exec*", "-ok*", "-delete", "-fprint*", "-fls"),
    "rg": ("-z", "--pre", "--hostname-bin", "--search-zip"),
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "tree": ("-o", "-R"),
}

_GIT_READS = (
    "blame", "cat-file", "check-ignore", "count-objects", "describe", "diff", "diff-tree", "for-each-ref", "grep",
    "log", "ls-files", "ls-tree", "merge-base", "name-rev", "rev-list", "rev-parse", "shortlog", "show", "show-ref",
    "status",
)  # fmt: skip
_GIT_WITHOUT = re.compile(
    r"--?(?:o|ou.*|op.*|ext.*|textc.*|filters?|show-s.*|exec.*|upload.*|paginate)(?:=.*)?\Z"
    r"|-[A-Za-z]*O.*|.*%G.*",
    re.DOTALL,
)
_GIT_LISTS = {
    "branch": r"-[arv]+|--(?:all|remotes|verbose|list|show-current|no-color|no-column|merged|no-merged)",
    "tag": r"-l|--(?:list|no-column)|-n\d*|--sort=[\w:.-]+",
    "remote": r"-v|--verbose|get-url",
    "stash": r"list",
    "reflog": r"show",
    "worktree": r"list|--porcelain",
    "config": r"--(?:get|get-all|get-regexp|list|show-origin|show-scope)|-l",
}
_GIT_OPERANDS = {  # the words that must come first before operands may follow
    "branch": ("--list",), "tag": ("-l", "--list"), "remote": ("get-url",), "stash": (), "reflog": ("show",),
    "worktree": (), "config": ("--get", "--get-all", "--get-regexp"),
}  # fmt: skip
_GIT_BARE = frozenset({"branch", "tag", "remote", "reflog"})


def _git(words: tuple[Word, ...]) -> str:
    """Global options that only choose where and how, then one of the sub-commands that read."""
    position = 1
    while position < len(words) and words[position].text in {"--no-pager", "-P", "--no-optional-locks", "-C"}:
        position += 1
        if words[position - 1].text == "-C" and position < len(words):
            if not (words[position].known or words[position].operand):
                return f"`{words[position].text}` is only known when it runs, and may be several words"
            position += 1
    if [word.text for word in words[position:]] == ["--version"]:
        return ""
    if position >= len(words) or not words[position].known:
        return "git is called without a known sub-command"
    command, arguments = words[position].text, words[position + 1 :]
    for word in arguments:
        if not (word.known or word.operand):
            return f"`{word.text}` is only known when it runs, and may be an option"
        if _GIT_WITHOUT.match(word.text):
            return f"`{word.text}` may write or run something"
    if command in _GIT_READS:
        return ""
    if command not in _GIT_LISTS:
        return f"`git {command}` may change something"
    listing = re.compile(_GIT_LISTS[command])
    opened = command in _GIT_BARE and not arguments
    for word in arguments:
        if word.known and listing.fullmatch(word.text):
            opened = True
        elif word.text.startswith("-") or arguments[0].text not in _GIT_OPERANDS[command]:
            return f"`git {command}` may change something with these arguments"
    return "" if opened else f"`git {command}` may change something"


_SED_PART = r"(?:[^{0}\\\n]|\\[^\n])*"
_SED_ADDRESS = rf"(?:\d+|\$|/{_SED_PART.format('/')}/I?)"
_SED_REPLACE = "|".join(
    rf"s{re.escape(mark)}(?:{_SED_PART.format(re.escape(mark))}{re.escape(mark)}){{2}}[gpIi\d]*" for mark in "/|#,@:"
)
_SED = re.compile(rf"\s*(?:{_SED_ADDRESS}(?:,(?:{_SED_ADDRESS}|[+~]\d+))?\s*!?\s*)?(?:[pdq=]|{_SED_REPLACE})\s*\Z")


def _sed(words: tuple[Word, ...]) -> str:
    """Print, delete, quit and substitute; one such command a script. `w`, `e`, `r`, `-i`, `-f` are others."""
    scripts: list[Word] = []
    arguments = list(words[1:])
    operands: list[Word] = []
    while arguments:
        word = arguments.pop(0)
        if not (word.known or word.operand):
            return f"`{word.text}` is only known when it runs, and may be an option"
        if word.text in {"-e", "--expression"} and arguments:
            scripts.append(arguments.pop(0))
        elif re.fullmatch(
            r"-[nErsuz]+|--(?:quiet|silent|regexp-extended|separate|unbuffered|null-data|posix)", word.text
        ):
            continue
        elif re.fullmatch(r"-[nErsuz]*e", word.text) and arguments:
            scripts.append(arguments.pop(0))
        elif word.text.startswith("-"):
            return f"`{word.text}` of sed is not in the list of what only reads"
        else:
            operands.append(word)
    if not scripts and operands:
        scripts = operands[:1]
    for script in scripts:
        # In a bracket expression some implementations do not end the pattern at its delimiter, others do.
        if not script.known or not _SED.match(script.text) or re.search(r"\[[^\]]*[/|#,@:]", script.text):
            return "only simple sed scripts are known to read: one of p, d, q, =, s/// with the flags g, p, i"
    return "" if scripts else "sed is called without a script"


def _operands(most: int, pattern: str = "", valued: str = "") -> Check:
    """Return a check for at most `most` operands, each of which matches `pattern`."""

    def check(words: tuple[Word, ...]) -> str:
        found: list[Word] = []
        skip = ended = False
        for word in words[1:]:
            if not (word.known or word.operand):
                return f"`{word.text}` is only known when it runs, and may be several words"
            if skip:
                skip = False
            elif ended or not word.text.startswith("-") or word.text == "-":
                found.append(word)
            else:
                ended = word.text == "--"
                skip = bool(valued and re.fullmatch(rf"-[^-{valued}]*[{valued}]", word.text))
        if len(found) > most or any(not re.match(pattern, word.text) for word in found):
            return f"`{words[0].name}` may change something with these operands"
        return ""

    return check


def _only(*allowed: str) -> Check:
    def check(words: tuple[Word, ...]) -> str:
        extra = words[len(allowed) + 1 :]
        return "more words than the list of what only reads knows" if extra else ""

    return check


def _lookup(words: tuple[Word, ...]) -> str:
    second = words[1].text if len(words) > 1 else ""
    return "" if second in {"-v", "-V"} else "`command` runs its words"


def _rules() -> tuple[Rule, ...]:
    def allow(*prefix: str | list[str], unless: tuple[str, ...] = (), check: Check | None = None) -> Rule:
        return Rule(prefix=prefix, decision="allow", unless=unless, check=check, origin="read-only preset")

    return (
        *(allow(name) for name in _ANY_ARGUMENTS),
        *(allow(name, unless=options) for name, options in _WITHOUT.items()),
        allow("git", check=_git),
        allow("sed", check=_sed),
        allow("command", check=_lookup),
        allow("date", unless=("-s", "--set"), check=_operands(1, r"\+", valued="dfr")),
        allow("hostname", unless=("-F", "-b", "--file", "--boot"), check=_operands(0)),
        allow("uniq", check=_operands(1, valued="fsw")),  # the second operand is the output
        allow(["bash", "python", "python3", "node", "gcc", "make"], "--version", check=_only("--version")),
    )


READ_ONLY = RulePolicy(rules=_rules())
