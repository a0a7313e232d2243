"""Each way around a policy from the field cases, through the whole tool: without an approver, nothing ran."""

from __future__ import annotations

from typing import Any

import pytest

from shellkit.policy import READ_ONLY, Rule, RulePolicy, loads


def _allow(*names: str, **options: Any) -> RulePolicy:
    return RulePolicy(
        rules=[Rule(prefix=name.split(), decision="allow") for name in names], **{"default": "deny", **options}
    )


RUN_CODE = _allow("find", "git", "sort", "echo", "tar", "awk", "sed", "xargs", "env", cap=READ_ONLY)
CHAINING = _allow("git status", "ls", "echo")
NEWLINE = _allow("echo", "cat")
STATE = _allow(
    "ls", "alias", "export", "cd", "cat", "hash", "trap", "printf", "read", "source", "eval", "enable", "set"
)
DENYING = RulePolicy(rules=[Rule(prefix=[["rm", "shutdown", "mkfs"]], decision="deny")], default="allow")
FILE = loads('[policy]\npreset = "read-only"\n\n[[rule]]\nprefix = ["rm"]\ndecision = "deny"\n', "shellkit.toml")

ROWS: dict[str, tuple[Any, list[str]]] = {
    "sec-allowlist-arguments-run-code": (
        RUN_CODE,
        [
            "find . -maxdepth 0 -exec touch pwned1 \\;",
            "find . -name victim -delete",
            "git diff --no-index --output=pwned2 /dev/null /etc/hostname",
            "git -c alias.x='!touch pwned3' x",
            "sort -o pwned4 /etc/hostname",
            "echo x > pwned5",
            "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch pwned6' /etc/hostname",
            "awk 'BEGIN{system(\"touch pwned7\")}'",
            "sed -n 'w pwned8' /etc/hostname",
            "xargs -I{} touch pwned9 </etc/hostname",
            "env touch pwned10",
        ],
    ),
    "sec-allowlist-chaining": (
        CHAINING,
        [
            "git status; touch pwned",
            "ls && touch pwned",
            "ls || touch pwned",
            "false | touch pwned",
            "ls & touch pwned",
            "echo $(touch pwned)",
            "echo `touch pwned`",
            'echo "${x:-$(touch pwned)}"',
            "ls <(touch pwned)",
            "git statusfoo",
        ],
    ),
    "sec-allowlist-newline": (
        NEWLINE,
        [
            "echo ok\ntouch pwned",
            "echo ok\r\ntouch pwned",
            "cat <<'EOF'\nhi\nEOF\ntouch pwned",
            "echo a # c \\\ntouch pwned",
            "x=$(\n  # don't mind\n  touch pwned\n)",
        ],
    ),
    "sec-interpreter-and-pipe-to-shell": (
        DENYING,
        [
            "rm -rf victim",
            "/bin/rm -rf victim",
            "\\rm -rf victim",
            "'r'm -rf victim",
            "${RM:=rm} -rf victim",
            "$(printf rm) -rf victim",
            "R=rm; $R -rf victim",
            "command rm -rf victim; env rm -rf victim; nice rm -rf victim",
            "timeout 5 rm -rf victim; sh -c 'rm -rf victim'",
            "bash -c \"bash -c 'rm -rf victim'\"",
            "sh <<'EOF'\nrm -rf victim\nEOF",
            "echo cm0gLXJmIHZpY3RpbQ== | base64 -d | sh",
            "python3 -c \"import shutil; shutil.rmtree('victim')\"",
            "printf 'rm -rf victim' > s.sh",
            "bash s.sh",
            "eval 'rm -rf victim'",
            "alias ls='rm -rf victim'",
            "# ls\nrm -rf victim",
            "echo victim | xargs rm -rf",
        ],
    ),
    "sec-state-subverts-policy": (
        STATE,
        [
            "alias ls='touch pwned1; :'",
            "export PATH=$PWD/evil:$PATH",
            "PATH=$PWD/evil ls",
            "hash -p /usr/bin/touch ls",
            "trap 'touch pwned3' DEBUG",
            "export BASH_ENV=evil PROMPT_COMMAND='touch pwned4'",
            "printf -v PATH evil",
            "read PATH",
            "source evil",
            "eval touch pwned5",
            "enable -f evil ls",
            "ls() { touch pwned6; }",
            "set -k",
        ],
    ),
    "a policy file": (
        FILE,
        ["touch pwned", "ls; rm -r victim", "cat a | tee pwned", "git commit -m x", "sed -i s/a/b/ f"],
    ),
}


@pytest.mark.parametrize(("case", "command"), [(case, command) for case, row in ROWS.items() for command in row[1]])
def test_it_does_not_run(bench: Any, case: str, command: str) -> None:
    """H6: denied or asked about, never allowed; without an approver the call is refused, and no file changes."""
    it = bench(approval="policy", policy=ROWS[case][0])
    (it.workdir / "victim").mkdir()
    (it.workdir / "evil").mkdir()
    output = it.call(command)
    assert (output.is_error, output.result) == (True, None)
    assert output.text.startswith("Not run: ")
    assert it.made == ["evil", "victim"]
    assert [line["event"] for line in it.lines] == ["refused"]


@pytest.mark.parametrize("case", ROWS)
def test_nothing_adds_up(bench: Any, case: str) -> None:
    """sec-state-subverts-policy: what was refused has left no trace in a session that lives on."""
    it = bench(approval="policy", policy=ROWS[case][0])
    (it.workdir / "victim").mkdir()
    for command in ROWS[case][1]:
        it.call(command)
        it.call("ls pwned")
    assert it.made == ["victim"]
    assert it.shell.run("type -t ls; alias; trap -p DEBUG").stdout == "file\n"


@pytest.mark.parametrize(
    ("policy", "command", "stdout"),
    [
        (CHAINING, "ls -a; echo done", ".\n..\ndone\n"),
        (NEWLINE, "cat <<'EOF'\ntouch pwned\nEOF", "touch pwned\n"),
        (FILE, "printf 'b\\na\\n' | sort", "a\nb\n"),
    ],
)
def test_what_is_allowed_runs(bench: Any, policy: Any, command: str, stdout: str) -> None:
    """H6: a policy that refuses everything would pass the tests above."""
    assert bench(approval="policy", policy=policy).call(command).result.stdout == stdout
