# ruff: noqa: SIM905 - a long list of words is read more easily as text
"""What a simple command starts in its turn: `env rm` starts rm, `bash -c TEXT` a whole script, `xargs` its words.

`parse` asks `look()` about each command and judges what comes back like any other segment. A wrapper that is
used in a way this file does not know is OPAQUE and `launches`: rules that deny are then tried on each of its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from .base import Clarity, Word
from .hidden import RESERVED, hidden_by_builtin
from .phrase import Match, find_phrase
from .variables import is_plain_prefix

__all__ = ["SHELLS", "WRAPPERS", "Look", "look"]

SHELLS = frozenset("ash bash dash fish hush ksh ksh93 lksh mksh oksh osh pdksh posh rbash sh yash zsh csh tcsh".split())
_READ_BY_BASH = frozenset({"bash", "rbash"})
_READ_BY_SH = frozenset({"sh", "dash", "ash", "ksh", "ksh93", "mksh", "lksh", "oksh", "pdksh", "posh", "yash", "hush"})

_INTERPRETERS = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|luajit|tclsh|wish|expect|rscript|guile|scheme|racket|elixir|"
    r"erl|escript|groovy|scala|julia|irb|iex|ghci|runghc|deno|bun|tsx|ts-node|osascript|awk|gawk|mawk|nawk|"
    r"pwsh|powershell|cmd|wscript|cscript|gdb|vi|vim|nvim|ex|ed|emacs|m4)(?:[\d.]*)(?:\.exe)?\Z"
)
_CODE_OPTIONS = re.compile(r"-[A-Za-z]*[ceErRp]|--(?:eval|execute|print|command|run)(?:=|\Z)")
# Programs that start a command in ways that this file does not read.
_LAUNCHERS = frozenset(
    "ssh su runuser pkexec doas-edit watch script strace ltrace parallel flock unshare nsenter chrt taskset "
    "numactl prlimit firejail bwrap systemd-run docker podman kubectl crun runc lxc-attach machinectl proot "
    "fakeroot dbus-run-session xvfb-run start-stop-daemon daemonize tmux screen rlwrap unbuffer entr valgrind "
    "perf caffeinate coproc catchsegv setpriv capsh sg newgrp at batch crontab socat ncat nc setarch linux32 linux64 "
    "runcon chpst setuidgid s6-setuidgid softlimit gosu su-exec tini dumb-init catatonit faketime proxychains "
    "proxychains4 torsocks torify systemd-inhibit systemd-nspawn dbus-launch lxc incus vagrant wsl cgexec cpulimit "
    "eatmydata chronic sem sshpass mosh autossh dtach abduco zellij watchexec nix-shell rr lldb".split()
)
# Programs that start a command behind these words ("": whatever comes). Unlike a launcher, a rule that names the words
# may allow one (`uv run pytest`).
_RUNNERS = {
    "npx": ("",), "pnpx": ("",), "bunx": ("",), "uvx": ("",), "npm": ("exec", "x"), "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"), "bun": ("x",), "pipx": ("run",), "uv": ("run", "tool run"), "poetry": ("run",),
    "pipenv": ("run",), "pdm": ("run",), "hatch": ("run", "env run"), "rye": ("run",), "pixi": ("run", "exec"),
    "conda": ("run",), "mamba": ("run",), "micromamba": ("run",), "bundle": ("exec",), "mise": ("exec", "x"),
    "asdf": ("exec",), "rbenv": ("exec",), "pyenv": ("exec",), "nodenv": ("exec",), "direnv": ("exec",),
    "devbox": ("run",), "nix": ("run", "shell", "develop"), "guix": ("shell", "environment"), "op": ("run",),
    "doppler": ("run",), "chamber": ("exec",), "aws-vault": ("exec",),
    "git": ("bisect run", "submodule foreach", "filter-branch"),
}  # fmt: skip


@attrs.frozen
class Wrapper:
    """How to find the command behind a wrapper's own options.

    Attributes:
        flags: short options without a value.
        valued: short options with a value.
        long_flags: long options without a value.
        long_valued: long options with one (after `=` or as the next word).
        operands: words before the command that belong to the wrapper (`timeout 5`).
        assigns: `NAME=value` words stand before the command.
        numeric: `-5` is an option (`nice -5`).
    """

    flags: str = ""
    valued: str = ""
    long_flags: str = ""
    long_valued: str = ""
    operands: int = 0
    assigns: bool = False
    numeric: bool = False


WRAPPERS = {
    "env": Wrapper("i0v", "uC", "ignore-environment null debug", "unset chdir", assigns=True),
    "command": Wrapper("p"),
    "builtin": Wrapper(),
    "exec": Wrapper("cl", "a"),
    "nice": Wrapper("", "n", "", "adjustment", numeric=True),
    "nohup": Wrapper(),
    "time": Wrapper("pavqh", "fo", "portability append verbose quiet", "format output"),
    "timeout": Wrapper("v", "ks", "foreground preserve-status verbose", "kill-after signal", operands=1),
    "sudo": Wrapper(
        "nEHbkKASP", "ugpCDRTrth", "non-interactive preserve-env set-home background reset-timestamp askpass stdin",
        "user group prompt close-from chdir chroot command-timeout role type host", assigns=True,
    ),
    "doas": Wrapper("n", "uC"),
    "xargs": Wrapper(
        "0rtxpo", "InPLdEsa", "null no-run-if-empty verbose exit interactive open-tty",
        "max-args max-procs delimiter max-chars arg-file process-slot-var",
    ),
    "stdbuf": Wrapper("", "ioe", "", "input output error"),
    "setsid": Wrapper("cfw", "", "ctty fork wait"),
    "ionice": Wrapper("t", "cn", "ignore", "class classdata"),
    "chroot": Wrapper("", "", "skip-chdir", "userspec groups", operands=1),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
}  # fmt: skip


@attrs.frozen(kw_only=True)
class Look:
    """What looking at one simple command tells.

    Attributes:
        commands: the commands that it starts, as words.
        texts: the shell texts that it runs, each with the dialect of the shell that reads it.
        clarity: see `Segment`.
        why: see `Segment`.
        launches: see `Segment`.
    """

    commands: tuple[tuple[Word, ...], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    clarity: Clarity = Clarity.CLEAR
    why: str = ""
    launches: bool = False


_NOTHING = Look()


def _opaque(why: str, *, launches: bool = True, texts: Sequence[tuple[str, str]] = ()) -> Look:
    return Look(clarity=Clarity.OPAQUE, why=why, launches=launches, texts=tuple(texts))


def look(words: tuple[Word, ...], dialect: str) -> Look:
    """Return what the simple command `words` starts in its turn, and how much of that is known.

    Args:
        words: the words of the command, its name first.
        dialect: the dialect of the text that the command stands in (`eval` reads its words in it).
    """
    name = words[0].name.lower()  # file systems that ignore case run `RM`
    hidden = hidden_by_builtin(words)
    if hidden:
        texts = [(re.sub(r"\A\w+=", "", word.text), dialect) for word in words[1:] if word.known and " " in word.text]
        return _opaque(hidden, launches=name in RESERVED, texts=texts)
    if not words[0].known:
        return _opaque("the command's name is only known when it runs")
    if name == "eval":
        return _eval(words, dialect)
    if name in SHELLS:
        return _shell(words, name)
    if name in {"fd", "fdfind"} and any(re.match(r"-\w*[xX]|--exec", word.text) for word in words):
        return _opaque(f"`{name} --exec` starts commands in a way that is not looked into")
    if name == "find":
        return _find(words)
    if name in {"command", "sudo"} and len(words) > 1 and words[1].text in {"-v", "-V", "-l", "-ll"}:
        return _NOTHING
    if name in WRAPPERS:
        return _wrapper(words, WRAPPERS[name])
    if name in _LAUNCHERS or (name == "shellkit" and _session_of_ours(words)):
        return _opaque(f"`{name}` starts commands in a way that is not looked into", texts=_texts(words))
    if name in _RUNNERS and _runs(words, _RUNNERS[name]):
        why = f"`{name}` starts a command that is not looked into"
        return Look(clarity=Clarity.INDIRECT, why=why, launches=True, texts=tuple(_texts(words)))
    if _INTERPRETERS.match(name):
        return _interpreter(words, name)
    return _NOTHING


def _runs(words: tuple[Word, ...], phrases: Sequence[str]) -> bool:
    return any(find_phrase(words, [(word,) for word in phrase.split()]) is Match.YES for phrase in phrases)


def _session_of_ours(words: tuple[Word, ...]) -> bool:
    """Return whether our own command line starts a session that asks nobody; a sub-agent's commands are asked about."""
    return len(words) > 1 and (not words[1].known or words[1].text in ("run", "repl"))


def _texts(words: tuple[Word, ...]) -> list[tuple[str, str]]:
    """Return the arguments that may be shell text (`su -c 'rm x'`, `env -S 'rm x'`)."""
    return [(word.text, "sh") for word in words[1:] if word.known and re.search(r"[\s;|&]", word.text)]


def _eval(words: tuple[Word, ...], dialect: str) -> Look:
    if not all(word.known for word in words):
        return _opaque("`eval` runs text that is only known when it runs")
    text = " ".join(word.text for word in words[1 + (words[1:2] == (Word.of("--"),)) :])
    return Look(texts=((text, dialect),)) if text else _NOTHING


def _shell(words: tuple[Word, ...], name: str) -> Look:
    """Read `bash [options] -c TEXT`; every other call of a shell runs a file or its standard input."""
    if [word.text for word in words[1:]] == ["--version"] and words[1].known:
        return _NOTHING
    position, text_follows = 1, False
    while position < len(words) and words[position].known and re.match(r"[-+].", words[position].text):
        option = words[position].text
        position += 1
        if option in {"--rcfile", "--init-file"} or (option[:2] != "--" and "s" in option):
            return _opaque(f"`{name}` runs commands from elsewhere")
        if option == "--":
            break
        if option[:2] != "--":
            text_follows = text_follows or (option[0] == "-" and "c" in option)
            position += sum(letter in "oO" for letter in option[1:])
    if not text_follows:
        return _opaque(f"`{name}` runs a file or its standard input, which is not looked into")
    if position >= len(words) or not words[position].known:
        return _opaque(f"`{name} -c` runs text that is only known when it runs")
    dialect = "bash" if name in _READ_BY_BASH else "sh" if name in _READ_BY_SH else name
    return Look(texts=((words[position].text, dialect),))


def _find(words: tuple[Word, ...]) -> Look:
    """Read `find ... -exec COMMAND ;`; `-delete` is judged as the `rm` that it is."""
    commands: list[tuple[Word, ...]] = []
    start: int | None = None
    if not all(word.known or word.operand for word in words):
        return _opaque("`find` gets words that are only known when it runs, and may be `-exec`")
    for position, word in enumerate(words):
        ended = word.text == ";" or (word.text == "+" and words[position - 1].text == "{}")
        if start is not None and word.known and ended:
            commands.append(tuple(_templated(each, "{}") for each in words[start:position]))
            start = None
        elif start is None and word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
            start = position + 1
        elif start is None and word.text == "-delete":
            commands.append((Word.of("rm"), Word("-delete", known=False)))
    if start is not None:
        return _opaque("the command behind `-exec` of `find` has no end")
    return Look(commands=tuple(command for command in commands if command))


def _templated(word: Word, placeholder: str) -> Word:
    return Word(word.text, known=False) if placeholder in word.text else word


def _wrapper(words: tuple[Word, ...], wrapper: Wrapper) -> Look:
    name = words[0].name
    start = _skip_options(words, wrapper)
    if start is None:
        return _opaque(f"`{name}` is used in a way that is not looked into", texts=_texts(words))
    if wrapper.assigns:
        while start < len(words) and re.match(r"[A-Za-z_]\w*=", words[start].text):
            variable = words[start].text.partition("=")[0]
            if not is_plain_prefix(variable):
                return _opaque(f"`{name}` sets {variable}, which may change what the command runs")
            start += 1
    start += wrapper.operands
    inner = words[start:]
    if not inner:
        return _NOTHING
    if name == "xargs":
        for placeholder in _placeholders(words[1:start]):
            inner = tuple(_templated(word, placeholder) for word in inner)
        inner = (*inner, Word("...", known=False))
    return Look(commands=(inner,))


def _placeholders(options: tuple[Word, ...]) -> set[str]:
    found = {"{}"}
    for position, word in enumerate(options):
        match = re.match(r"-\w*?[Ii](.*)|--replace(?:=(.*))?\Z", word.text)
        if match:
            found.add(match[1] or match[2] or (options[position + 1].text if position + 1 < len(options) else "{}"))
    return found


def _skip_options(words: tuple[Word, ...], wrapper: Wrapper) -> int | None:
    """Return the offset of the first word that is no option, or None if an option is not known here."""
    position = 1
    while position < len(words):
        word = words[position]
        text = word.text
        if not word.known and not word.operand:
            return None
        if not word.known or not text.startswith("-"):
            return position
        position += 1
        if text == "--":
            return position
        if text == "-":
            if "i" in wrapper.flags:
                continue
            return position - 1
        if text.startswith("--"):
            option, equals, _ = text[2:].partition("=")
            if option in wrapper.long_valued.split():
                position += not equals
            elif option not in wrapper.long_flags.split():
                return None
        elif not (wrapper.numeric and text[1:].isdigit()):
            step = _skip_cluster(text[1:], wrapper)
            if step is None:
                return None
            position += step
    return position


def _skip_cluster(letters: str, wrapper: Wrapper) -> int | None:
    for offset, letter in enumerate(letters):
        if letter in wrapper.valued:
            return int(offset == len(letters) - 1)  # the value is the rest of this word, or else the next word
        if letter not in wrapper.flags:
            return None
    return 0


def _interpreter(words: tuple[Word, ...], name: str) -> Look:
    rest = words[1:]
    if len(rest) == 1 and rest[0].known and rest[0].text in {"--version", "-V", "-v", "--help"}:
        return _NOTHING
    if re.match(r"[gmn]?awk", name):
        return Look(clarity=Clarity.INDIRECT, why=f"`{name}` runs a program that may start commands")
    for word in rest:
        if not word.text.startswith("-") and word.known:
            return Look(clarity=Clarity.INDIRECT, why=f"`{name}` runs a program that is not looked into")
        if not word.known or word.text == "-" or _CODE_OPTIONS.match(word.text):
            return _opaque(f"`{name}` runs code that is given to it and is not looked into")
    return _opaque(f"`{name}` runs its standard input")
