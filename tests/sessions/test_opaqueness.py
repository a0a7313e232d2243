"""Whatever a user redefines, the wrapper goes on: it breaks only the user's own commands (B4)."""

from __future__ import annotations

from typing import Any

import pytest

from shellkit import BlockingExecutor

BUILTINS = [
    "printf",
    "echo",
    "cd",
    "command",
    "builtin",
    "eval",
    "trap",
    "declare",
    "typeset",
    "unset",
    "set",
    "return",
    "shift",
    "exit",
    "source",
    ".",
    "export",
    "readonly",
    "local",
    "shopt",
    "alias",
    "unalias",
    "umask",
    "ulimit",
    "enable",
    "read",
    "test",
    "[",
    "true",
    ":",
    "exec",
    "wait",
    "kill",
    "pwd",
    "type",
    "hash",
    "history",
    "let",
    "mapfile",
    "getopts",
    "jobs",
    "disown",
    "compgen",
    "cat",
]
BODIES = ["/bin/true", "/bin/false", "/bin/echo FAKE; /bin/echo FAKE >&2"]


def goes_on(shell: BlockingExecutor) -> None:
    """Check exit codes, both streams and the directory by means that nobody has redefined."""
    result = shell.run("/bin/sh -c 'echo out; echo err >&2; exit 3'")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    result = shell.run("/bin/sh -c 'exit 0'")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", BUILTINS)
def test_a_builtin_may_be_redefined(shell: BlockingExecutor, name: str, body: str) -> None:
    """B4: a function that hides a builtin changes nothing but what the user's own commands do."""
    shell.run("kept=5")
    defined = shell.run(f"{name}() {{ {body}; }}")
    assert (defined.stdout, defined.stderr, defined.exit_code) == ("", "", 0)
    goes_on(shell)
    moved = shell.run("/bin/sh -c 'exit 4'", env={"ONCE": "1"}, workdir="/")
    assert (moved.exit_code, moved.shell_state) == (4, "alive")
    died = shell.run("/bin/echo last; /bin/echo ${nothing_zz?gone}")
    assert (died.stdout, died.shell_state) == ("last\n", "restored")
    assert died.exit_code in (1, 127)  # bash: 127 under `-c`, 1 when it reads commands
    assert shell.run('/bin/echo "$kept"').stdout == "5\n"
    goes_on(shell)


@pytest.mark.parametrize("name", ["printf", "eval", "command", "builtin", "declare"])
def test_a_builtin_redefined_to_exit(shell: BlockingExecutor, name: str) -> None:
    """B4: a redefinition that ends the shell when called is not called by the wrapper, or the shell is restored."""
    shell.run("kept=5")
    shell.run(f"{name}() {{ exit 9; }}")
    goes_on(shell)
    assert shell.run('/bin/echo "$kept"').stdout == "5\n"


@pytest.mark.parametrize("name", ["eval", "exec", "builtin", "printf", "command", "declare"])
def test_a_builtin_redefined_by_a_startup_command(open_shell: Any, mode: str, name: str) -> None:
    """B4: functions that a startup command defines (an rc file, say) stand in no command's way."""
    shell = open_shell(mode=mode, startup_commands=[f"{name}() {{ :; }}"])
    for _ in range(2):
        result = shell.run("/bin/echo out; /bin/echo err >&2; (exit 4)")
        assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 4)


def test_all_builtins_redefined_at_once(shell: BlockingExecutor) -> None:
    """B4: every builtin hidden at the same time, `unset` and `builtin` included."""
    names = " ".join(BUILTINS)
    shell.run(f'kept=5; for n in {names}; do eval "$n() {{ return 1; }}"; done')
    goes_on(shell)
    goes_on(shell)
    assert shell.run('/bin/echo "$kept"').stdout == "5\n"


@pytest.mark.parametrize(
    "words",
    [
        "if then else elif fi",
        "case esac in",
        "while until do done for",
        "{ } !",
        "[[ ]] function time",
        "printf eval command builtin declare cd trap exit return unset set shift",
    ],
)
def test_anything_may_be_aliased(shell: BlockingExecutor, words: str) -> None:
    """B4: aliases of reserved words and builtins change only the user's own commands."""
    script = "shopt -s expand_aliases\n" + "\n".join(f"alias -- '{w}=echo ALIASED'" for w in words.split())
    assert shell.run("kept=5\n" + script).stderr == ""
    goes_on(shell)
    assert shell.run("/bin/true", workdir="/", env={"ONCE": "1"}).exit_code == 0
    died = shell.run("/bin/echo ${nothing_zz?gone}")
    assert died.shell_state == "restored"
    assert shell.run('/bin/echo "$kept"').stdout == "5\n"
    goes_on(shell)


READONLY = [
    "rc=111 ret=112 status=113 exit_code=114 code=115 _rc=116 __rc=117 EC=118 marker=119",
    "IFS=:",
    "PATH",
    "PWD OLDPWD",
    "HOME LANG LC_ALL=C",
    "RANDOM SECONDS LINENO",
    "OPTIND=1 OPTARG REPLY",
    "BASH_ENV ENV PS1 PS4",
    "__skc",
    "__skq=1 __skl=2",
]


@pytest.mark.parametrize("names", READONLY)
def test_names_may_be_made_readonly(shell: BlockingExecutor, names: str) -> None:
    """B4: a readonly name collides with nothing of the wrapper; its own names end as a noticed restart at worst."""
    shell.run(f"readonly {names}")
    if "__sk" in names:
        shell.run("true")
        assert shell.run("/bin/echo again").duration < 2
    goes_on(shell)
    goes_on(shell)


@pytest.mark.parametrize("name", ["printf", "eval", "builtin"])
def test_a_readonly_function_over_a_builtin(shell: BlockingExecutor, name: str) -> None:
    """B4: a function that cannot be unset is gone round."""
    shell.run(f"{name}() {{ :; }}; readonly -f {name}")
    goes_on(shell)
    goes_on(shell)


SETTINGS = [
    "IFS=0123456789",
    "IFS=",
    "IFS=efk",
    "PATH=",
    "PATH=/nonexistent; hash -r",
    "unset PATH",
    "unset HOME TMPDIR SHELL TERM USER PWD OLDPWD IFS",
    "set -f; shopt -s nullglob failglob",
    "shopt -s nocasematch nocaseglob dotglob globstar extglob",
    "shopt -s xpg_echo lastpipe inherit_errexit",
    "shopt -s extdebug",
    "shopt -s compat31",
    "shopt -u sourcepath; shopt -s execfail",
    "set -o posix",
    "set -k",
    "set -a",
    "set -C",
    "set -P",
    "set -E -T",
    "set -m",
    "set -b",
    "set -H",
    "set +h",
    "set +B",
    "set -u",
    "set -o pipefail",
    "LC_ALL=C",
    "LC_ALL=de_DE.UTF-8 2>/dev/null",
    "PS4='+$(echo hi) '",
    "PROMPT_COMMAND='echo PROMPT'",
    "TMOUT=1",
    "BASH_COMPAT=4.2",
    "FIGNORE=a; GLOBIGNORE='*'",
    "EXECIGNORE='*'",
    "POSIXLY_CORRECT=1",
    "enable -n printf echo cd command builtin eval trap",
    "enable -n declare set unset return shift shopt alias umask ulimit exit test",
    "hash -p /bin/false printf; hash -p /bin/false eval",
    "umask 777",
    "exec 3>&1 4>&2",
    "exec >/dev/null 2>&1",
    "exec 1>&- 2>&- 0<&-",
    "set -- a b c; shift",
    "trap '' HUP INT TERM PIPE CHLD USR1 USR2",
    "disown -a; set +o history",
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_breaks_nothing(shell: BlockingExecutor, setting: str) -> None:
    """B4: settings that change how a shell reads and runs text leave exit codes and both streams intact."""
    shell.run(setting, timeout=5)
    goes_on(shell)
    goes_on(shell)
    assert shell.run("/bin/true", workdir="/", env={"ONCE": "1"}).exit_code == 0


@pytest.mark.parametrize(
    "hostile",
    ["set -n", "shopt -s extdebug; trap false DEBUG", "shopt -s extdebug; trap 'return 2' DEBUG", "set -r", "set -t"],
)
def test_what_no_wrapper_survives_is_noticed(shell: BlockingExecutor, hostile: str) -> None:
    """B4: a setting that stops every command is noticed within 1 s and ends as restored or restarted, with a note."""
    first = shell.run(hostile, timeout=10)
    results = [first, shell.run("/bin/echo out", timeout=10)]
    if results[1].stdout != "out\n":
        results.append(shell.run("/bin/echo out", timeout=10))
    assert results[-1].stdout == "out\n"
    assert all(result.duration < 1.5 and not result.timed_out for result in results)
    lost = [result for result in results if result.shell_state != "alive"]
    assert all(result.notes for result in lost if result.exit_code is None)
    goes_on(shell)


@pytest.mark.parametrize("trap", ["trap 'exit 4' DEBUG", "trap exit DEBUG; echo no", "trap 'exit 4' DEBUG ERR"])
def test_a_trap_that_ends_every_shell_is_left_out(shell: BlockingExecutor, trap: str) -> None:
    """B4: a trap that would end each new shell at its first command costs the traps, not the state, with a note."""
    shell.run("kept=1; cd /")
    assert shell.run(f"{trap}; echo no").shell_state == "restored"
    result = shell.run('echo "$kept $PWD"')
    assert (result.stdout, result.exit_code) == ("1 /\n", 0)
    assert any("without traps" in note for note in result.notes)
    goes_on(shell)


@pytest.mark.parametrize(
    "mask", ["umask 000", "ulimit -n 5", "ulimit -f 0", "ulimit -v 200000", "ulimit -s 64", "ulimit -t 1"]
)
def test_limits_do_not_poison_the_session(shell: BlockingExecutor, mask: str) -> None:
    """B4, D5: a limit that one command sets does not hang or kill what follows."""
    shell.run(mask, timeout=5)
    result = shell.run("echo next", timeout=5)
    assert (result.stdout, result.exit_code) == ("next\n", 0)
