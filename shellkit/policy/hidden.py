# ruff: noqa: SIM905 - a long list of words is read more easily as text
"""Builtins and programs that change what later words mean, or run text that is not there to be read.

`started.look` asks about each command. In a session that lives on, such a change would reach every later
command, allowed or not (`alias ls=...`, `hash -p`, `trap ... DEBUG`); so these are never allowed by a rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .base import Word
from .variables import is_plain_assignment

__all__ = ["RESERVED", "hidden_by_builtin"]

RESERVED = frozenset(
    "if then else elif fi do done case esac while until for select function in coproc { } ! [[ ]]".split()
)
_NAME = re.compile(r"[A-Za-z_]\w*\Z")

_Check = Callable[[tuple[Word, ...]], str]


def hidden_by_builtin(words: tuple[Word, ...]) -> str:
    """Return why the command `words` is OPAQUE by its name and arguments, or ""."""
    name = words[0].name
    if name in RESERVED:
        return f"`{name}` is a reserved word at a place that is not understood"
    if name in {".", "source"}:
        return f"`{name}` runs a file that is not looked into"
    check = _CHECKS.get(name)
    return check(words[1:]) if check else ""


def _any_argument(what: str, *harmless: str) -> _Check:
    def check(arguments: tuple[Word, ...]) -> str:
        return "" if all(word.known and word.text in harmless for word in arguments) else what

    return check


def _alias(arguments: tuple[Word, ...]) -> str:
    if all(word.known and "=" not in word.text for word in arguments):
        return ""
    return "an alias changes what later commands mean"


def _declare(arguments: tuple[Word, ...]) -> str:
    """`export NAME=value`, `declare -i`, `readonly -f`: plain names only, and no evaluation of the value."""
    for word in arguments:
        name, equals, value = word.text.partition("=")
        if word.text.startswith("-"):
            if not word.known or not set(word.text[1:]) <= set("xrpglu"):
                return "options of a declaration may change how names are read"
        elif not word.known and not equals:
            return "what is declared is only known when it runs"
        elif equals and (not is_plain_assignment(name.removesuffix("+")) or value.startswith("(")):
            return f"{name} may change what later commands run"
        elif not equals and not _NAME.match(name):
            return "what is declared is not a plain name"
    return ""


def _plain_names(what: str, flags: str, valued: str = "") -> _Check:
    """Return a check that nothing but options of these letters and plain names of variables follows."""

    def check(arguments: tuple[Word, ...]) -> str:
        value_follows = False
        for word in arguments:
            if value_follows:
                value_follows = False
            elif word.known and re.fullmatch(rf"-[{flags}{valued}]+", word.text):
                value_follows = word.text[-1] in valued
            elif not word.known or not is_plain_assignment(word.text):
                return what
        return ""

    return check


def _printf(arguments: tuple[Word, ...]) -> str:
    first = arguments[0] if arguments else Word.of("")
    if first.text.startswith("-v") or not (first.known or first.operand):
        return "`printf -v` assigns a variable, and evaluates its index"
    return ""


def _test(arguments: tuple[Word, ...]) -> str:
    evaluates = any(word.text in {"-v", "-R"} for word in arguments)
    return "`test -v` evaluates the index of a variable" if evaluates else ""


def _set(arguments: tuple[Word, ...]) -> str:
    # `set -k` makes an assignment of any word with `=`, wherever it stands.
    keyword = any(not word.known or re.match(r"-\w*k|keyword", word.text) for word in arguments)
    return "`set -k` changes how later commands are read" if keyword else ""


def _wait(arguments: tuple[Word, ...]) -> str:
    return "`wait -p` assigns a name" if any(word.text.startswith("-p") for word in arguments) else ""


_CHECKS: dict[str, _Check] = {
    "alias": _alias,
    "unalias": _any_argument("an alias changes what later commands mean"),
    "trap": _any_argument("a trap runs text at another time", "-p", "-l"),
    "hash": _any_argument("the hash table changes what later commands run", "-r"),
    "enable": _any_argument("`enable` changes what later commands run", "-a", "-p"),
    "bind": _any_argument("`bind` runs text at another time", "-p", "-P", "-l"),
    "complete": _any_argument("`complete` runs text at another time", "-p"),
    "compgen": _any_argument("`compgen` runs commands"),
    "fc": _any_argument("`fc` runs earlier commands", "-l"),
    "history": _any_argument("`history` changes or expands the history"),
    "let": _any_argument("arithmetic evaluates variables, and with them commands"),
    "export": _declare,
    "declare": _declare,
    "typeset": _declare,
    "local": _declare,
    "readonly": _declare,
    "unset": _plain_names("what is unset may change what later commands run", flags="fv"),
    "read": _plain_names("`read` assigns a name that may change what later commands run", "aers", "dinNptu"),
    "mapfile": _plain_names("`mapfile` may call back commands", "t", "dnOsu"),
    "readarray": _plain_names("`readarray` may call back commands", "t", "dnOsu"),
    "getopts": _any_argument("`getopts` assigns a name"),
    "wait": _wait,
    "set": _set,
    "printf": _printf,
    "test": _test,
    "emulate": _any_argument("`emulate` runs text"),
    "autoload": _any_argument("`autoload` defines functions"),
}
