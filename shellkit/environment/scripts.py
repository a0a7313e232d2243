"""The one command that asks a shell everything, for each kind of shell, and how to read its answer. Pure.

`probe` runs it. A line of the answer is `shellkit-probe KIND NAME EXIT-CODE TEXT`; whatever else the shell or a
program prints is skipped. The scripts change nothing in the session that they run in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..resolver import Family

__all__ = ["DEFAULT_TOOLS", "check_tools", "probe_script", "read_answer"]

DEFAULT_TOOLS = ("git", "python3", "node", "npm", "docker", "rg", "jq", "curl", "make", "gcc")

_MARK = "shellkit-probe"
_TOOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
#: More would only flood the model; each one costs three processes at once.
_MOST_TOOLS = 64
#: What tells the version where --version does not.
_VERSION_FLAGS: Mapping[str, str] = {
    "ffmpeg": "-version", "ffprobe": "-version", "go": "version", "helm": "version", "java": "-version",
    "kubectl": "version --client", "lua": "-v", "openssl": "version", "ssh": "-V", "terraform": "version",
    "tmux": "-V", "unzip": "-v", "zip": "-v",
}  # fmt: skip

# Everything happens in a subshell: no variable, function, alias, option, directory or job of the session changes.
# `&& :` keeps a previous exit code, which it ends with, from tripping errexit (POSIX 2.14, set -e). The text goes
# through eval because aliases are expanded when it is parsed, and they are gone by then.
_POSIX = r"""(\set -- "$?";\unalias -a;\eval '@BODY@'
\exit "$1")</dev/null 2>/dev/null && :"""

# Each program runs beside the others, with a limit of its own: timeout(1) where it is there and knows `-s` (busybox
# before 1.30 did not), else a sleeping child that kills it. The sleeper goes with SIGTERM and takes its sleep along,
# since a trapped signal ends `wait` (POSIX 2.12). What reads a program's output stops at the program's exit code and
# not at end-of-file, which a child of it may hold back for ever.
# In a subshell ksh93's `unset -f` removes builtins, too (93u+m/1.0.4).
_POSIX_BODY = r"""for __sk_n in printf read command kill wait sleep trap exec shift set return exit; do
  case ${KSH_VERSION-} in
    Version*) case $(whence -v "$__sk_n") in *" function"*) unset -f "$__sk_n" ;; esac ;;
    *) unset -f "$__sk_n" ;;
  esac
done
set +euxv
if command timeout -s KILL 9 true; then
  __sk_limit() { exec timeout -s KILL "$@"; }
else
  __sk_limit() {
    __sk_s=$1; shift
    (exec "$@") & __sk_p=$!
    (trap "kill \$!; exit" TERM; sleep "$__sk_s" & wait "$!"; kill -9 "$__sk_p") >/dev/null 2>&1 & __sk_w=$!
    wait "$__sk_p" 2>/dev/null; __sk_c=$?
    kill "$__sk_w"; wait "$__sk_w"
    return "$__sk_c"
  } 2>/dev/null
fi
__sk_ask() {
  __sk_k=$1; __sk_n=$2; shift 2
  if ! command -v "$1" >/dev/null; then printf "@MARK@ missing %s 127 \n" "$__sk_n"; return; fi
  { (__sk_limit @LIMIT@ "$@") 2>&1; printf "\n@MARK@%s\n" "$?"; } | {
    __sk_v=; __sk_f=
    while IFS= read -r __sk_l; do
      case $__sk_l in
        @MARK@*) printf "@MARK@ %s %s %s %s\n" "$__sk_k" "$__sk_n" "${__sk_l#@MARK@}" "${__sk_v:-$__sk_f}"; break ;;
        *[0-9]*) __sk_v=${__sk_v:-$__sk_l} ;;
        *) __sk_f=${__sk_f:-$__sk_l} ;;
      esac
    done
  } &
}
printf "@MARK@ shell - 0 %s\n" "${BASH_VERSION-}${ZSH_VERSION-}${KSH_VERSION-}"
@ASKED@
if [ -r /etc/os-release ]; then
  while IFS= read -r __sk_l; do
    case $__sk_l in NAME=*|VERSION_ID=*) printf "@MARK@ os %s 0 %s\n" "${__sk_l%%=*}" "${__sk_l#*=}" ;; esac
  done </etc/os-release
fi
wait"""

# .NET's Process and not the call operator: it can be given up, and it leaves $LASTEXITCODE alone.
_POWERSHELL = r"""& {
  $ErrorActionPreference = 'SilentlyContinue'
  function Say($kind, $name, $code, $text) { [Console]::Out.WriteLine("@MARK@ $kind $name $code $text") }
  Say shell - 0 $PSVersionTable.PSVersion
  $info = [System.Runtime.InteropServices.RuntimeInformation]
  Say system - 0 ($info::OSDescription)
  Say machine - 0 ($info::OSArchitecture)
  Say user - 0 ([Environment]::UserName)
  $asked = foreach ($pair in @(@ASKED@)) {
    $name, $flags = $pair
    $found = Get-Command -Name $name -CommandType Application | Select-Object -First 1
    if (-not $found) { Say missing $name 127 ''; continue }
    $start = New-Object System.Diagnostics.ProcessStartInfo $found.Source, $flags
    $start.UseShellExecute = $false
    $start.RedirectStandardInput = $start.RedirectStandardOutput = $start.RedirectStandardError = $true
    $process = [System.Diagnostics.Process]::Start($start)
    if (-not $process) { Say tool $name 126 ''; continue }
    $process.StandardInput.Close()
    $streams = $process.StandardOutput.ReadToEndAsync(), $process.StandardError.ReadToEndAsync()
    [pscustomobject]@{ Name = $name; Process = $process; Streams = $streams }
  }
  $end = [DateTime]::UtcNow.AddSeconds(@LIMIT@)
  foreach ($one in $asked) {
    $left = [Math]::Max(1, ($end - [DateTime]::UtcNow).TotalMilliseconds)
    if (-not $one.Process.WaitForExit([int]$left)) { $one.Process.Kill(); Say tool $one.Name 137 ''; continue }
    $lines = foreach ($stream in $one.Streams) { if ($stream.Wait(200)) { $stream.Result -split "`r?`n" } }
    Say tool $one.Name $one.Process.ExitCode ($lines -match '\d' | Select-Object -First 1)
  }
}"""

# cmd cannot end a program that hangs, so it starts none: it says what is there, and no versions.
_CMD = (
    "(ver & echo @MARK@ machine - 0 %PROCESSOR_ARCHITECTURE% & echo @MARK@ user - 0 %USERNAME%@ASKED@) 2>nul"
    " & cd . 2>nul"  # `cd .` succeeds, so that a missing tool's errorlevel is not the last word
)
_CMD_TOOL = " & (where /q @NAME@ && echo @MARK@ tool @NAME@ -1 - || echo @MARK@ missing @NAME@ 127 -)"
_VER = re.compile(r"(Microsoft Windows).*?(\d+(?:\.\d+)+)")

_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[-+.]?(?:alpha|beta|dev|pre|rc)[\w.]*|(?:a|b|rc|p)\d+|\w?)")
_NUMBER = re.compile(r"(?<![\w.])[vr]?(\d+)\b", re.IGNORECASE)
_KORN = re.compile(r"\bR\d+\b|93\S*")  # mksh R59, ksh93 "Version AJM 93u+m/1.0.4 2022-10-22"
_KERNEL = re.compile(r"(\S+) (\S+) (\S+)")


def check_tools(tools: Iterable[str]) -> tuple[str, ...]:
    """Return the names without those that repeat an earlier one but for case.

    Raises:
        TypeError: `tools` is a string, or holds something else than strings.
        ValueError: a name is not `[A-Za-z0-9][A-Za-z0-9._+-]*`, or there are more than 64.
    """
    if isinstance(tools, str):
        raise TypeError(f"tools is a collection of names, not the string {tools!r}; write ({tools!r},)")
    names: dict[str, str] = {}
    for name in tools:
        if not isinstance(name, str):
            raise TypeError(f"the name of a tool is a string, not {type(name).__name__}")
        if not _TOOL_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} cannot be the name of a tool: name a program without path or options, with letters, "
                "digits, '.', '_', '+', '-', and a letter or digit first"
            )
        names.setdefault(name.lower(), name)
    if len(names) > _MOST_TOOLS:
        raise ValueError(f"{len(names)} tools are too many to tell a model about; name at most {_MOST_TOOLS}")
    return tuple(names.values())


def probe_script(family: Family, tools: Sequence[str], limit: float) -> str:
    """Return the command to run.

    Args:
        family: the shell's dialect.
        tools: names that `check_tools` has passed.
        limit: seconds that a single program may take.
    """
    flags = {tool: _VERSION_FLAGS.get(tool.lower(), "--version") for tool in tools}
    if family == "cmd":
        return _fill(_CMD, ASKED="".join(_fill(_CMD_TOOL, NAME=tool) for tool in tools))
    if family == "powershell":
        pairs = ", ".join(f"@('{tool}', '{flag}')" for tool, flag in flags.items())
        return _fill(_POWERSHELL, ASKED=f",{pairs}" if len(tools) == 1 else pairs, LIMIT=f"{limit:g}")
    asked = [f"__sk_ask tool {tool} {tool} {flag}" for tool, flag in flags.items()]
    asked += ["__sk_ask kernel - uname -srm", "__sk_ask user - id -un", "__sk_ask macos - sw_vers -productVersion"]
    if family == "busybox":
        asked.append("__sk_ask shell - busybox --help")
    # Only whole seconds are sure to be understood by sleep (POSIX) and by busybox' timeout.
    seconds = str(int(limit)) if limit >= 1 else f"{limit:.2f}"
    return _fill(_POSIX, BODY=_fill(_POSIX_BODY, ASKED="\n".join(asked), LIMIT=seconds))


def read_answer(answer: str, tools: Sequence[str]) -> dict[str, Any]:
    """Return what a probe has printed as arguments of `ShellEnvironment`; an answer that was cut off gives less."""
    said: dict[tuple[str, str], str] = {}
    missing: dict[str, None] = {}
    for line in answer.splitlines():
        if match := _VER.match(line.strip()):
            said["system", "-"] = f"{match[1]} {match[2]}"
        mark, _, rest = line.partition(" ")
        if mark != _MARK:
            continue
        kind, name, code, text = [*rest.split(" ", 3), "", "", ""][:4]
        if kind == "missing" and name in tools:
            missing[name] = None
        elif code.strip() == "0" and text.strip():
            said.setdefault((kind, name), text.strip())
    kernel = _KERNEL.fullmatch(said.get(("kernel", "-"), ""))
    return {
        "answered": f"{_MARK} " in answer,
        "shell_version": _shell_version(said.get(("shell", "-"), "")),
        **_system(said),
        "kernel": _plain(f"{kernel[1]} {kernel[2]}") if kernel else None,
        "architecture": _plain(kernel[3] if kernel else said.get(("machine", "-"), "")),
        "user": _plain(said.get(("user", "-"), "")),
        "tools": {tool: _version(said.get(("tool", tool), "")) for tool in tools},
        "missing": tuple(missing),
    }


def _system(said: Mapping[tuple[str, str], str]) -> dict[str, str | None]:
    if version := said.get(("macos", "-")):
        return {"os_name": "macOS", "os_version": _version(version)}
    if described := said.get(("system", "-")):
        version = _version(described)
        return {"os_name": _plain(described.partition(version or "\0")[0]), "os_version": version}
    # Values are shell words, quoted at need (os-release(5)); the marks are all that is undone here.
    name, version = (said.get(("os", key), "").strip("\"'") for key in ("NAME", "VERSION_ID"))
    return {"os_name": _plain(name), "os_version": _plain(version)}


def _shell_version(text: str) -> str | None:
    match = _KORN.search(text) if "KSH" in text or "Version" in text else None
    return match[0] if match else _version(text)


def _version(text: str) -> str | None:
    if match := _VERSION.search(text):
        return match[0]
    number = _NUMBER.search(text)
    return number[1] if number else None


def _plain(text: str) -> str | None:
    """What a machine says of itself goes to a model: one short line, nothing that does not print."""
    return "".join(char for char in text if char.isprintable())[:80].strip() or None


def _fill(template: str, **values: str) -> str:
    for name, value in {**values, "MARK": _MARK}.items():
        template = template.replace(f"@{name}@", value)
    return template
