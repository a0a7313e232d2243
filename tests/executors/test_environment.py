"""Which variables reach a session's shell, and what never does (H8)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor, LocalExecutor

SECRETS = [
    "OPENAI_API_KEY",
    "GITHUB_TOKEN",
    "MY_SECRET",
    "DB_PASSWORD",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "X_SECRET_Y",
]
PLAIN = ["KEYBOARD", "TOKENIZERS_PARALLELISM", "AWS_REGION", "SSH_AUTH_SOCK", "MONKEY", "EDITOR_THEME"]


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host environment with secrets, harmless names, and everything that shells start by."""
    for name in (*SECRETS, *PLAIN):
        monkeypatch.setenv(name, f"value-of-{name}")


def test_secrets_do_not_reach_the_shell(environ: None, open_shell: Any, mode: str) -> None:
    """H8: names that look like secrets are not inherited, look-alikes are."""
    seen = open_shell(mode=mode).run("env; cat /proc/$$/environ | tr '\\0' '\\n'").stdout
    for name in SECRETS:
        assert f"value-of-{name}\n" not in seen
    for name in PLAIN:
        assert f"{name}=value-of-{name}\n" in seen


def test_named_secrets_are_kept(environ: None, open_shell: Any, mode: str) -> None:
    """H8: `keep_env` passes the names that it lists; `env` passes what it sets."""
    shell = open_shell(mode=mode, keep_env=["GITHUB_TOKEN"], env={"OPENAI_API_KEY": "mine", "KEYBOARD": None})
    assert shell.run('echo "$GITHUB_TOKEN $OPENAI_API_KEY ${MY_SECRET-unset} ${KEYBOARD-unset}"').stdout == (
        "value-of-GITHUB_TOKEN mine unset unset\n"
    )


def test_a_clean_environment(environ: None, open_shell: Any, mode: str) -> None:
    """H8: `clean_env` gives only `env` and the basics."""
    shell = open_shell(mode=mode, clean_env=True, env={"MINE": "1"})
    names = {line.partition("=")[0] for line in shell.run("env").stdout.splitlines()}
    assert {"PATH", "HOME", "MINE"} <= names
    assert not names & {*SECRETS, *PLAIN}


@pytest.mark.parametrize(
    "name",
    [
        "BASH_ENV",
        "ENV",
        "TMOUT",
        "PROMPT_COMMAND",
        "HISTFILE",
        "SHELLOPTS",
        "BASHOPTS",
        "POSIXLY_CORRECT",
        "BASH_FUNC_echo%%",
        "BASH_FUNC_printf%%",
    ],
)
def test_what_shells_start_by_never_reaches_them(
    monkeypatch: pytest.MonkeyPatch, open_shell: Any, mode: str, tmp_path: Any, name: str
) -> None:
    """H8: start-up files, options and exported functions of the host do not reach the session's shell."""
    hostile = tmp_path / "hostile"
    hostile.write_text("echo HOSTILE; exit 3\n")
    values = {
        "TMOUT": "1",
        "SHELLOPTS": "xtrace:noexec",
        "BASHOPTS": "extdebug",
        "POSIXLY_CORRECT": "1",
        "PROMPT_COMMAND": "echo HOSTILE",
    }
    value = values.get(name, "() { /bin/echo HOSTILE\n}" if "FUNC" in name else str(hostile))
    if name in ("SHELLOPTS", "BASHOPTS"):
        monkeypatch.setitem(os.environ, name, value)
    else:
        monkeypatch.setenv(name, value)
    shell = open_shell(mode=mode)
    result = shell.run("echo ok; printf 'fine\\n'; set +o | grep posix; env | grep -c '^BASH_FUNC'")
    assert result.stdout == "ok\nfine\nset +o posix\n0\n"
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_EDITOR", "true"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("MANPAGER", "cat"),
    ],
)
def test_pagers_and_prompts_are_harmless(
    monkeypatch: pytest.MonkeyPatch, open_shell: Any, mode: str, name: str, value: str
) -> None:
    """H8: pagers, editors and prompts are made harmless over what the host has set, and can be set on purpose."""
    monkeypatch.setenv(name, "from-the-host")
    assert open_shell(mode=mode).run(f"echo ${name}").stdout == f"{value}\n"
    assert open_shell(mode=mode, env={name: "mine"}).run(f"echo ${name}").stdout == "mine\n"
    assert open_shell(mode=mode, env={name: None}).run(f"echo ${{{name}-unset}}").stdout == "unset\n"


@pytest.mark.requires("git")
def test_git_opens_no_window_for_a_password(
    monkeypatch: pytest.MonkeyPatch, open_shell: Any, mode: str, tmp_path: Path
) -> None:
    """H8: git asks neither the terminal nor a program of the desktop or the editor that the host was started from."""
    asking = tmp_path / "ask"
    asking.write_text("#!/bin/sh\necho asked >&2\n")
    asking.chmod(0o755)
    monkeypatch.setenv("GIT_ASKPASS", str(asking))
    monkeypatch.setenv("SSH_ASKPASS", str(asking))
    command = f"printf 'protocol=https\\nhost=example.invalid\\n' | git -c core.askPass={asking} credential fill"
    result = open_shell(mode=mode, env={"HOME": str(tmp_path)}).run(command)
    assert (result.stdout, result.exit_code) == ("", 128)
    assert "terminal prompts disabled" in result.stderr
    assert "asked" not in result.stderr


def test_the_environment_is_read_when_a_shell_starts(
    monkeypatch: pytest.MonkeyPatch, open_shell: Any, mode: str
) -> None:
    """G5: a shell that was started ahead is not used when the host's environment has changed since."""
    shell = open_shell(mode=mode)
    shell.run("true")
    monkeypatch.setenv("CHANGED_LATER", "yes")
    expected = "yes\n" if mode == "stateless" else "unset\n"
    assert shell.run("echo ${CHANGED_LATER-unset}").stdout == expected
    shell.restart()
    assert shell.run("echo ${CHANGED_LATER-unset}").stdout == "yes\n"


def test_umask_and_limits_are_those_of_now(open_shell: Any) -> None:
    """G5: nor when umask, limits or the working directory have changed since."""
    import resource

    shell = open_shell(mode="stateless")
    before, limits = os.umask(0o022), resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        for mask, files in ((0o077, 512), (0o027, 600), (0o022, limits[0])):
            shell.run("true")
            os.umask(mask)
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, limits[1]))
            assert shell.run("umask; ulimit -n").stdout == f"{mask:04o}\n{files}\n"
    finally:
        os.umask(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_odd_names_and_values_pass(monkeypatch: pytest.MonkeyPatch, open_shell: Any, mode: str) -> None:
    """H8, D5: names that are no identifiers and values that are no UTF-8 or hold newlines break nothing."""
    monkeypatch.setitem(os.environ, "odd.name-1", "x")
    monkeypatch.setenv("NEWLINES", "a\nb=c\n")
    monkeypatch.setenv("BYTES", "\udcff\udcfe")
    shell = open_shell(mode=mode)
    assert shell.run('printf %s "$NEWLINES"; printf %s "$BYTES" | od -An -tx1').stdout == "a\nb=c\n ff fe\n"
    assert shell.run("env | grep -a ^odd.name").stdout == "odd.name-1=x\n"
    if mode == "persistent":
        shell.run("exit 3")
        assert shell.run('printf %s "$NEWLINES"; printf %s "$BYTES" | od -An -tx1').stdout == "a\nb=c\n ff fe\n"


def test_secrets_are_in_no_argv(open_shell: Any, mode: str) -> None:
    """B4, H8: values of `env`, of the executor and of one command, stand in no process's argv."""
    value = "zzz-secret-9"
    shell = open_shell(mode=mode, env={"SECRET_VALUE": value})
    script = "for p in /proc/[0-9]*; do grep -c 'zzz-secret-[9]' $p/cmdline 2>/dev/null; done | sort -n | tail -1"
    assert shell.run(script, env={"OTHER": value}).stdout == "0\n"


def test_the_host_environment_is_never_changed(either: BlockingExecutor) -> None:
    """H8: running commands changes nothing in the host's own environment."""
    before = dict(os.environ)
    either.run("export NEW=1; cd /", env={"A": "b"})
    either.run("exit 3")
    assert dict(os.environ) == before
    assert "removed" in repr(LocalExecutor(shell="bash").environment())
