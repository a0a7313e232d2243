"""Which shell is chosen, found, told apart and started; on Linux for both platforms' rules."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shellkit.errors import SpawnError
from shellkit.resolver import Shell, resolve

Make = Callable[..., str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes an executable file, or a link to one, under the test's own directory."""

    def make(name: str, link_to: str | None = None, mode: int = 0o755) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if link_to is None:
            path.touch()
            path.chmod(mode)
        else:
            path.symlink_to(link_to)
        return str(path)

    return make


def required(name: str) -> str:
    """The path of a real shell, or a skip with its reason."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed here")
    return path


# ---------------------------------------------------------------- the order of the choice


@pytest.mark.parametrize(
    ("explicit", "variables", "expected"),
    [
        ("a", {"SHELLKIT_SHELL": "b", "AGENT_FRAMEWORK_SHELL": "c"}, "a"),
        (None, {"SHELLKIT_SHELL": "b", "AGENT_FRAMEWORK_SHELL": "c"}, "b"),
        (None, {"AGENT_FRAMEWORK_SHELL": "c"}, "c"),
        (None, {"SHELLKIT_SHELL": "", "AGENT_FRAMEWORK_SHELL": "c"}, "c"),
        (None, {"SHELLKIT_SHELL": " \t\n", "AGENT_FRAMEWORK_SHELL": "  "}, "bash"),
        (None, {"SHELLKIT_SHELL": "b\n"}, "b"),
        (None, {}, "bash"),
    ],
)
def test_choice_order(
    make: Make, tmp_path: Path, explicit: str | None, variables: dict[str, str], expected: str
) -> None:
    """The explicit choice beats our variable, which beats the peer's, which beats the default; blank is unset."""
    for name in ("a", "b", "c", "bash", "sh"):
        make(name)
    shell = resolve(explicit, environ={"PATH": str(tmp_path), **variables})
    assert shell.program == str(tmp_path / expected)


def test_default_prefers_bash_anywhere_to_sh_on_path(make: Make, tmp_path: Path) -> None:
    """On POSIX bash in a usual directory comes before an sh that is on PATH."""
    make("sh")
    required("bash")
    assert resolve(environ={"PATH": str(tmp_path)}).name == "bash"


def test_default_path_comes_before_the_usual_directories(make: Make, tmp_path: Path) -> None:
    """A bash on PATH (Nix, Homebrew) is taken before /bin/bash."""
    program = make("bash")
    assert resolve(environ={"PATH": f"/nonexistent:{tmp_path}"}).program == program


def test_default_without_path() -> None:
    """With no PATH at all the usual directories are looked at."""
    required("bash")
    assert resolve(environ={}).family == "bash"


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_default_not_found_names_every_candidate(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    """When no default exists the error lists what was tried, and where, and the remedy."""
    monkeypatch.setattr(os.path, "isfile", lambda path: False)
    with pytest.raises(SpawnError) as caught:
        resolve(environ={"PATH": "/one;/two" if platform == "win32" else "/one:/two"}, platform=platform)
    message = str(caught.value)
    names = ("pwsh", "powershell", "cmd") if platform == "win32" else ("bash", "sh")
    assert all(f"{name} in /one, /two, " in message for name in names)
    assert "shell not found" in message
    assert "$SHELLKIT_SHELL" in message


@pytest.mark.parametrize(
    ("files", "expected", "family"),
    [
        (["bin/pwsh.exe", "bin/powershell.exe", "win/System32/cmd.exe"], "bin/pwsh.exe", "powershell"),
        (["bin/powershell.exe", "win/System32/cmd.exe"], "bin/powershell.exe", "powershell"),
        (["win/System32/cmd.exe"], "win/System32/cmd.exe", "cmd"),
    ],
)
@pytest.mark.parametrize("names", [("PATH", "SystemRoot"), ("Path", "SYSTEMROOT")])
def test_default_on_windows(
    make: Make, tmp_path: Path, files: list[str], expected: str, family: str, names: tuple[str, str]
) -> None:
    """Windows takes pwsh, then powershell, then cmd from System32; variable names have no case there."""
    for file in files:
        make(file)
    environ = {names[0]: f'"{tmp_path / "bin"}"', names[1]: str(tmp_path / "win")}
    shell = resolve(environ=environ, platform="win32")
    assert (shell.program, shell.family) == (str(tmp_path / expected), family)


# ---------------------------------------------------------------- what is refused as a call


@pytest.mark.parametrize("platform", ["linux", "win32"])
@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ("", "must not be blank"),
        (" \n", "must not be blank"),
        ('""', "must not be blank"),
        ([], "must not be blank"),
        ([" ", "-e"], "must not be blank"),
        (["bash", 1], "only strings"),
        (range(2), "only strings"),
        ("ba\0sh", "NUL"),
        (["bash", "-e\0"], "NUL"),
    ],
)
def test_wrong_values(choice: object, problem: str, platform: str) -> None:
    """A blank, an empty list, a non-string in a list and a NUL are ValueErrors that name the remedy."""
    with pytest.raises(ValueError, match=problem) as caught:
        resolve(choice, environ={}, platform=platform)  # type: ignore[arg-type]
    assert "bash" in str(caught.value) or "leave it out" in str(caught.value)


@pytest.mark.parametrize("choice", [1, b"bash", bytearray(b"sh"), {"bash"}, {"shell": "bash"}, object(), iter(["sh"])])
def test_wrong_types(choice: object) -> None:
    """Anything but a string, a path and a list is a TypeError that shows what to pass."""
    with pytest.raises(TypeError, match=r'"bash", "/bin/sh" or \["bash", "-e"\]; got'):
        resolve(choice, environ={})  # type: ignore[arg-type]


def test_unclosed_quotation() -> None:
    """A command line that cannot be split names the remedy."""
    with pytest.raises(ValueError, match="close the quotation, or pass a list"):
        resolve("bash 'x", environ={})


def test_faults_of_a_variable_name_it() -> None:
    """An error in a variable's value says which variable."""
    with pytest.raises(ValueError, match=r"^\$SHELLKIT_SHELL must be .* leave out '-c'$"):
        resolve(environ={"SHELLKIT_SHELL": "sh -c"})
    with pytest.raises(SpawnError, match=r"^shell not found: /no/sh, named by \$AGENT_FRAMEWORK_SHELL "):
        resolve(environ={"AGENT_FRAMEWORK_SHELL": "/no/sh"})


# ---------------------------------------------------------------- splitting


@pytest.mark.parametrize(
    ("line", "program", "arguments"),
    [
        ("my shell/bash", "my shell/bash", ()),
        ("'my shell/bash' -e", "my shell/bash", ("-e",)),
        (r"my\ shell/bash -o pipefail", "my shell/bash", ("-o", "pipefail")),
        ("my shell/bash -e", None, ()),
        ("plain/bash -e -u", "plain/bash", ("-e", "-u")),
        ("  plain/bash  ", "plain/bash", ()),
        ("plain/bash -s 'a b' \"c\"", "plain/bash", ("-s", "a b", "c")),
    ],
)
def test_split_posix(
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    program: str | None,
    arguments: tuple[str, ...],
) -> None:
    """A string is one program when one has that name, and a shlex command line when none has."""
    make("my shell/bash")
    make("plain/bash")
    monkeypatch.chdir(tmp_path)
    if program is None:
        with pytest.raises(SpawnError, match=r"tried: my shell/bash -e; my in .*must be quoted, or a list"):
            resolve(line, environ={})
        return
    assert resolve(line, environ={}) == Shell(str(tmp_path / program), "bash", arguments)


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        (r"C:\Program Files\PowerShell\7\pwsh.exe", ()),
        (r"C:\Program Files\PowerShell\7\pwsh", ()),
        (r'"C:\Program Files\PowerShell\7\pwsh.exe" -NoLogo', ("-NoLogo",)),
        (r'"C:\Program Files\PowerShell\7\pwsh.exe" -wd "C:\a b\\" -nop', ("-wd", "C:\\a b\\", "-nop")),
        (r'"C:\Program Files\PowerShell\7\pwsh" -wd C:\x\y', ("-wd", r"C:\x\y")),
    ],
)
def test_split_windows_keeps_back_slashes(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, arguments: tuple[str, ...]
) -> None:
    """A Windows path with blanks survives whole, quoted, and with arguments."""
    name = r"C:\Program Files\PowerShell\7\pwsh.exe"
    make(name)  # on Linux one file name, relative to the working directory
    monkeypatch.chdir(tmp_path)
    shell = resolve(line, environ={}, platform="win32")
    assert (shell.program.endswith(name), shell.family, shell.arguments) == (True, "powershell", arguments)
    assert shell.name == "pwsh"


@pytest.mark.parametrize(
    ("rest", "arguments"),
    [
        # Microsoft, "Parsing C++ command-line arguments", its table of results
        (r'"abc" d e', ("abc", "d", "e")),
        (r'a\\b d"e f"g h', (r"a\\b", "de fg", "h")),
        (r"a\\\"b c d", (r"a\"b", "c", "d")),
        (r'a\\\\"b c" d e', (r"a\\b c", "d", "e")),
        # CommandLineToArgvW: of three marks in a row the third is text and closes the quotation
        ('"a""b c"', ('a"b', "c")),
        ('a"b"" c', ('ab"', "c")),
        ('"""', ('"',)),
        ('""', ("",)),
        ('"open end', ("open end",)),
        ("x\ty", ("x", "y")),
        ("'single quotes'", ("'single", "quotes'")),
        ("trailing\\", ("trailing\\",)),
    ],
)
def test_split_windows(make: Make, tmp_path: Path, rest: str, arguments: tuple[str, ...]) -> None:
    """The arguments of a Windows command line follow CommandLineToArgvW; an unknown program takes any."""
    make("tool.exe")
    assert resolve(f"tool {rest}", environ={"PATH": str(tmp_path)}, platform="win32").arguments == arguments


def test_path_object_is_not_split(make: Make) -> None:
    """A path object is a path, whatever blanks it holds."""
    program = make("my shell/bash -e")
    assert resolve(Path(program), environ={}).program == program
    with pytest.raises(SpawnError, match="shell not found: /bin/bash -e"):
        resolve(Path("/bin/bash -e"), environ={})


@pytest.mark.parametrize("sequence", [list, tuple])
def test_list_is_verbatim(make: Make, sequence: type) -> None:
    """A list keeps blanks, quotes and dollars."""
    program = make("my shell/bash")
    words = (program, "-s", "a b", "'c'", "$d", "")
    assert resolve(sequence(words), environ={}).arguments == words[1:]


# ---------------------------------------------------------------- finding


@pytest.mark.parametrize("choice", ["/nonexistent/bash", ["/nonexistent/bash", "-e"], Path("/nonexistent/bash")])
def test_not_found(choice: str | list[str] | Path) -> None:
    """Contract A, case call-shell-not-found: a missing path is a SpawnError that names it and the remedy."""
    with pytest.raises(SpawnError) as caught:
        resolve(choice, environ={})
    assert str(caught.value).startswith("shell not found: /nonexistent/bash (tried: /nonexistent/bash); install it, or")


def test_name_not_found_lists_directories() -> None:
    """A missing name is shown with every directory that was searched, each once."""
    with pytest.raises(SpawnError, match=r"\(tried: no-such in /one, /bin, /usr/bin, /usr/local/bin\)"):
        resolve("no-such", environ={"PATH": "/one:/bin:/one"})


def test_directory_and_plain_file(make: Make, tmp_path: Path) -> None:
    """A directory and a file without the execute bit are not found, and the error says why."""
    plain = make("plain/bash", mode=0o644)
    with pytest.raises(SpawnError, match=r"plain/bash is not an executable file"):
        resolve(plain, environ={})
    with pytest.raises(SpawnError, match=r"plain is a directory"):
        resolve("plain", environ={"PATH": str(tmp_path)})
    with pytest.raises(SpawnError, match=r"dangling"):
        resolve(make("dangling", link_to="nowhere"), environ={})


def test_search_passes_over_what_cannot_run(make: Make, tmp_path: Path) -> None:
    """A directory or a plain file of the name does not end the search along PATH."""
    make("one/bash", mode=0o644)
    (tmp_path / "two" / "bash").mkdir(parents=True)
    program = make("three/bash")
    path = ":".join(str(tmp_path / name) for name in ("one", "two", "three"))
    assert resolve("bash", environ={"PATH": path}).program == program


def test_relative_path_entries_are_skipped(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell in the working directory is not picked up through an empty or relative PATH entry."""
    make("odd-shell")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpawnError, match="odd-shell in /bin"):
        resolve("odd-shell", environ={"PATH": ":.:"})
    assert resolve("./odd-shell", environ={}).program == f"{tmp_path}/./odd-shell"


def test_program_is_absolute_and_not_normalised(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`link/../bash` is the file beside the link's target, so the dots stay."""
    program = make("deep/bash")
    make("deep/sub/x")
    make("link", link_to="deep/sub")
    monkeypatch.chdir(tmp_path)
    assert os.path.realpath(resolve("link/../bash", environ={}).program) == program


# ---------------------------------------------------------------- families


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("bash", "bash"),
        ("rbash", "bash"),
        ("bash-5.3", "bash"),
        ("bash5", "bash"),
        ("bash-static", "bash"),
        ("dash", "dash"),
        ("zsh", "zsh"),
        ("zsh-5.9", "zsh"),
        ("zsh5-static", "zsh"),
        ("ksh", "ksh"),
        ("ksh93", "ksh"),
        ("ksh93u+m", "ksh"),
        ("rksh93", "ksh"),
        ("mksh", "mksh"),
        ("mksh-static", "mksh"),
        ("lksh", "mksh"),
        ("busybox", "busybox"),
        ("busybox-x86_64", "busybox"),
        ("busybox.static", "busybox"),
        ("pwsh", "powershell"),
        ("pwsh-preview", "powershell"),
        ("sh", "sh"),
        ("ash", "sh"),
        ("oksh", "sh"),
        ("pdksh", "sh"),
        ("yash", "sh"),
        ("osh", "sh"),
        ("python3", "sh"),
        ("cat", "sh"),
        ("mybash", "sh"),
        ("bash_kernel", "sh"),
        ("BASH", "sh"),
        ("bash.exe", "sh"),
    ],
)
def test_family_by_name(make: Make, name: str, family: str) -> None:
    """The base name tells the family, versions and restricted names included; an unknown one is sh."""
    assert resolve(make(name), environ={}).family == family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("bash.exe", "bash"),
        ("PWSH.EXE", "powershell"),
        ("PowerShell.exe", "powershell"),
        ("CMD.exe", "cmd"),
        ("busybox64u.exe", "busybox"),
        ("sh.exe", "sh"),
    ],
)
def test_family_by_name_on_windows(make: Make, name: str, family: str) -> None:
    """On Windows neither case nor .exe matters."""
    shell = resolve(make(name), environ={}, platform="win32")
    assert shell.family == family
    assert shell.name.split()[0] == name[:-4]


@pytest.mark.parametrize(
    ("name", "target", "family"),
    [
        ("sh", "dash", "dash"),
        ("sh", "bash", "sh"),
        ("sh", "zsh", "sh"),
        ("sh", "ksh93", "sh"),
        ("sh", "mksh", "sh"),
        ("sh", "unheard-of", "sh"),
        ("sh", "busybox", "busybox"),
        ("ash", "busybox.static", "busybox"),
        ("hush", "busybox", "busybox"),
        ("cat", "busybox", "sh"),
        ("ksh", "mksh", "mksh"),
        ("ksh", "oksh", "sh"),
        ("ksh", "zsh", "sh"),
        ("ksh", "ksh93", "ksh"),
        ("bash", "bash-5.3", "bash"),
        ("bash", "unheard-of", "bash"),
        ("shell", "zsh-5.9", "sh"),
        ("login-shell", "zsh-5.9", "zsh"),
        ("rsh", "zsh", "sh"),
        ("default-shell", "bash", "bash"),
        ("osh", "oils-for-unix", "sh"),
    ],
)
def test_family_of_a_link(make: Make, name: str, target: str, family: str) -> None:
    """A link is what its end is, as that program behaves under the link's name; the program stays the link."""
    make(f"real/{target}")
    make("alternatives/x", link_to=f"../real/{target}")
    program = make(name, link_to="alternatives/x")
    shell = resolve(program, environ={})
    assert (shell.family, shell.program, shell.persistent_argv[0]) == (family, program, program)


@pytest.mark.parametrize("name", ["fish", "nu", "nushell", "tcsh", "csh", "xonsh", "elvish", "ysh", "oil", "fish-3.7"])
def test_refused_families(make: Make, name: str) -> None:
    """A shell of another language is refused with the reason and the way to use it all the same."""
    base = name.partition("-")[0]
    text = (
        f"{base} is not a POSIX shell: shellkit cannot give it commands safely; name bash, sh, zsh, ksh, mksh, "
        f"busybox, pwsh or cmd, and run `{base} -c ...` inside it"
    )
    program = make(f"bin/{name}")
    for choice in (program, [program, "-c", "x"], f"{program} --login", make("sh", link_to=program)):
        with pytest.raises(SpawnError) as caught:
            resolve(choice, environ={})
        assert str(caught.value) == text


def test_refused_though_not_installed() -> None:
    """Nobody is told to install a shell that would then be refused."""
    with pytest.raises(SpawnError, match="elvish is not a POSIX shell"):
        resolve("/nonexistent/elvish -norc", environ={})


def test_refused_name_in_an_argument(make: Make) -> None:
    """Only the program is judged: an argument may end in the name of a refused shell."""
    assert resolve(f"{make('env')} SHELL=/usr/bin/fish bash", environ={}).family == "sh"


# ---------------------------------------------------------------- argv


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("bash", [], ["--noprofile", "--norc"]),
        ("bash", ["-e", "-o", "pipefail"], ["--noprofile", "--norc", "-e", "-o", "pipefail"]),
        ("bash", ["--norc"], ["--noprofile", "--norc"]),
        ("bash", ["--norc", "--noprofile"], ["--norc", "--noprofile"]),
        ("bash", ["-s", "a", "-c"], ["--noprofile", "--norc", "-s", "a", "-c"]),
        ("zsh", [], ["-f"]),
        ("zsh", ["-f", "-e"], ["-f", "-e"]),
        ("dash", ["-eu"], ["-eu"]),
        ("ksh93", [], []),
        ("mksh", [], []),
        ("sh", [], []),
        ("busybox", [], ["sh"]),
        ("busybox", ["-e"], ["sh", "-e"]),
        ("busybox", ["ash", "-e"], ["ash", "-e"]),
        ("python3", ["-u", "-i"], ["-u", "-i"]),
        ("pwsh", [], ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", "-"]),
        ("pwsh", ["-nop", "-wd", "/x"], ["-NoLogo", "-NonInteractive", "-nop", "-wd", "/x", "-Command", "-"]),
        ("pwsh", ["-nologo", "-c", "-"], ["-NoProfile", "-NonInteractive", "-nologo", "-c", "-"]),
        ("cmd", [], ["/d", "/q", "/v:on"]),
        ("cmd", ["/D", "/V"], ["/q", "/D", "/V"]),
    ],
)
def test_argv(make: Make, name: str, arguments: list[str], expected: list[str]) -> None:
    """Our flags come before the caller's, none is doubled, and argv[0] is the program."""
    program = make(name)
    shell = resolve([program, *arguments], environ={})
    assert shell.persistent_argv == shell.stateless_argv == (program, *expected)
    assert shell.arguments == tuple(arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "blocker"),
    [
        ("bash", ["-c"], "-c"),
        ("bash", ["-lc"], "-lc"),
        ("bash", ["-e", "-i"], "-i"),
        ("bash", ["--login"], "--login"),
        ("bash", ["--version"], "--version"),
        ("bash", ["--rcfile", "x"], "--rcfile"),
        ("bash", ["script.sh"], "script.sh"),
        ("bash", ["-e", "--", "script.sh"], "script.sh"),
        ("bash", ["-", "script.sh"], "script.sh"),
        ("bash", ["-o", "pipefail", "script.sh"], "script.sh"),
        ("bash", ["+o", "posix", "script.sh"], "script.sh"),
        ("bash", ["-euo", "noexec"], "-euo noexec"),
        ("bash", [""], ""),
        ("dash", ["-n"], "-n"),
        ("zsh", ["-o", "SHIN_STDIN", "-o", "Inter_Active"], "-o Inter_Active"),
        ("zsh", ["--emulate", "sh"], "--emulate"),
        ("zsh", ["-l"], "-l"),
        ("ksh", ["-D"], "-D"),
        ("mksh", ["-l"], "-l"),
        ("yash", ["-c", "true"], "-c"),
        ("busybox", ["cat"], "cat"),
        ("busybox", ["sh", "-c", "true"], "-c"),
        ("busybox", ["sh", "sh"], "sh"),
        ("busybox", [""], ""),
        ("pwsh", ["-Command", "Get-Date"], "-Command"),
        ("pwsh", ["-c", "-", "x"], "-c"),
        ("pwsh", ["-Command"], "-Command"),
        ("pwsh", ["-comm", "x"], "-comm"),
        ("pwsh", ["-CommandWithArgs", "x"], "-CommandWithArgs"),
        ("pwsh", ["-EncodedCommand", "eA=="], "-EncodedCommand"),
        ("pwsh", ["-nop", "-File", "x.ps1"], "-File"),
        ("pwsh", ["-NoExit"], "-NoExit"),
        ("pwsh", ["-NoProfileLoadTime"], "-NoProfileLoadTime"),
        ("pwsh", ["-Interactive"], "-Interactive"),
        ("pwsh", ["-Login"], "-Login"),
        ("pwsh", ["-OutputFormat", "XML"], "-OutputFormat"),
        ("pwsh", ["x.ps1"], "x.ps1"),
        ("cmd", ["/c"], "/c"),
        ("cmd", ["/d", "/K", "dir"], "/K"),
        ("cmd", ["/d/c", "dir"], "/d/c"),
        ("cmd", ["/v:off"], "/v:off"),
        ("cmd", ["dir"], "dir"),
    ],
)
def test_arguments_that_block_stdin(make: Make, name: str, arguments: list[str], blocker: str) -> None:
    """An argument that keeps the shell from reading its stdin is named, with the remedy."""
    with pytest.raises(ValueError) as caught:
        resolve([make(name), *arguments], environ={})
    text = f"shell must be a program that reads commands from its stdin; leave out {blocker!r}"
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bash", ["-euo", "pipefail", "-O", "extglob", "+O", "dotglob", "+o", "posix", "--posix", "-"]),
        ("bash", ["+c", "+i"]),
        ("zsh", ["-o", "err_exit", "--sh-word-split"]),
        ("pwsh", ["-ExecutionPolicy", "Bypass", "-ep", "Bypass", "--noprofile", "-sta"]),
        ("cmd", ["/D", "/e:on", "/t:0f", "/f:off", "/s"]),
    ],
)
def test_harmless_arguments(make: Make, name: str, arguments: list[str]) -> None:
    """Options that leave the shell reading its stdin are let through."""
    assert resolve([make(name), *arguments], environ={}).arguments == tuple(arguments)


@pytest.mark.parametrize(
    ("shell", "name"),
    [
        (Shell("/usr/bin/bash", "bash"), "bash"),
        (Shell("/bin/sh", "busybox"), "sh"),
        (Shell("/bin/busybox", "busybox"), "busybox sh"),
        (Shell("/bin/busybox", "busybox", ("hush",)), "busybox hush"),
        (Shell(r"C:\Program Files\PowerShell\7\pwsh.exe", "powershell"), "pwsh"),
        (Shell(r"C:\Windows\System32\CMD.EXE", "cmd"), "CMD"),
    ],
)
def test_name(shell: Shell, name: str) -> None:
    """The name is what a person types."""
    assert shell.name == name


# ---------------------------------------------------------------- the shells of this machine


@pytest.mark.parametrize(
    ("choice", "families"),
    [
        ("bash", {"bash"}),
        ("bash -e", {"bash"}),
        ("sh", {"dash", "sh", "busybox"}),
        ("dash -u", {"dash"}),
        ("busybox", {"busybox"}),
        ("busybox ash -e", {"busybox"}),
        ("zsh", {"zsh"}),
        ("ksh93", {"ksh"}),
        ("mksh", {"mksh"}),
        ("yash", {"sh"}),
    ],
)
def test_real_shells_read_stdin(choice: str, families: set[str]) -> None:
    """Each real shell, started with its argv, runs what comes on its stdin."""
    required(choice.split()[0])
    shell = resolve(choice, environ=os.environ)
    done = subprocess.run(
        shell.persistent_argv, input=b"echo $((40 + 2))\n", capture_output=True, timeout=10, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"42\n", b"", 0)
    assert os.path.isabs(shell.program)
    assert shell.family in families


def test_real_busybox_link_keeps_its_applet(tmp_path: Path) -> None:
    """A link named ash to the real busybox runs its shell without another word in argv."""
    (tmp_path / "ash").symlink_to(required("busybox"))
    shell = resolve(tmp_path / "ash", environ={})
    done = subprocess.run(shell.persistent_argv, input=b"echo hi\n", capture_output=True, timeout=10, check=False)
    assert (shell.family, shell.persistent_argv, done.stdout) == ("busybox", (shell.program,), b"hi\n")


@pytest.mark.parametrize("name", ["fish", "tcsh", "csh"])
def test_real_refused_shells(name: str) -> None:
    """The real fish and tcsh are refused by name and through the alternatives' links."""
    required(name)
    with pytest.raises(SpawnError, match="is not a POSIX shell"):
        resolve(name, environ=os.environ)
