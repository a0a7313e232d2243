"""Secrets in the audit log (contract H9)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shellkit.audit import AuditLog, records, redact
from shellkit.cli.audit import audit as audit_command


def allowed(log: AuditLog, command: str = "ls", **about: Any) -> Any:
    return log.before(command, decision="allowed", decided_by="policy: read-only", tool="run_shell", **about)


A36 = "Ab3" * 12
SECRETS = [
    ("export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY=wJalr/XUtn+FEMI aws s3 ls", "wJalr/XUtn+FEMI"),
    (f"git clone https://ghp_{A36}@github.com/x/y", A36),
    ("git clone https://bob:hunter2@host/x", "hunter2"),
    ("psql postgres://u:p%40ss@db/x", "p%40ss"),
    (f"OPENAI_API_KEY=sk-proj-{A36}", A36),
    ("curl -H 'Authorization: Bearer abc.def-123456' https://x", "abc.def-123456"),
    ("curl -H 'authorization: Basic Ym9iOmh1bnRlcg=='", "Ym9iOmh1bnRlcg=="),
    ('curl -H "X-Api-Key: abcdef" https://x', "abcdef"),
    ("curl -s -u bob:hunter2 https://x", "hunter2"),
    ("curl 'https://x/?api_key=abcdef&b=1'", "abcdef"),
    ("mysql -uroot -phunter2 db", "hunter2"),
    ("mysqldump --password=hunter2 db", "hunter2"),
    ("tool --password hunter2 --verbose", "hunter2"),
    ("tool --db-password 'two words' x", "two words"),
    ("sshpass -p hunter2 ssh host", "hunter2"),
    ("PGPASSWORD='two words' psql", "two words"),
    ("docker run -e DB_PASS=hunter2 image", "hunter2"),
    ('echo \'{"password": "hunter2"}\'', "hunter2"),
    ("printf 'token: hunter2'", "hunter2"),
    ("cat <<E\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nE", "MIIE"),
    ("echo -----BEGIN PRIVATE KEY-----\nMIIE", "MIIE"),
    (f"curl x -d eyJ{A36}.eyJ{A36}.{A36}", A36),
    (f"pip install --index-url x pypi-{A36}", A36),
]


@pytest.mark.parametrize(("command", "secret"), SECRETS)
def test_secrets_are_taken_out(command: str, secret: str, path: Path) -> None:
    """H9: a secret with a shape or a name is not in the file; the hash of the original is."""
    with AuditLog(path) as log:
        allowed(log, command, reason=command)
    data = path.read_text()
    assert secret not in data
    assert json.dumps(secret)[1:-1] not in data
    assert list(records(path))[-1]["command_sha256"] == hashlib.sha256(command.encode()).hexdigest()
    assert redact(redact(command)) == redact(command)


@pytest.mark.parametrize(("command", "secret"), SECRETS)
@pytest.mark.parametrize("options", [["--json"], []])
def test_show_takes_them_out_as_well(command: str, secret: str, options: list[str], path: Path) -> None:
    """H9: with `redact=False` the file holds the command as it is; `show` does not print its secrets."""
    with AuditLog(path, redact=False) as log:
        allowed(log, command)
    assert list(records(path))[-1]["command"] == command
    shown = CliRunner().invoke(audit_command, ["show", *options, str(path)], env={"COLUMNS": "400"}).output
    assert "redacted" in shown
    assert secret not in shown


@pytest.mark.parametrize(
    "command",
    [
        "git status && ls -la",
        "password=$DB_PASSWORD psql",
        'curl -H "Authorization: Bearer $TOKEN" -u "$USER:$PASS" https://x',
        "kubectl get secret --token $(cat t)",
        "python train.py --max-tokens=400",
        "TOKENIZERS_PARALLELISM=false python x.py",
        "ssh git@github.com; scp a user@host:/b",
        "docker run -u 1000:1000 image",
        "rsync -u a:b c",
        "echo bypass=1 compass=2",
        "curl https://example.org/a@b",
        "grep -rn 'def authorize' src",
    ],
)
def test_what_is_no_secret_stays(command: str) -> None:
    """H9: a log stays readable: references to secrets and innocent words are not taken out."""
    assert redact(command) == command


@pytest.mark.parametrize(
    "text", ["a", "token ", "--secret-", "https://", "eyJ", "mysql ", "authorization: ", "_key_", "curl -u a"]
)
def test_redacting_is_linear(text: str) -> None:
    """H9, B3: no text makes redaction explode (1 MB each; a quadratic pattern would take minutes)."""
    redact(text * (1_000_000 // len(text)))
