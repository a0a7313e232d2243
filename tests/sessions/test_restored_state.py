"""What a restored shell has of the old one's state, and what it says it lacks (D2, D4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, SpawnError

# (what the user sets, what prints it)
STATE = {
    "exported variable": ("export E='a b'", "bash -c 'echo $E'; echo $E"),
    "plain variable": ('P="it\'s \\$x \'q\' \\"d\\""', 'echo "$P"; env | grep -c ^P='),
    "newlines and odd bytes": ("N=$'line\\nbreak\\t\\x01\\xff'", 'printf %s "$N" | od -An -tx1'),
    "empty and unset": ("EMPTY=; unset LANG", 'echo "[${EMPTY-unset}] [${LANG-unset}]"'),
    "unexported": ("export -n HOME", "env | grep -c ^HOME=; echo $HOME"),
    "array": ("arr=(1 'two words' '' $'n\\nl'); arr[9]=x", "declare -p arr"),
    "associative array": ("declare -A m=([k]=v ['a b']='c d')", "echo ${m[k]} ${m[a b]} ${#m[@]}"),
    "integer": ("declare -i n=4", "n=n+1; echo $n"),
    "readonly": ("readonly R=1", "(R=2) 2>/dev/null || echo kept $R"),
    "case attributes": ("declare -u up=abc; declare -l low=ABC", "echo $up $low; up=x; echo $up"),
    "nameref": ("target=t; declare -n ref=target", "echo $ref; ref=u; echo $target"),
    "function": ('f() { local x=$1; echo "f:$x"; }', "f 1"),
    "exported function": ("g() { echo g; }; export -f g", "bash -c g"),
    "function with here-document": ("h() { cat <<X\nbody $1\nX\n}", "h 2"),
    "function with extglob": ("shopt -s extglob\nk() { case $1 in +(a)) echo many;; esac; }", "k aaa"),
    "traced function": ("t() { :; }; declare -ft t", "declare -F -p t"),
    "alias": ("alias ll='ls -l \"x y\"'", "alias ll"),
    "shell options": ("set -u -f -o pipefail; set +h", "echo $-; set -o | grep -E 'pipefail|noglob'"),
    "shopt": ("shopt -s nullglob extglob; shopt -u sourcepath", "shopt nullglob extglob sourcepath"),
    "umask": ("umask 027", "umask"),
    "soft limits": ("ulimit -S -n 512; ulimit -S -c 0", "ulimit -S -n; ulimit -S -c"),
    "signal trap": ("trap 'echo usr' USR1; trap '' USR2", "trap -p USR1 USR2"),
    "ERR trap": ("trap 'echo \"it'\\''s err\"' ERR", "trap -p ERR; false"),
    "positional parameters": ("set -- a 'b c' '' $'d\\n'", "echo $#; printf '[%s]' \"$@\""),
    "no positional parameters": ("set --", "echo $#"),
    "IFS": ("IFS=:", 'x=a:b; echo $x; printf %q "$IFS"'),
    "OPTIND and REPLY": ("OPTIND=3; REPLY=r", "echo $OPTIND $REPLY"),
    "OLDPWD": ("cd /usr; cd /tmp", "cd -; pwd"),
    "directory": ("mkdir -p 'd e/f'; cd 'd e/f'", "pwd"),
    "PS4 and IGNOREEOF": ("PS4='>> '; PS1=me", 'echo "$PS4$PS1"'),
    "PATH": (
        "PATH=$PWD/bin:$PATH; mkdir bin; printf '#!/bin/sh\\necho tool' > bin/mytool; chmod +x bin/mytool",
        "mytool",
    ),
    "unset of an inherited variable": ("unset HOME", "echo ${HOME-unset}"),
    "changed inherited variable": ("PAGER=most", "echo $PAGER; env | grep ^PAGER="),
    "huge variable": ("BIG=$(head -c 500000 /dev/zero | tr '\\0' y)", "echo ${#BIG}"),
    "many variables": ("for i in $(seq 1 2000); do eval \"v$i='val $i'\"; done", "echo $v1 $v1000 $v2000"),
}


@pytest.mark.parametrize("what", STATE)
def test_the_next_command_finds_the_state(shell: BlockingExecutor, open_shell: Any, what: str, tmp_path: Path) -> None:
    """D2: after `exit 7` the next command finds what it would have found without it."""
    setting, question = STATE[what]
    untouched = open_shell()
    other = tmp_path / "other"
    other.mkdir()
    for candidate in (shell, untouched):
        assert candidate.run(setting).exit_code == 0
    died = shell.run("exit 7")
    assert (died.exit_code, died.shell_state) == (7, "restored")
    restored, expected = shell.run(question), untouched.run(question)
    assert (restored.stdout, restored.stderr) == (expected.stdout, expected.stderr)
    assert restored.exit_code == expected.exit_code
    again = shell.run("exit 8")
    assert again.shell_state == "restored"
    assert shell.run("true").exit_code == 0


@pytest.mark.parametrize("death", ["kill -9 $$", "exec true", "trap 'true' EXIT; exit 0", "ulimit -v 1000; exit"])
def test_a_checkpoint_stands_in_for_state_that_could_not_be_printed(
    shell: BlockingExecutor, checkpointed: Callable[[BlockingExecutor], None], death: str
) -> None:
    """D4: after a death without a last word the state is that of the latest idle checkpoint, and a note says so."""
    shell.run("kept=5; f() { echo f; }; cd /")
    checkpointed(shell)
    died = shell.run(f"lost=1; {death}", timeout=5)
    assert died.shell_state == "restored"
    assert shell.run("echo $kept; f; pwd").stdout == "5\nf\n/\n"


def test_without_a_checkpoint_the_loss_is_told(shell: BlockingExecutor, tmp_path: Path) -> None:
    """D4: with no checkpoint the shell is `restarted`, and a note says what is gone."""
    shell.start()
    died = shell.run("kept=5; cd /; kill -9 $$")
    assert (died.exit_code, died.shell_state) == (137, "restarted")
    assert any("gone" in note and "variables" in note for note in died.notes)
    assert shell.run('echo "[$kept] $PWD"').stdout == f"[] {tmp_path}\n"


def test_a_checkpoint_costs_a_queued_command_nothing(shell: BlockingExecutor) -> None:
    """D4: commands that follow each other at once are not held up, and the result is the same while one is taken."""
    for number in range(300):
        assert shell.run(f"echo {number}").stdout == f"{number}\n"


def test_errexit_that_has_fired_is_not_restored(shell: BlockingExecutor) -> None:
    """D2: `set -e` ends its shell once; the next command does not die of it again, and a note says so."""
    died = shell.run("kept=1; set -e; false; echo not-reached")
    assert (died.stdout, died.exit_code, died.shell_state) == ("", 1, "restored")
    assert any("set -e" in note for note in died.notes)
    after = shell.run("false; echo $kept $-")
    assert after.stdout.startswith("1 ")
    assert "e" not in after.stdout.split()[1]


def test_errexit_persists_until_it_fires(shell: BlockingExecutor) -> None:
    """D2: options are state: `set -e` holds for later commands, as in one long script."""
    strict = shell.run("set -euo pipefail; echo strict")
    assert (strict.stdout, strict.shell_state) == ("strict\n", "alive")
    failing = shell.run("grep zzz /etc/hostname; echo not-reached")
    assert (failing.stdout, failing.exit_code, failing.shell_state) == ("", 1, "restored")
    assert shell.run("echo still").stdout == "still\n"


def test_errexit_survives_an_exit_of_the_users_own(shell: BlockingExecutor) -> None:
    """D2: `exit 3` under `set -e` is no failure that fired, so the option comes back."""
    shell.run("set -e")
    assert shell.run("exit 3").shell_state == "restored"
    assert "e" in shell.run("echo $-").stdout


def test_what_is_not_carried(shell: BlockingExecutor) -> None:
    """D2: open descriptors and the job table are not carried over; nothing pretends otherwise."""
    shell.run("exec 5>log; sleep 0 & echo started")
    shell.run("exit 1")
    result = shell.run('echo x >&5; echo rc=$?; jobs; echo "[$!]"')
    assert result.stdout == "rc=1\n[]\n"
    assert "Bad file descriptor" in result.stderr


def test_a_failed_restore_of_one_thing_does_not_cost_the_rest(shell: BlockingExecutor) -> None:
    """D2: a variable that the new shell refuses keeps none of the others back."""
    shell.run("a=1; readonly a; z=26; export BASH_XTRACEFD=; declare -r UIDX=1")
    shell.run("exit 2")
    result = shell.run("echo $a $z")
    assert (result.stdout, result.stderr) == ("1 26\n", "")


def test_startup_commands_run_in_every_new_shell(open_shell: Any, checkpointed: Any) -> None:
    """A, D4: start-up commands run before anything else, restarts included."""
    shell = open_shell(startup_commands=["cd /tmp", "export SETUP=1", "umask 027", "ulimit -f 100000"])
    assert shell.run('echo "$SETUP $PWD $(umask) $(ulimit -f)"').stdout == "1 /tmp 0027 100000\n"
    shell.run("kill -9 $$")
    assert shell.run('echo "$SETUP $PWD $(umask) $(ulimit -f)"').stdout == "1 /tmp 0027 100000\n"
    shell.restart()
    assert shell.run('echo "$SETUP $PWD $(umask)"').stdout == "1 /tmp 0027\n"


def test_a_startup_command_that_fails_is_told(open_shell: Any, mode: str) -> None:
    """A: the first result of each new shell says so, also of one that was started ahead."""
    shell = open_shell(mode=mode, startup_commands=["nosuch_zz", "export SETUP=1"])
    shell.start()
    for _ in range(2):
        result = shell.run("echo $SETUP")
        assert result.stdout == "1\n"
        assert "exit code 127: 'nosuch_zz'" in result.notes[0]
        assert mode == "stateless" or shell.run("true").notes == ()
        shell.restart()


@pytest.mark.parametrize(
    ("command", "says"), [("exit 3", r"ended the shell \(exit code 3\): exit 3$"), ("sleep 60", r"within .*0\.2 s\)")]
)
def test_a_startup_command_that_leaves_no_shell(open_shell: Any, mode: str, command: str, says: str) -> None:
    """A: it is a `SpawnError` that says which and how, and nothing is left of it."""
    with pytest.raises(SpawnError, match=says):
        open_shell(mode=mode, startup_commands=["true", command], start_timeout=0.2, grace=0.2).run("echo no")


def test_restart_gives_a_fresh_shell(shell: BlockingExecutor, tmp_path: Path, sleeps: Any) -> None:
    """A: `restart()` drops the state on purpose and leaves background jobs alone; twice is fine."""
    job = shell.run(f"a=1; cd /; sleep {sleeps()} & echo $!").background[0]
    shell.restart()
    shell.restart()
    assert shell.run('echo "[$a] $PWD $?"').stdout == f"[] {tmp_path} 0\n"
    assert job.running
    job.stop()
    assert sleeps.left() == []


@pytest.mark.parametrize("death", ["exit 1", "kill -9 $$"])
def test_deaths_in_a_row(shell: BlockingExecutor, death: str) -> None:
    """D2: twenty deaths one after the other are twenty results."""
    for number in range(20):
        result = shell.run(f"echo {number}; {death}")
        assert result.stdout == f"{number}\n"
        assert result.exit_code in (1, 137)
    assert shell.run("echo ok").stdout == "ok\n"


def test_a_venv_style_activation_survives(shell: BlockingExecutor) -> None:
    """D2: a sourced script's PATH change and functions reach later commands, and a restored shell."""
    shell.run(
        "mkdir -p v/bin; printf '#!/bin/sh\\necho tool-from-venv\\n' > v/bin/mytool; chmod +x v/bin/mytool\n"
        'cat > v/bin/activate <<\'END\'\nexport VIRTUAL_ENV=$PWD/v\n_O="$PATH"; export PATH="$VIRTUAL_ENV/bin:$PATH"\n'
        'deactivate() { PATH="$_O"; unset VIRTUAL_ENV; unset -f deactivate; }\nEND\nsource v/bin/activate'
    )
    assert shell.run("mytool; echo ${VIRTUAL_ENV##*/}").stdout == "tool-from-venv\nv\n"
    shell.run("exit 3")
    assert shell.run("mytool; deactivate; mytool 2>/dev/null; echo rc=$?").stdout == "tool-from-venv\nrc=127\n"
