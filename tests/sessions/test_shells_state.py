"""In every shell the session outlives it, with its state (contract D); docs/shells.md says where one cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, ShellResult

Kind = Any
Opens = Callable[..., BlockingExecutor]
shells = pytest.mark.shells


def shown(result: ShellResult) -> tuple[int | None, str, str]:
    """Return what most tests compare."""
    return result.exit_code, result.stdout, result.stderr


# -- D: how a command ends --------------------------------------------------------------------------------


def test_the_exit_code_is_visible_to_the_next_command(kind: Kind, shell: BlockingExecutor) -> None:
    """D1: `$?` is the last command's code, also across idle checkpoints and a command in another directory."""
    assert shell.run("(exit 7)").exit_code == 7
    assert shown(shell.run("echo $?", workdir="/", env={"Q": "1"})) == (0, "7\n", "")
    assert shown(shell.run("echo $?")) == (0, "0\n", "")


SETUP = """cd sub; export A='1 "q"'; B="x
y'z"; unset HOME; readonly RO=5; alias ll='ls -l'; umask 027; ulimit -S -n 777; trap 'echo usr' USR1; set -f -C
set -- a "b c" "d
#
e" ''"""
SHOW = """printf '%s|' "${PWD##*/}" "$A" "$B" "${HOME-unset}" "$RO" "$#" "$1" "$2" "$3" "$4"; umask; ulimit -S -n; alias ll
trap; case $- in *f*) echo f;; esac; case $- in *C*) echo C;; *) echo a >"${TMP-/tmp}/x" && echo a >"${TMP-/tmp}/x";; esac
env | grep '^A='; (RO=6; echo not readonly) 2>/dev/null; :"""
ENDINGS = ["echo o; exit 7", "set -e; echo o; false; echo no", "echo o; kill $$", "f9() { echo o; exit 5; }; f9"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_session_outlives_its_shell(kind: Kind, ending: str, shell: BlockingExecutor, tmp_path: Path) -> None:
    """D2: after exit, errexit and a signal the next command finds directory, variables, options, limits and traps."""
    (tmp_path / "sub").mkdir()
    assert shell.run(SETUP).stderr == ""
    before = shell.run(SHOW)
    code = {"exit 7": 7, "false": 1, "kill": 143, "f9": 5}[
        next(k for k in ("exit 7", "false", "kill", "f9") if k in ending)
    ]
    result = shell.run(ending)
    assert (result.exit_code, result.stdout, result.shell_state) == (code, "o\n", "restored")
    assert not any("without saving" in note for note in result.notes)
    after = shell.run(SHOW)
    if "f9" in ending and kind.name in ("bash", "yash", "mksh"):  # pinned in `test_exit_in_a_function_..._instead`
        return
    assert _own_traps(after.stdout) == _own_traps(before.stdout)
    assert after.stdout.startswith("sub|")


def _own_traps(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "__sk" not in line and "exit 130" not in line)


@shells("bash", "yash", "mksh")
def test_exit_in_a_function_keeps_that_functions_arguments_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: the EXIT trap of bash, yash and mksh sees the arguments of the function that called `exit`."""
    shell.run("set -- a b c; g() { exit 5; }")
    shell.run("g x")
    assert shown(shell.run("echo $#")) == (0, "1\n", "")


@shells("dash", "busybox", "zsh", "ksh93")
def test_nounset_ends_the_command_and_not_the_shell_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: `set -u` has the exit code of `-c`; where `eval` catches the error the shell lives on."""
    result = shell.run("set -u; echo o; echo $NOPE; echo no")
    assert (result.exit_code, result.stdout) == (2 if kind.name in ("dash", "busybox") else 1, "o\n")
    assert result.stderr
    assert result.shell_state == "alive"


@shells("yash", "mksh")
def test_nounset_ends_the_shell(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: `set -u` ends the shell with the exit code of `-c`, and the state comes back."""
    result = shell.run("X=1; set -u; echo o; echo $NOPE; echo no")
    assert (result.exit_code, result.stdout, result.shell_state) == (kind.syntax_error, "o\n", "restored")
    assert shown(shell.run("echo $X")) == (0, "1\n", "")


def test_an_errexit_that_has_fired_does_not_come_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: errexit is off after it has ended a shell, and stays on when something else did."""
    assert shell.run("set -e; false").shell_state == "restored"
    assert shown(shell.run("false; echo on"))[:2] == (0, "on\n")
    shell.run("set -e")
    assert shell.run("exit 4").shell_state == "restored"
    assert shell.run("false; echo on").stdout == ""


@shells("zsh")
def test_errexit_in_a_function_saves_the_state(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: zsh runs no EXIT trap when errexit ends a function; the ZERR trap saves all but positional parameters."""
    result = shell.run("X=1; f() { Y=2; false; }; set -e; f; echo no")
    assert (result.exit_code, result.stdout, result.shell_state) == (1, "", "restored")
    assert shown(shell.run("echo $X $Y")) == (0, "1 2\n", "")


@shells("bash", "zsh", "ksh93", "mksh")
def test_functions_arrays_and_attributes_come_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: functions, arrays, integer and read-only attributes survive `exit` in the shells that can print them."""
    shell.run(f"{kind.array}; typeset -i n=5; typeset -r ro=1; f() {{ echo \"f $1\"; n=n+1; }}\ng() ( echo 'it''s' )")
    shell.run("exit 3")
    assert shown(shell.run(kind.prints_array)) == (0, "2 2 3\n", "")
    assert shown(shell.run("f x; g; echo $n; (ro=2) 2>/dev/null || echo ro")) == (0, "f x\nits\n6\nro\n", "")


@shells("bash", "zsh", "mksh")
def test_a_function_with_a_here_document_comes_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: here-documents in functions are printed and restored."""
    shell.run("f() { cat <<E\nhere $1\nE\n}; g() { echo g; }")
    shell.run("exit 3")
    assert shown(shell.run("f x; g")) == (0, "here x\ng\n", "")


@shells("ksh93")
def test_a_function_with_a_here_document_is_lost_alone_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: ksh93 prints such a function wrongly; it is lost, with a note, and the others come back."""
    shell.run("f() { cat <<E\nhere $1\nE\n}; g() { echo g; }")
    assert any("here-document" in note for note in shell.run("exit 3").notes)
    assert shown(shell.run("g")) == (0, "g\n", "")
    assert shell.run("f x").exit_code == 127


@shells("dash", "busybox", "yash")
def test_functions_do_not_come_back_instead(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: shells that cannot print functions lose them, with a note."""
    shell.run("f() { echo f; }")
    assert any("functions" in note for note in shell.run("exit 3").notes)
    assert shell.run("f").exit_code == 127


@shells("zsh")
def test_zsh_options_aliases_and_tied_arrays_come_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: setopt, global and suffix aliases, associative and tied arrays survive."""
    shell.run(
        "setopt extendedglob ksharrays; alias -g GG=x; alias -s txt=cat; typeset -A as=(k 'v w'); typeset -T FOO foo=(a b)"
    )
    shell.run("exit 3")
    result = shell.run(
        "echo ${as[k]} $FOO ${foo[1]}; [[ -o extendedglob && -o ksharrays ]] && echo on; alias -g; alias -s"
    )
    assert shown(result) == (0, "v w a:b b\non\nGG=x\ntxt=cat\n", "")


@shells("ksh93", "mksh")
def test_ksh_options_and_attributes_come_back(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: options that are on by default and attributes with a width survive."""
    shell.run("set +o braceexpand; typeset -i16 hx=255; typeset -L5 wide=ab; typeset -x EX=1; EX=2")
    shell.run("exit 3")
    assert shown(shell.run('echo {a,b} $hx "[$wide]"; env | grep ^EX=')) == (0, "{a,b} 16#ff [ab   ]\nEX=2\n", "")


def test_an_exported_variable_that_is_no_longer_exported_stays_so(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: a name that a new shell inherits is neither set nor exported when the old one had changed that."""
    shell.run("e=$EDITOR; unset EDITOR; EDITOR=$e; unset PAGER")
    shell.run("exit 3")
    assert shown(shell.run('[ "$EDITOR" = "$e" ] && env | grep -e ^EDITOR= -e ^PAGER=')) == (1, "", "")


def test_the_idle_checkpoint_brings_back_a_killed_shell(
    kind: Kind, shell: BlockingExecutor, checkpointed: Callable[[BlockingExecutor], None]
) -> None:
    """D3, D4: after `kill -9 $$` and `exec` the state is that of the last idle moment."""
    shell.run("cd /; A=1; set -- x y; set -x; set +x; (exit 3)")
    checkpointed(shell)
    assert shown(shell.run("echo $? $#")) == (0, "3 2\n", "")
    killed = shell.run("echo o; kill -9 $$")
    assert (killed.exit_code, killed.stdout, killed.shell_state) == (137, "o\n", "restored")
    assert shown(shell.run("echo $A $PWD $2")) == (0, "1 / y\n", "")
    replaced = shell.run("exec sh -c 'echo e; exit 9'")
    assert (replaced.exit_code, replaced.stdout, replaced.shell_state) == (9, "e\n", "restored")
    assert shown(shell.run("echo $A $PWD $2")) == (0, "1 / y\n", "")


def test_a_users_exit_trap_runs(
    kind: Kind, shell: BlockingExecutor, checkpointed: Callable[[BlockingExecutor], None]
) -> None:
    """D7: a user's EXIT trap runs when the shell ends, and the state is at least that of the checkpoint."""
    shell.run("A=1; trap 'echo bye' EXIT")
    checkpointed(shell)
    result = shell.run("B=2; exit 3")
    assert (result.exit_code, result.stdout, result.shell_state) == (3, "bye\n", "restored")
    kept = "1 2" if kind.name == "zsh" else "1"  # zsh has a second hook
    assert shown(shell.run("echo $A $B")) == (0, f"{kept}\n", "")


@shells("dash", "busybox", "mksh")
def test_exec_of_a_missing_program_saves_the_state(kind: Kind, shell: BlockingExecutor) -> None:
    """D2: an `exec` that fails ends the shell with 127, and the state comes back."""
    result = shell.run("A=1; exec /nonexistent")
    assert (result.exit_code, result.shell_state) == (127, "restored")
    assert shown(shell.run("echo $A")) == (0, "1\n", "")


@shells("bash", "yash", "zsh", "ksh93")
def test_exec_of_a_missing_program_falls_back_on_the_checkpoint_instead(
    kind: Kind, shell: BlockingExecutor, checkpointed: Callable[[BlockingExecutor], None]
) -> None:
    """D3: these run no EXIT trap then, so what the command itself changed is lost."""
    shell.run("A=1")
    checkpointed(shell)
    result = shell.run("A=2; exec /nonexistent")
    assert (result.exit_code, result.shell_state) == (127, "restored")
    assert shown(shell.run("echo $A")) == (0, "1\n", "")


def test_exit_in_a_users_trap_gives_its_code(kind: Kind, shell: BlockingExecutor) -> None:
    """D1, D2: `exit 9` in a signal trap is the command's code, whatever the EXIT trap prints (mksh would say 0)."""
    shell.run("A=1")
    result = shell.run("trap 'exit 9' USR1 TERM; kill -USR1 $$; echo no")
    assert (result.exit_code, result.stdout, result.shell_state) == (9, "", "restored")
    assert shown(shell.run("echo $A")) == (0, "1\n", "")


@pytest.mark.parametrize("name", ["HUP", "INT", "TERM"])
def test_a_signal_that_ends_the_shell_is_its_exit_code(kind: Kind, name: str, shell: BlockingExecutor) -> None:
    """D1, D2: 128+n from the kernel's wait status, with the state of that moment (zsh ends by itself after HUP)."""
    result = shell.run(f"A=1; echo o; kill -{name} $$; echo no")
    code = 1 if (kind.name, name) == ("zsh", "HUP") else {"HUP": 129, "INT": 130, "TERM": 143}[name]
    assert (result.exit_code, result.stdout, result.shell_state) == (code, "o\n", "restored")
    assert shown(shell.run("echo $A")) == (0, "1\n", "")


@shells("dash", "busybox", "yash", "zsh")
def test_another_signal_falls_back_on_the_checkpoint_instead(
    kind: Kind, shell: BlockingExecutor, checkpointed: Callable[[BlockingExecutor], None]
) -> None:
    """D2: these run no EXIT trap for a signal, and the wrapper traps HUP, INT and TERM only."""
    shell.run("A=1")
    checkpointed(shell)
    result = shell.run("A=2; kill -USR1 $$")
    assert (result.exit_code, result.shell_state) == (138, "restored")
    assert shown(shell.run("echo $A")) == (0, "1\n", "")


@shells("dash", "busybox", "yash", "zsh", "ksh93", "mksh")
def test_an_error_in_a_subshell_ends_only_that(kind: Kind, shell: BlockingExecutor, tmp_path: Path) -> None:
    """D5: an error in a child of the shell, of any kind, leaves one shell that goes on (busybox made two of it)."""
    shell.run("readonly RO=5")
    for text in [
        "(${x:?foo}; echo no)", "(set -u; echo $NOPE)", "(eval 'if'; :)", "echo ${x:?foo} | cat", "(. /nonexistent; :)",
        "y=$(echo ${x:?foo}); :", "(RO=6; echo no)", "(readonly RO; RO=4; echo no)", "echo ${x:?foo} & wait", "(shift 99)",
        "(: >/nonexistent/x; :)", "(exit 4)", "(command eval 'if')", "eval '(${x:?foo})'", "f() { (: ${x:?foo}); }; f",
        "for i in 1 2; do (: ${x:?foo}); done", "eval 'eval \"(: ${x:?foo})\"'", "{ (: ${x:?foo}); } | cat", "sh -c 'exit 6' | (exit 5)",
    ]:  # fmt: skip
        result = shell.run(text, timeout=5)
        assert (result.exit_code, result.stdout) == kind.alone(f"readonly RO=5; {text}", tmp_path), text
        assert shown(shell.run("echo on")) == (0, "on\n", ""), text
        assert shell.run("sh -c 'echo $PPID'").stdout == shell.run("echo $$").stdout, text
