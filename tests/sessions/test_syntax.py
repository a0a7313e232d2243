"""A command is whatever text a model sends: it does what `bash -c` does with it, and the session goes on (B1)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from shellkit import BlockingExecutor

UNBALANCED = [
    "echo 'a",
    'echo "a',
    "echo `echo a",
    "echo $'a",
    "echo ${x",
    "echo ${x:-'}",
    "echo $((1+",
    "if",
    "if true",
    "if true; then echo a",
    "for i in 1 2",
    "for i in 1 2; do echo $i",
    "while true; do",
    "case x in",
    "case x in y)",
    "{",
    "{ echo a",
    "(",
    "(echo a",
    "echo $(echo a",
    "echo <(echo a",
    "f() {",
    "[[ a == ",
    "a=(1 2",
]
CLOSERS = [
    "}; x; {",
    "echo in; }; echo out; {",
    "echo )",
    "echo in ) ; echo out ; ( true",
    "done",
    "fi",
    "esac",
    ";;",
    ")",
    "}",
    "&",
    "&&",
    "| cat",
    "echo a |",
    "echo a &&",
    "echo a; ; echo b",
    "sleep 0 &;",
    "'; echo out; '",
    '"; echo out; "',
    "EOF\necho escaped\ncat <<EOF",
]
ENDS = [
    "echo hi \\",
    "\\",
    "echo 'a' \\\n",
    "echo a\\\nb",
    "echo hi # say hi",
    "# only a comment",
    "false # fails",
    "false\n\n# end\n\n",
    "(exit 5)\n",
    "echo a; ",
    "echo a &&\necho b",
    "true &",
    "",
    " ",
    "\t\n \n",
    "\n\n",
    ":",
    "! true",
    "!",
]
HERE_DOCUMENTS = [
    "cat <<EOF\nab",
    "cat <<EOF\nab\n",
    "cat <<EOF\nab\nEOF",
    "cat <<EOF",
    "cat <<'EOF'\nkeep $HOME and `this`\nEOF",
    "cat <<-EOF\n\ttabs\n\tEOF",
    "cat <<EOF; echo after\nbody\nEOF",
    "cat <<EOF | tr a b\naaa\nEOF",
    "cat <<A; cat <<B\na\nA\nb\nB",
    'x=$(cat <<EOF\na $((1+1))\nEOF\n); echo "$x"',
    "s=$(printf '=%.0s' $(seq 1 5000)); x=$(cat <<EOF\n$s\nEOF\n); echo ${#x}",
    "cat <<< 'here string'",
    "cat <<EOF\n$(echo 'a\nEOF",
    "bash <<'EOF'\necho inner\nexit 4\nEOF",
]
LINEWISE = [
    "echo one\nif\n",
    "echo one; if",
    "echo a\nfi\necho b",
    "echo a\necho 'b\necho c",
    "touch a b x; shopt -s extglob\necho !(x)",
    "shopt -s expand_aliases\nalias hi='echo aliased'\nhi",
    "alias hi='echo aliased'\nhi",
    'for f in a b c; do\n    n=$(echo $f | tr a-z A-Z)\n    echo "$f -> $n"\ndone\necho end',
    "exit_fn() { return 6; }; exit_fn",
    "break 99",
    "continue",
    "return 5",
    "local z=1",
    "shift 3",
    "false | true",
    "yes | head -n 1",
    "echo \"word!@2001 and bang!\"; echo '!!'",
    "echo 'a\x01b\x7fc\x1b'",
    "echo 'tab\tcr\r'",
    "echo ünïcödé 😀 ；",
    "echo $'\\x01'",
    "nosuchcmd_zz",
    "printf x > plain; ./plain",
    "(exit 255)",
    "(exit 256)",
    "(kill -9 $BASHPID)",
    "echo ${#}; set -- a b; echo $#",
    "IFS=:; x=a:b; echo $x",
    "coproc { echo hi; }; read -u ${COPROC[0]} x; echo $x",
]
ALL = [*UNBALANCED, *CLOSERS, *ENDS, *HERE_DOCUMENTS, *LINEWISE]


def bash_c(command: str, workdir: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", command], cwd=workdir, stdin=subprocess.DEVNULL, capture_output=True, timeout=10
    )


def messages(stderr: str) -> list[str]:
    """Return what the shell said, without its own name and the place, which differ between `-c` and `eval`."""
    plain = [re.sub(r"^\S*bash: (?:(?:-c|eval): )?(?:line \d+: )?", "", line) for line in stderr.splitlines()]
    return [re.sub(r"line \d+|^ *\d+ (?=Killed)", "N", line) for line in plain]


@pytest.mark.parametrize("command", ALL)
def test_a_command_does_what_bash_c_does(either: BlockingExecutor, tmp_path: Path, command: str) -> None:
    """B1: every text gives the exit code, the output and the message of `bash -c`, and the session goes on."""
    expected = bash_c(command, tmp_path)
    result = either.run(command, timeout=5)
    assert result.stdout.encode() == expected.stdout
    assert result.exit_code == expected.returncode % 256
    assert messages(result.stderr) == messages(expected.stderr.decode())
    assert result.duration < 2
    assert not result.timed_out
    assert result.shell_state == "alive"
    after = either.run("echo ok")
    assert (after.stdout, after.stderr, after.exit_code) == ("ok\n", "", 0)


@pytest.mark.parametrize(
    "command",
    ["nosuch_zz", "\n\nnosuch_zz", "true\nif", "echo a\n\necho )", "cat <<E\na", "nosuch_zz\n\nnosuch_zz"],
)
def test_line_numbers_keep_their_distances(either: BlockingExecutor, tmp_path: Path, command: str) -> None:
    """B1: bash does not let a wrapper reset its line count (docs/contract.md), but the distances are the command's."""
    expected = bash_c(command, tmp_path)
    either.run("true\ntrue")
    result = either.run(command)
    lines = [int(number) for number in re.findall(r"line (\d+)", result.stderr)]
    wanted = [int(number) for number in re.findall(r"line (\d+)", expected.stderr.decode())]
    assert [line - lines[0] for line in lines] == [line - wanted[0] for line in wanted]
    assert lines[0] >= wanted[0]
    assert result.stdout.encode() == expected.stdout


def test_declarations_are_not_local_to_a_wrapper(shell: BlockingExecutor) -> None:
    """B1: a command is no function body: `declare` reaches the next command."""
    shell.run("declare v=5; declare -a arr=(1 2); typeset -i n=3")
    assert shell.run('echo "$v ${arr[1]} $n"').stdout == "5 2 3\n"


def test_a_function_may_be_called_by_a_later_command(shell: BlockingExecutor) -> None:
    """B1: what a command defines and sets is there for the next, over several lines."""
    shell.run('deploy() {\n  local where=$1\n  echo "to $where"\n}\nexport -f deploy')
    assert shell.run("deploy here; bash -c 'deploy there'").stdout == "to here\nto there\n"


def test_crlf_line_ends_become_lf(either: BlockingExecutor, tmp_path: Path) -> None:
    """B2: CRLF line ends in a command become LF, in here-documents too; a lone CR stays."""
    result = either.run("echo 1\r\n\r\necho 2 > out.txt\r\ncat <<'EOF'\r\nbody\r\nEOF\r\n")
    assert (result.stdout, result.stderr, result.exit_code) == ("1\nbody\n", "", 0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]
    assert either.run("printf 'a\\rb'; echo 'c\rd'").stdout == "a\rbc\rd\n"
