"""Which shell: turns what a caller, an environment variable or the platform names into one `Shell`.

Called by executors and `environment`. It looks at the file system; it never starts a process or reads `os.environ`.
"""

from __future__ import annotations

import ntpath
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

import attrs

from .errors import SpawnError

__all__ = ["Family", "Shell", "resolve"]

Family = Literal["bash", "dash", "busybox", "zsh", "ksh", "mksh", "sh", "powershell", "cmd"]

_FAMILIES: Mapping[str, Family] = {
    **{family: family for family in get_args(Family)},
    **dict.fromkeys(("ash", "hush", "yash", "oksh", "pdksh", "posh", "osh"), "sh"),
    "lksh": "mksh",
    "pwsh": "powershell",
}
_REFUSED = frozenset({"fish", "nu", "nushell", "tcsh", "csh", "xonsh", "elvish", "ysh", "oil"})
# rbash, bash-5.3, zsh5, ksh93u+m, bash-static, pwsh-preview; busybox is shipped as busybox-x86_64, busybox.static, ...
_VERSIONED = re.compile(
    r"(?:r(?=bash|zsh|ksh))?([a-z]+)(?:|[-.]?\d[\w.+-]*|[-.](?:static|preview)[\w.+-]*|(?<=busybox)[-.].*)"
)
_APPLETS = frozenset({"sh", "ash", "hush", "bash"})  # shells in busybox, which goes by argv[0]
# cmd needs /v:on for !errorlevel!: %errorlevel% is expanded when the line is read, not when it runs (`set /?`).
_FLAGS: Mapping[Family, tuple[str, ...]] = {
    "bash": ("--noprofile", "--norc"),
    "zsh": ("-f",),
    "powershell": ("-NoLogo", "-NoProfile", "-NonInteractive"),
    "cmd": ("/d", "/q", "/v:on"),
}
# What stops a POSIX shell from reading its stdin, or makes it act as if a person sat there: script in argv, login,
# interactive, parse only, one command, list strings; `--x` and `-o x` (zsh's --emulate makes another dialect of it).
_STOP_LETTERS = frozenset("cilntD")
_STOP_NAMES = re.compile(
    "login(shell)?|interactive|noexec|onecmd|singlecommand|emulate|rcfile|initfile|help|version|dump(po)?strings|prettyprint"
)
# What leaves PowerShell reading its stdin: switches, valued, -Command (CommandLineParameterParser.cs, MatchSwitch).
_PS_PARAMETER = re.compile(
    r"(?i)(?:--?|/)(?:(?!noprofilel)(nop|nol|noni|sta|mta)\w*|(ex|ep|w|config|cus|settings)\w*|(c|com{0,2}|comman?d?))"
)
_CMD_SWITCH = re.compile(r"/(?:[adqs]|t:[0-9a-f]{1,2}|f:(?:on|off)|[ev](?::on)?)", re.IGNORECASE)
_EXAMPLE = 'for example "bash", "/bin/sh" or ["bash", "-e"]'


@attrs.frozen
class Shell:
    """A shell, and how to start it so that it reads commands from its stdin.

    Attributes:
        program: the file to start, absolute when found on this host; a link stays one, since busybox, bash and zsh
            behave by the name they are started with.
        family: which dialect it speaks.
        arguments: the caller's own extra arguments, as given.
    """

    program: str
    family: Family
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What a person calls it: `bash`, `sh`, `busybox sh`, `pwsh`."""
        base = re.sub(r"\.exe$", "", ntpath.basename(self.program), flags=re.IGNORECASE)
        return " ".join((base, *self._parts[0]))

    @property
    def persistent_argv(self) -> tuple[str, ...]:
        """The argv that reads its script from stdin; argv[0] is `program`, no flag is added that was given."""
        given = {_flag(self.family, argument) for argument in self.arguments}
        flags = [flag for flag in _FLAGS.get(self.family, ()) if _flag(self.family, flag) not in given]
        # Everything after -Command is its value (about_Pwsh), so it comes last.
        last = ("-Command", "-") if self.family == "powershell" and "command" not in given else ()
        return (self.program, *self._parts[0], *flags, *self._parts[1], *last)

    @property
    def stateless_argv(self) -> tuple[str, ...]:
        """The same argv: `-c` would stop at 128 KiB a command (Linux MAX_ARG_STRLEN) and show it in `ps`."""
        return self.persistent_argv

    @property
    def _parts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The applet that a busybox which is no link must be told, and the options."""
        if self.family != "busybox" or not ntpath.basename(self.program).lower().startswith("busybox"):
            return (), self.arguments
        named = _APPLETS.intersection(self.arguments[:1])
        return (self.arguments[:1], self.arguments[1:]) if named else (("sh",), self.arguments)


def resolve(
    shell: str | os.PathLike[str] | Sequence[str] | None = None,
    *,
    environ: Mapping[str, str],
    platform: str = sys.platform,
) -> Shell:
    """Finds the shell to use: `shell`, else $SHELLKIT_SHELL, else $AGENT_FRAMEWORK_SHELL, else the platform's.

    A string is first taken whole as one program, then split (POSIX: shlex; Windows: CommandLineToArgvW); a path is
    not split, a list is taken as it is. A bare name is looked up on PATH (never in its relative entries), then where
    the platform keeps its shells. The default is bash, then sh; on Windows pwsh, powershell, cmd. An unknown program is
    accepted as family "sh", its arguments unchecked (`env`, `nice`): the start-up handshake will find out.

    Args:
        shell: a name, a path, a command line or an argv; None takes the next choice.
        environ: the variables to consult; blank ones count as unset.
        platform: a `sys.platform` value; all but "win32" have POSIX' rules.

    Returns:
        The shell; nothing has been started.

    Raises:
        TypeError: `shell` is of another type.
        ValueError: it is blank, holds a NUL or a non-string, or an argument that stops it from reading its stdin.
        SpawnError: no such program, or a shell that cannot be given commands safely (fish, tcsh, nu ...).
    """
    host = _Host(environ, platform == "win32")
    source, choice = _choice(shell, host)
    tried: list[str] = []
    for words in _candidates(choice, source, host.windows):
        if program := host.find(words[0], tried):
            family = host.family(program)
            found = Shell(program, family or "sh", tuple(words[1:]))
            if not family or (blocker := _blocker(found)) is None:
                return found
            raise ValueError(f"{source} must be a program that reads commands from its stdin; leave out {blocker!r}")
    host.refuse(words[0])
    wanted = choice if isinstance(choice, str) else choice[0] if choice else "the platform's default"
    raise SpawnError(
        f"shell not found: {wanted}{f', named by {source}' if source != 'shell' else ''} (tried: {'; '.join(tried)}); "
        f"install it, or name an executable one with shell= or $SHELLKIT_SHELL, {_EXAMPLE}; "
        "a path with blanks that has arguments must be quoted, or a list"
    )


def _choice(shell: object, host: _Host) -> tuple[str, str | list[str] | None]:
    """Who chose, and what: a string may still be split, a list is an argv, None is the default."""
    if shell is None:
        for source in ("SHELLKIT_SHELL", "AGENT_FRAMEWORK_SHELL"):
            if host.variable(source).strip():
                return f"${source}", host.variable(source).strip()
        return "shell", None
    shell = [os.fspath(shell)] if isinstance(shell, os.PathLike) else shell
    if isinstance(shell, bytes | bytearray | memoryview) or not isinstance(shell, Sequence):
        raise TypeError(f"shell must be a string, a path or a list of strings, {_EXAMPLE}; got {type(shell).__name__}")
    return "shell", shell if isinstance(shell, str) else list(shell)


def _candidates(choice: str | list[str] | None, source: str, windows: bool) -> Iterator[list[str]]:
    """The argvs to try in turn; the string is split only when nothing has its whole text as a name."""
    if choice is None:
        yield from ([name] for name in (("pwsh", "powershell", "cmd") if windows else ("bash", "sh")))
        return
    yield (whole := _valid([choice] if isinstance(choice, str) else choice, source))
    if isinstance(choice, str):
        try:
            words = _split_windows(choice) if windows else shlex.split(choice)
        except ValueError as error:
            raise ValueError(f"{source} cannot be split ({error}): close the quotation, or pass a list") from error
        if words != whole:
            yield _valid(words, source)


def _valid(words: list[str], source: str) -> list[str]:
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"{source} must hold only strings, {_EXAMPLE}")
    if not words or not words[0].strip():
        raise ValueError(f"{source} must not be blank: name a program, {_EXAMPLE}; None takes the platform's default")
    if any("\0" in word for word in words):
        raise ValueError(f"{source} must not hold a NUL byte: no name or argument of a program can; leave it out")
    return words


@attrs.frozen
class _Host:
    """Where programs are, and how their names are written, on one platform."""

    environ: Mapping[str, str]
    windows: bool

    def variable(self, name: str) -> str:
        same = str.upper if self.windows else str
        return next((value for key, value in self.environ.items() if same(key) == same(name)), "")

    def directories(self) -> list[str]:
        entries = [entry.strip('"') for entry in self.variable("PATH").split(";" if self.windows else ":")]
        usual = [os.path.join(self.variable("SystemRoot") or r"C:\Windows", "System32")]
        usual = usual if self.windows else ["/bin", "/usr/bin", "/usr/local/bin"]
        return list(dict.fromkeys([*filter(os.path.isabs, entries), *usual]))

    def find(self, name: str, tried: list[str]) -> str | None:
        """The program's path, or None with what was looked at appended to `tried`."""
        bare = not re.search(r"[\\/:]" if self.windows else "/", name)
        directories = self.directories() if bare else [""]
        names = (f"{name}.exe", name) if self.windows else (name,)
        tried.append(f"{name} in {', '.join(directories)}" if bare else name)
        for path in (os.path.join(directory, name) for directory in directories for name in names):
            if os.path.isfile(path) and os.access(path, os.X_OK):
                # Joined and not normalised: `link/../bash` need not be `bash`.
                return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
            if os.path.exists(path):
                tried.append(f"{path} is {'a directory' if os.path.isdir(path) else 'not an executable file'}")
        return None

    def stem(self, path: str) -> str:
        """The base name as the tables have it: no version; on Windows neither case nor .exe."""
        base = ntpath.basename(path)
        base = base.lower().removesuffix(".exe") if self.windows else base
        return match[1] if (match := _VERSIONED.fullmatch(base)) else base

    def refuse(self, path: str) -> None:
        if (name := self.stem(path)) in _REFUSED:
            raise SpawnError(
                f"{name} is not a POSIX shell: shellkit cannot give it commands safely; name bash, sh, zsh, ksh, mksh, "
                f"busybox, pwsh or cmd, and run `{name} -c ...` inside it"
            )

    def family(self, program: str) -> Family | None:
        """What `program` speaks when started by this name; None when neither its name nor its link's end says."""
        target = os.path.realpath(program)
        self.refuse(program)
        self.refuse(target)
        called, real = self.stem(program), _FAMILIES.get(self.stem(target))
        if real == "busybox":  # on Alpine /bin/cat is such a link too
            return "busybox" if called in _APPLETS else _FAMILIES.get(called)
        if called in ("sh", "ash"):  # bash, zsh, ksh93 and mksh turn to their POSIX modes under this name
            return "dash" if real == "dash" else "sh"
        if real == "zsh" and called.removeprefix("r")[:1] in ("b", "s", "k"):
            return "sh"  # by the first letter, zsh emulates sh or ksh (zsh(1), COMPATIBILITY)
        return real or _FAMILIES.get(called)


def _split_windows(line: str) -> list[str]:
    r"""Splits as CommandLineToArgvW does: back-slashes are special only before a quotation mark, never in argv[0]."""
    program, rest = re.findall(r'("[^"]*"?|[^ \t]*)(.*)', line.strip(), re.DOTALL)[0]
    words, quotes, between = [program.replace('"', "") if program[:1] == '"' else program], 0, True
    for blank, slashes, marks, plain in re.findall(r'([ \t]+)|(\\*)("+)|(\\+|[^\\" \t]+)', rest):
        if blank and not quotes:
            between = True
            continue
        words, between = [*words, ""] if between else words, False
        literal = len(slashes) % 2
        words[-1] += blank + plain + "\\" * (len(slashes) // 2) + '"' * literal
        for _ in range(len(marks) - literal):
            quotes = (quotes + 1) % 3
            words[-1] += '"' if quotes == 0 else ""  # the third mark in a row is text, and closes the quotation
        quotes %= 2
    return words


def _blocker(shell: Shell) -> str | None:
    """The first argument that keeps the shell from reading its stdin, or None."""
    if shell.family == "cmd":
        return next((argument for argument in shell.arguments if not _CMD_SWITCH.fullmatch(argument)), None)
    if shell.family != "powershell":
        return _posix_blocker(shell._parts[1])
    rest = iter(shell.arguments)
    for argument in rest:
        match = _PS_PARAMETER.fullmatch(argument)
        if match is None or (match[3] and list(rest) != ["-"]):
            return argument
        if match[2]:
            next(rest, None)
    return None


def _posix_blocker(arguments: Sequence[str]) -> str | None:
    stdin, rest = False, iter(arguments)
    for argument in rest:
        if argument in ("-", "--") or argument[:1] not in ("-", "+"):
            operand = next(rest, None) if argument in ("-", "--") else argument
            return None if stdin else operand  # after -s, operands are $1, $2, ...
        long = argument.startswith("--")
        names = [argument] if long else [next(rest, "") for letter in argument if letter in "oO"]
        short = argument[0] == "-" and not long
        if argument[0] == "-" and any(_STOP_NAMES.fullmatch(re.sub("[-_]", "", name.lower())) for name in names):
            return argument if long else " ".join((argument, *names))
        if short and _STOP_LETTERS.intersection(argument):
            return argument
        stdin = stdin or (short and "s" in argument)
    return None


def _flag(family: Family, argument: str) -> str:
    """One spelling for each flag, to compare them by."""
    if family == "cmd":
        return argument.lower().partition(":")[0]
    match = _PS_PARAMETER.fullmatch(argument) if family == "powershell" else None
    return (match[1] or match[2] or "command").lower() if match else argument
