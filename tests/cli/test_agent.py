"""`shellkit agent` as a program: one task, sub-agents, and everything that can be wrong with the call."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shellkit.testing.openai_server import OpenAIServer, StartServer
from shellkit.testing.scripted_model import Failure, Hang, Step, function_call, message, shell_call, shell_call_output

Shellkit = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[bytes]"]

KEY = "sk-very-secret-0123456789"
#: Not one of them is a base URL.
URLS = ("http://[", "http://h:99999/v1", "http://u:secret@h:x/v1", "http://h\t/v1", "ftp://u:secret@h/v1")


def run(command: str, timeout: float | None = None) -> dict[str, Any]:
    """Return the call of a model that wants a command to run."""
    return function_call("run_shell", {"command": command, "timeout": timeout, "workdir": None})


def options(server: OpenAIServer, *more: str) -> list[str]:
    """Return the words that start an agent which talks to the server and asks nobody."""
    return ["agent", "--base-url", server.base_url, "--model", "m", "--approve", "never", *more]


def task_of(body: dict[str, Any]) -> str:
    """Return the user's message, in the first request of a conversation; else ""."""
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return next((str(item["content"]) for item in items if item.get("role") == "user"), "")


def output_of(body: dict[str, Any]) -> str:
    """Return the output of the last call, as the model sees it."""
    return str([item for item in body["input"] if item.get("type") == "function_call_output"][-1]["output"])


# -- one task ---------------------------------------------------------------------------------------------


def test_one_task(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 4, stdout gets only the last message, and stderr nothing where no person looks."""
    server = openai_server([[message("I look."), run("echo hi > made; cat made")], [message("It is *made*.")]])
    done = shellkit(*options(server, "make it"), env={"OPENAI_API_KEY": KEY})
    assert (done.stdout, done.stderr, done.returncode) == ("It is *made*.\n", "", 0)
    assert (tmp_path / "made").read_text() == "hi\n"
    first, second = server.model.requests
    assert task_of(first) == "make it"
    assert "shellkit agent 'TASK'" in first["instructions"]
    assert output_of(second).startswith("hi\n")


def test_chat(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4: --api chat speaks Chat Completions; the task may come from stdin."""
    server = openai_server([[run("echo hi")], [message("done")]])
    done = shellkit(*options(server, "--api", "chat", "-"), env={"OPENAI_API_KEY": KEY}, input="from stdin")
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert [request["path"] for request in server.model.requests] == ["/v1/chat/completions"] * 2
    assert server.model.requests[0]["messages"][-1]["content"] == "from stdin"


def test_the_key_stays_here(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """H8 and issue 4: the key goes to the server and nowhere else: not to the shell, the log, the audit or the file."""
    server = openai_server([[run("env")], Failure(401, f"Incorrect API key provided: {KEY}")], api_key=KEY)
    kept = ["--log", "log", "--audit", "audit", "--resume", "conversation"]
    done = shellkit(*options(server, *kept, "show it"), env={"OPENAI_API_KEY": KEY})
    assert done.returncode == 2
    assert "SHELLKIT_AGENT_SOCKET=" in output_of(server.model.requests[1])
    told = [json.dumps({**request, "headers": None}) for request in server.model.requests]
    written = [path.read_text() for path in tmp_path.iterdir() if path.is_file()]
    assert len(written) == 3
    assert [text for text in (*told, *written, done.stdout, done.stderr) if KEY in text] == []
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir() if path.is_file()} == {"0o600"}


def test_azure_has_a_key_of_its_own(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4, Azure: at an Azure host its key comes first; elsewhere it is not sent."""
    server = openai_server([[message("x")]])
    done = shellkit(*options(server, "x"), env={"AZURE_OPENAI_API_KEY": KEY})
    assert done.returncode == 2
    words = ["agent", "--base-url", "https://x.openai.azure.com/openai/v1/", "--model", "m", "x"]
    assert "set AZURE_OPENAI_API_KEY or OPENAI_API_KEY" in shellkit(*words).stderr


def test_approval_is_asked_by_default(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """H3: where nobody can be asked the command is refused, the model is told, and the loop goes on."""
    server = openai_server([[run("touch ran")], [message("I may not.")]])
    words = ["agent", "--base-url", server.base_url, "--model", "m", "try"]
    done = shellkit(*words, env={"OPENAI_API_KEY": KEY})
    assert (done.stdout, done.stderr, done.returncode) == ("I may not.\n", "", 0)
    assert "no terminal to ask at" in output_of(server.model.requests[1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("policy", [None, "[[rule]]\nprefix = ['touch', 'ran']\ndecision = 'deny'\n"])
def test_a_policy_decides(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path, policy: str | None) -> None:
    """H6: --approve policy allows what only reads without a file, and a file is obeyed with every --approve."""
    server = openai_server([[run("pwd")], [run("touch ran")], [message("done")]])
    chosen = ["--approve", "policy"]
    if policy is not None:
        (tmp_path / "p.toml").write_text(policy)
        chosen = ["--policy", "p.toml"]
    done = shellkit(*options(server, *chosen, "try"), env={"OPENAI_API_KEY": KEY})
    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert output_of(server.model.requests[1]).startswith(str(tmp_path))
    assert "Not run" in output_of(server.model.requests[2])
    assert not (tmp_path / "ran").exists()


def test_limits(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4: a limit of turns or tokens ends it with what was done so far, and says how to go on."""
    for chosen, why in ((["--max-turns", "1"], "limit of turns"), (["--max-tokens", "1"], "limit of tokens")):
        server = openai_server([[message("so far"), run("true")], [message("never")]])
        done = shellkit(*options(server, *chosen, "x"), env={"OPENAI_API_KEY": KEY})
        assert (done.stdout, done.returncode) == ("so far\n", 1)
        assert done.stderr.startswith(f"shellkit: note: the {why} is reached; go on with --resume")


def test_resume(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4: a conversation goes on in another process, and the model is told that the shell is a new one."""
    server = openai_server([[run("echo one")], [message("first")], [message("second")]])
    for task, answer in (("a", "first\n"), ("b", "second\n")):
        done = shellkit(*options(server, "--resume", "file", task), env={"OPENAI_API_KEY": KEY})
        assert (done.stdout, done.stderr, done.returncode) == (answer, "", 0)
    first, _, last = server.model.requests
    assert "resumed" not in first["instructions"]
    assert "The conversation was resumed" in last["instructions"]


def test_lines_from_a_pipe(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4, a REPL without a task: each line of a pipe is said in the one conversation."""
    server = openai_server([[run("A=kept")], [message("one")], [run("echo $A")], [message("two")]])
    done = shellkit(*options(server), env={"OPENAI_API_KEY": KEY}, input="first\n\nsecond")
    assert (done.stdout, done.stderr, done.returncode) == ("one\ntwo\n", "", 0)
    assert output_of(server.model.requests[3]).startswith("kept\n")


def heed(number: signal.Signals) -> None:
    """Let a signal do what it does, also where the tests run under nohup(1)."""
    signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_turn(start: Start, openai_server: StartServer, number: signal.Signals) -> None:
    """Issue 4: a signal while the model is asked ends the turn, and nothing is left."""
    asked = threading.Event()

    def script(_: dict[str, Any]) -> Step:
        asked.set()
        return Hang()

    server = openai_server(script)
    with start(*options(server, "x"), env={"OPENAI_API_KEY": KEY}, preexec_fn=partial(heed, number)) as process:
        assert asked.wait(30)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == (b"", b"shellkit: note: interrupted\n", 128 + number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_conversation(start: Start, openai_server: StartServer, number: signal.Signals) -> None:
    """Issue 4: what ends a process ends it also while the model is asked, and not the turn alone."""
    asked = threading.Event()

    def script(_: dict[str, Any]) -> Step:
        asked.set()
        return Hang()

    server = openai_server(script)
    heeded = {"env": {"OPENAI_API_KEY": KEY}, "preexec_fn": partial(heed, number)}
    with start(*options(server), stdin=subprocess.PIPE, **heeded) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()
        assert asked.wait(30)
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert len(server.model.requests) == 1


def test_under_nohup(start: Start, openai_server: StartServer) -> None:
    """nohup(1): an agent that shall outlive its terminal does."""
    asked, go_on = threading.Event(), threading.Event()

    def script(_: dict[str, Any]) -> Step:
        asked.set()
        assert go_on.wait(30)
        return [message("done")]

    ignore = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    words = options(openai_server(script), "x")
    with start(*words, env={"OPENAI_API_KEY": KEY}, preexec_fn=ignore) as process:
        assert asked.wait(30)
        process.send_signal(signal.SIGHUP)
        go_on.set()
        out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == (b"done\n", b"", 0)


# -- programs and output ----------------------------------------------------------------------------------


def test_cut_output_is_read(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 5.5: what is too large to be returned is kept outside of the working directory, read, and gone at the end."""

    def script(body: dict[str, Any]) -> Step:
        said = str(body["input"][-1])
        if "function_call_output" not in said:
            return [run("seq 100000")]
        if ref := re.search(r"read_output, ref (\w+)", said):
            arguments = {"ref": ref[1], "first_line": 50000}
            return [function_call("read_output", arguments)]
        return [message("read")]

    server = openai_server(script)
    temporary = tmp_path / "t"  # a short name: a socket lies there, too
    temporary.mkdir()
    (tmp_path / "work").mkdir()
    env = {"OPENAI_API_KEY": KEY, "TMPDIR": str(temporary)}
    done = shellkit(*options(server, "--workdir", "work", "x"), env=env)
    assert (done.stdout, done.stderr, done.returncode) == ("read\n", "", 0)
    assert output_of(server.model.requests[2]).startswith("50000\n")
    assert list((tmp_path / "work").iterdir()) == []
    assert [path for path in temporary.rglob("*") if path.is_file()] == []


def test_a_log_on_a_full_disk(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Bad input: what cannot be logged is said in one line, and the task is done."""
    server = openai_server([[run("true")], [message("done")]])
    done = shellkit(*options(server, "--log", "/dev/full", "x"), env={"OPENAI_API_KEY": KEY})
    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert done.stderr.startswith("shellkit: note: cannot log to /dev/full (No space left on device); make room")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("task", ["", " \n", "-"])
def test_an_empty_task(shellkit: Shellkit, openai_server: StartServer, task: str) -> None:
    """Bad input: a variable that is not set is no task, and the model is not asked."""
    server = openai_server([])
    done = shellkit(*options(server, task), env={"OPENAI_API_KEY": KEY})
    assert (done.stdout, done.returncode) == ("", 2)
    assert "the task is empty" in done.stderr
    assert server.model.requests == []


@pytest.mark.parametrize("workdir", ["/", "."])
def test_where_output_is_kept(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path, workdir: str) -> None:
    """Issue 5.5: an agent in a directory that holds TMPDIR, or is the root, works all the same."""
    server = openai_server([[run("seq 100000")], [message("done")]])
    (tmp_path / "t").mkdir()
    env = {"OPENAI_API_KEY": KEY, "TMPDIR": str(tmp_path / "t")}
    done = shellkit(*options(server, "--workdir", workdir, "x"), env=env)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert "read_output, ref" in output_of(server.model.requests[1])


def test_it_is_recorded(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 5.6: --record keeps the session's commands, and each program beside it; an existing file is not touched."""
    calls = [run("echo in the shell"), function_call("exec_command", {"cmd": "echo in a program", "until": "exit"})]
    server = openai_server([calls, [message("done")]])
    words = options(server, "--record", "session.cast", "x")
    done = shellkit(*words, env={"OPENAI_API_KEY": KEY})
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert "in the shell" in shellkit("play", "--speed", "100", "session.cast").stdout
    assert "in a program" in shellkit("play", "--speed", "100", "session-1.cast").stdout
    again = shellkit(*words, env={"OPENAI_API_KEY": KEY})
    assert again.returncode == 2
    assert "session.cast exists; name another file" in again.stderr


# -- hosted -----------------------------------------------------------------------------------------------


def test_hosted(shellkit: Shellkit, openai_server: StartServer, tmp_path: Path) -> None:
    """Issue 4, --hosted: nothing runs here, the model's files are fetched, and the container is gone afterwards."""

    def script(body: dict[str, Any]) -> Step:
        container = body["tools"][0]["environment"]["container_id"]
        server.model.containers.add_file(container, "/mnt/data/sum.txt", b"7\n")
        call = shell_call("touch here", call_id="c", container_id=container)
        return [call, shell_call_output("c", "out\n"), message("saved")]

    server = openai_server(script)
    words = ["agent", "--base-url", server.base_url, "--model", "m", "--hosted"]
    done = shellkit(*words, "--download", "got", "x", env={"OPENAI_API_KEY": KEY})
    assert (done.stdout, done.stderr, done.returncode) == ("saved\n", "", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["got"]
    assert (tmp_path / "got" / "sum.txt").read_text() == "7\n"
    assert server.model.requests[-1]["method"] == "DELETE"
    done = shellkit(*words, "x", env={"OPENAI_API_KEY": KEY})
    assert "/mnt/data/sum.txt (2 bytes); --download DIR saves it" in done.stderr


# -- wrong calls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "environ", "why"),
    [
        (["x"], {}, "no API key: set OPENAI_API_KEY"),
        (["--base-url", "localhost:1", "x"], {"OPENAI_API_KEY": KEY}, "no base URL; one looks like https://HOST/v1"),
        (["--base-url", "http://127.0.0.1:9/v1", "x"], {"OPENAI_API_KEY": KEY}, "check the base URL"),
        (["--policy", "none.toml", "x"], {"OPENAI_API_KEY": KEY}, "cannot be read"),
        (["--audit", "/no/such/log", "x"], {"OPENAI_API_KEY": KEY}, "/no/such"),
        (["--resume", "/no/such/file", "x"], {"OPENAI_API_KEY": KEY}, "/no/such"),
        (["--log", "/no/such/file", "x"], {"OPENAI_API_KEY": KEY}, "name another file with --log"),
        (["--workdir", "/no/such", "x"], {"OPENAI_API_KEY": KEY}, "does not exist"),
        (["--shell", "no-such-shell", "x"], {"OPENAI_API_KEY": KEY}, "shell not found"),
        (["--timeout", "-1", "x"], {"OPENAI_API_KEY": KEY}, "positive"),
        *((["--base-url", url, "x"], {"OPENAI_API_KEY": KEY}, "no base URL") for url in URLS),
        *((["x"], {"OPENAI_API_KEY": KEY + more}, "set it anew") for more in ("\r", "\n", " ", "\u201d")),
        (["x"], {"OPENAI_API_KEY": KEY, "ALL_PROXY": "foo://x"}, "ALL_PROXY"),
        (["x"], {"OPENAI_API_KEY": KEY, "SSL_CERT_FILE": "/no/such"}, "SSL_CERT_FILE"),
        (["--fresh", "x"], {"OPENAI_API_KEY": KEY}, "no parent"),
        (["--download", "d", "x"], {"OPENAI_API_KEY": KEY}, "goes with --hosted"),
        (["--hosted", "--policy", "p", "x"], {"OPENAI_API_KEY": KEY}, "leave --policy"),
        (["--hosted", "--api", "chat", "x"], {"OPENAI_API_KEY": KEY}, "functions alone"),
        (["x"], {"SHELLKIT_AGENT_SOCKET": "/no/such", "SHELLKIT_AGENT": "1"}, "it has ended"),
        ([], {"SHELLKIT_AGENT_SOCKET": "/no/such", "SHELLKIT_AGENT": "1"}, "a sub-agent needs a task"),
    ],
)
def test_wrong_calls(shellkit: Shellkit, words: list[str], environ: dict[str, str], why: str) -> None:
    """Issue 4, bad input: one line with the remedy, and exit code 2."""
    done = shellkit("agent", "--model", "m", *words, env=environ)
    assert (done.stdout, done.returncode) == ("", 2)
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert why in done.stderr
    assert "secret" not in done.stderr


def test_no_model(shellkit: Shellkit) -> None:
    """Issue 4, bad input: a model has to be named."""
    done = shellkit("agent", "x", env={"OPENAI_API_KEY": KEY})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--model or in SHELLKIT_MODEL" in done.stderr


def test_an_unknown_model_and_a_wrong_path(shellkit: Shellkit, openai_server: StartServer) -> None:
    """Issue 4, bad input: what the server does not know is one line that names the remedy."""
    server = openai_server([], models=["another"])
    for base_url in (server.base_url, server.base_url.removesuffix("/v1")):
        done = shellkit("agent", "--base-url", base_url, "x", env={"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "m"})
        assert (done.stdout, done.returncode, done.stderr.count("\n")) == ("", 2, 1)
        assert "check the model's name and the base URL" in done.stderr
