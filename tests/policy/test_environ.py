# ruff: noqa: SIM905 - a long list of words is read more easily as text
"""Which variables reach a command."""

from __future__ import annotations

import pytest

from shellkit.policy import filter_environment
from shellkit.policy.environ import HARMLESS

SECRET = (
    "OPENAI_API_KEY ANTHROPIC_API_KEY api_key GITHUB_TOKEN GH_TOKEN NPM_TOKEN TOKEN HF_TOKEN CLIENT_SECRET "
    "SECRET_KEY_BASE MY_SECRET_THING DB_PASSWORD PGPASSWORD MYSQL_PWD SUDO_PASSWD PASSPHRASE "
    "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_SHARED_CREDENTIALS_FILE "
    "AWS_WEB_IDENTITY_TOKEN_FILE AZURE_CLIENT_SECRET AZURE_CLIENT_CERTIFICATE_PATH "
    "GOOGLE_APPLICATION_CREDENTIALS DOCKER_AUTH_CONFIG GITHUB_PAT SENTRY_DSN DATABASE_URL SSH_PRIVATE_KEY "
    "AZURE_STORAGE_CONNECTION_STRING"
).split()
HARMLESS_NAMES = (
    "PATH HOME LANG USER SSH_AUTH_SOCK KEYBOARD TOKENIZERS_PARALLELISM AWS_REGION AWS_PROFILE "
    "GOOGLE_CLOUD_PROJECT OLDPWD PWD XDG_RUNTIME_DIR LD_LIBRARY_PATH VIRTUAL_ENV CI MONKEY KEYMAP COMPASS "
    "AUTHOR PATTERN http_proxy"
).split()
HOOKS = (
    "BASH_ENV ENV TMOUT PROMPT_COMMAND HISTFILE SHELLOPTS BASHOPTS POSIXLY_CORRECT BASH_FUNC_x%% PS4 PS0 "
    "ZDOTDIR CDPATH BASH_XTRACEFD GLOBIGNORE FPATH"
).split()


@pytest.mark.parametrize("name", SECRET)
def test_secrets_are_removed_by_name(name: str) -> None:
    """H8: names that look like secrets do not reach the child, and are told without their value."""
    result = filter_environment({name: "s3cret"})
    assert name not in result.variables
    assert result.removed == (name,)
    assert "s3cret" not in repr(result)


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_other_names_are_inherited(name: str) -> None:
    """H8: the child inherits everything else."""
    assert filter_environment({name: "v"}).variables[name] == "v"


def test_keep_lets_secrets_pass() -> None:
    """H8: unless in `keep_env`, which takes patterns."""
    environ = {"A_KEY": "1", "CI_TOKEN": "2", "CI_SECRET": "3", "B_KEY": "4"}
    result = filter_environment(environ, keep=["A_KEY", "CI_*"])
    assert result.removed == ("B_KEY",)
    with pytest.raises(TypeError):
        filter_environment({}, keep="A_KEY")


@pytest.mark.parametrize("name", HOOKS)
def test_what_shells_start_by_never_passes(name: str) -> None:
    """H8: startup hooks and exported functions never reach the shell, kept or not, in either mode."""
    for clean in (False, True):
        assert filter_environment({name: "x"}, keep=["*"], clean=clean).removed == (name,)


def test_clean_gives_only_the_basics() -> None:
    """H8: `clean_env=True` gives only `env` plus PATH/HOME/LANG basics; what is in `keep` is asked for by name."""
    basics = dict.fromkeys(("PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ"), "v")
    result = filter_environment(
        {**basics, "CI": "1", "A_KEY": "2", "MINE": "3"}, clean=True, keep=["MINE"], extra={"X": "y"}
    )
    assert result.variables == {**basics, "TERM": "dumb", "MINE": "3", "X": "y"}
    assert result.removed == ("A_KEY", "CI")


def test_pagers_editors_and_prompts_are_harmless_and_overridable() -> None:
    """H8: programs that would wait for a person get an answer; `env` overrides each, None removes."""
    result = filter_environment({"PAGER": "less", "EDITOR": "vim", "TERM": "xterm"})
    assert dict(HARMLESS).items() <= result.variables.items()
    assert result.variables["PAGER"] == result.variables["GIT_PAGER"] == "cat"
    assert result.variables["GIT_TERMINAL_PROMPT"] == "0"
    assert result.removed == ()
    result = filter_environment(
        {"PAGER": "less", "X": "1"}, extra={"PAGER": "more", "GIT_EDITOR": None, "X": None, "NO": None}
    )
    assert result.variables["PAGER"] == "more"
    assert not {"GIT_EDITOR", "X", "NO"} & set(result.variables)
    assert result.removed == ("X",)


def test_what_is_set_explicitly_wins() -> None:
    """H8: `env` is the caller's own word: it may hold a secret, or a hook."""
    result = filter_environment({"A_KEY": "1"}, extra={"A_KEY": "2", "ENV": "x"}, clean=True)
    assert result.variables["A_KEY"] == "2"
    assert result.variables["ENV"] == "x"
    assert result.removed == ()


@pytest.mark.parametrize(
    ("extra", "error"),
    [({"A": 1}, TypeError), ({"A": b"x"}, TypeError), ({1: "x"}, TypeError), ({"A": "a\0b"}, ValueError),
     ({"": "x"}, ValueError), ({"A=B": "x"}, ValueError), ({"A\0": None}, ValueError)],
)  # fmt: skip
def test_bad_names_and_values_are_refused(extra: dict[str, str | None], error: type[Exception]) -> None:
    """H8: what no environment can carry is refused before anything runs."""
    with pytest.raises(error):
        filter_environment({}, extra=extra)


def test_the_inputs_are_not_changed() -> None:
    """H8: the filter is a function: the caller's mappings stay as they are."""
    environ, extra = {"A_KEY": "1", "B": "2"}, {"C": "3", "B": None}
    filter_environment(environ, extra=extra)
    assert environ == {"A_KEY": "1", "B": "2"}
    assert extra == {"C": "3", "B": None}
