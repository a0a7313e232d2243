"""A time-out is a bound, whatever the command does, and takes down what the command started (F1-F5)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from shellkit import BlockingExecutor

GRACE = 0.6

# Commands that would run for an hour; S stands for a sleep length of the test's own.
STUBBORN = {
    "sleeps": "sleep S",
    "list": "sleep S; touch ran",
    "and-list": "sleep S && touch ran; touch ran",
    "or-list": "sleep S || touch ran; touch ran",
    "loop": "for i in 1 2 3; do sleep S; touch ran; done",
    "while": "while sleep S || true; do touch ran; done",
    "until": "until false; do sleep S; touch ran; done",
    "function": "f() { sleep S; touch ran; }; f; touch ran; f",
    "subshell": "(sleep S; touch ran); touch ran",
    "substitution": "x=$(sleep S; touch ran); touch ran",
    "pipeline": "sleep S | cat; touch ran",
    "deep pipeline": "sh -c 'sleep S & (sleep S | cat) & sleep S; touch ran'; touch ran",
    "condition": "if sleep S; then touch ran; else touch ran; fi; touch ran",
    "brace group": "{ sleep S; touch ran; } 2>&1 | cat; touch ran",
    "busy builtin loop": "while :; do :; done; touch ran",
    "busy substitutions": "while true; do x=$(echo a); done",
    "arithmetic": "for ((;;)); do ((x++)); done",
    "traps INT": "trap 'touch ran-trap' INT; sleep S; touch ran",
    "traps INT in a loop": "trap : INT; while :; do sleep S; touch ran; done",
    "ignores INT and TERM": "trap '' INT TERM; sleep S; touch ran",
    "ignores all signals": "trap '' $(seq 1 31) 2>/dev/null; sleep S; touch ran",
    "ignores real-time signals": "trap '' $(seq 1 64) 2>/dev/null; while :; do :; done",
    "traps EXIT for ever": "trap 'sleep S' EXIT; sleep S",
    "child ignores signals": "sh -c \"trap '' TERM INT HUP; sleep S; sleep S; touch ran\"; touch ran",
    "python ignores signals": "python3 -c 'import signal,time; "
    "[signal.signal(s, signal.SIG_IGN) for s in (1,2,15)]; time.sleep(S)'; touch ran",
    "setsid": "setsid sleep S & setsid sh -c 'sleep S & sleep S' & sleep S",
    "setsid in front": "setsid -w sleep S; touch ran",
    "double fork": "(setsid sh -c 'sleep S & exit' &) ; sleep S",
    "nohup": "nohup sleep S >/dev/null 2>&1 & sleep S",
    "disowned": "sleep S & disown; sleep S",
    "stops itself": "kill -STOP $$; touch ran",
    "stopped child": "sh -c 'kill -STOP $$; sleep S'; touch ran",
    "holds pipes": "sleep S & sleep S & wait; touch ran",
    "fifo": "mkfifo q; cat q; touch ran",
    "fifo opened by the shell": "mkfifo r; read x < r; touch ran",
    "fifo with writer": "mkfifo p; (until false; do printf 'w\\n'; sleep 0.01; done) >p & cat p",
    "read from a fifo held open": "mkfifo s; exec 5<>s; read -u 5 x; touch ran",
    "wait": "sleep S & wait; touch ran",
    "coproc": "coproc { sleep S; }; wait; touch ran",
    "process substitution": "cat <(sleep S); touch ran",
    "exec": "exec sleep S",
    "errexit": "set -e; sleep S; touch ran",
    "debug trap": "trap ':' DEBUG; sleep S; touch ran",
    "nested bash": "bash -c 'trap : INT; while :; do sleep S; done'; touch ran",
    "writes for ever": "yes > /dev/null; touch ran",
    "prints for ever": "while :; do echo line; echo err >&2; done",
    "forks for ever": "f() { sleep S & sleep S; }; while :; do f; done",
    "here-document of a slow substitution": "cat <<X\n$(sleep S)\nX\ntouch ran",
    "exit redefined": "exit() { touch ran; }; trap exit INT; sleep S; touch ran",
    "kill redefined": "kill() { :; }; trap() { :; }; sleep S; touch ran",
}


# Those that get away from their process group, fork, or hold what they were given.
ESCAPES = [
    "deep pipeline", "child ignores signals", "setsid", "setsid in front", "double fork", "nohup", "disowned",
    "stops itself", "holds pipes", "coproc", "process substitution", "forks for ever", "busy substitutions",
]  # fmt: skip


def ends_in_time(shell: BlockingExecutor, what: str, sleeps: Any) -> None:
    command = re.sub(r"\bS\b", lambda _: sleeps(), STUBBORN[what])
    shell.run("kept=5")
    begun = time.monotonic()
    result = shell.run("echo before; " + command, timeout=0.2)
    spent = time.monotonic() - begun
    assert (result.timed_out, result.exit_code) == (True, 124)
    assert spent < 0.2 + GRACE + 1.0
    assert result.stdout.startswith("before\n")
    assert "0.2 s" in result.notes[0]
    assert sleeps.left() == []
    after = shell.run("echo ok; ls ran 2>/dev/null || :; (exit 3)", timeout=5)
    assert (after.stdout, after.stderr, after.exit_code, after.timed_out) == ("ok\n", "", 3, False)


@pytest.mark.parametrize("what", STUBBORN)
def test_a_timeout_is_a_bound(open_shell: Any, mode: str, what: str, sleeps: Any) -> None:
    """F1-F4: `run` returns within timeout + grace, what the command started is gone, its rest did not run."""
    ends_in_time(open_shell(mode=mode, grace=GRACE), what, sleeps)


@pytest.mark.parametrize("what", ESCAPES)
def test_a_timeout_is_a_bound_without_cgroups(
    open_shell: Any, mode: str, what: str, sleeps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2: where no cgroup can be made, parentage and the cookie find what the command started."""
    monkeypatch.setattr("shellkit.process.tree.own_cgroup", lambda: None)
    ends_in_time(open_shell(mode=mode, grace=GRACE), what, sleeps)


def test_the_state_survives_a_timeout(shell: BlockingExecutor, sleeps: Any) -> None:
    """F4, D2: after a time-out the session has its variables, functions and directory, and what the command had set."""
    shell.run("kept=5; f() { echo f; }; mkdir d; cd d")
    result = shell.run(f"also=6; sleep {sleeps()}", timeout=0.2)
    assert result.timed_out
    assert result.shell_state in ("alive", "restored")
    assert shell.run('echo "$kept $also $(f) ${PWD##*/}"').stdout == "5 6 f d\n"


def test_a_program_is_asked_before_it_is_killed(either: BlockingExecutor, sleeps: Any) -> None:
    """F2: interrupt first, then terminate: a program can clean up."""
    script = f"trap 'echo cleaned > c.txt; exit 0' TERM INT; sleep {sleeps()} & wait"
    result = either.run(f'bash -c "{script}"', timeout=0.3)
    assert result.timed_out
    assert either.run("cat c.txt").stdout == "cleaned\n"
    term = either.run(
        f"bash -c \"trap '' INT; trap 'echo term > t.txt; exit 0' TERM; while :; do sleep 0.05; done; : {sleeps()}\"",
        timeout=0.3,
    )
    assert term.timed_out
    assert either.run("cat t.txt").stdout == "term\n"
    assert sleeps.left() == []


def test_partial_output_is_kept(either: BlockingExecutor, sleeps: Any) -> None:
    """F4: what was printed before the time-out is in the result, on both streams, more than a pipe holds."""
    result = either.run(f"seq 1 20000; echo err >&2; printf tail; sleep {sleeps()}", timeout=1)
    assert result.timed_out
    assert result.stdout.endswith("20000\ntail")
    assert result.stderr == "err\n"


def test_output_of_a_timed_out_command_is_in_no_later_result(either: BlockingExecutor) -> None:
    """F6, C2: what a timed-out command would have printed later never appears."""
    result = either.run("trap '' INT TERM; for i in 1 2 3 4 5 6 7 8; do sleep 0.2; done; echo OLD", timeout=0.3)
    assert result.timed_out
    assert either.run("echo NEW").stdout == "NEW\n"
    assert either.run("sleep 0.5; echo NEWER").stdout == "NEWER\n"


def test_jobs_of_earlier_commands_live_on(shell: BlockingExecutor, containment: str, sleeps: Any) -> None:
    """F2, I3: a time-out ends the command's own processes and no earlier background job, detached ones included."""
    first, second = sleeps(), sleeps()
    shell.run(f"sleep {first} & (setsid sleep {second} &)")
    assert len(sleeps.left()) == 2
    assert shell.run(f"sleep {sleeps()} & sleep {sleeps()}", timeout=0.2).timed_out
    assert sorted(line.split()[-1] for line in sleeps.left()) == sorted([first, second])
    shell.close()
    assert sleeps.left() == []


def test_a_commands_own_timeout_is_no_timeout_of_ours(either: BlockingExecutor) -> None:
    """F4: exit code 124 of `timeout` is the command's own; `timed_out` tells them apart."""
    result = either.run("timeout 0.1 sleep 5", timeout=5)
    assert (result.exit_code, result.timed_out) == (124, False)


@pytest.mark.slow
def test_silent_is_not_stuck(either: BlockingExecutor) -> None:
    """F1: a command that prints nothing for a while is left alone."""
    result = either.run("sleep 1.5; echo done", timeout=20)
    assert (result.stdout, result.timed_out) == ("done\n", False)


def test_a_command_that_ends_at_its_timeout(either: BlockingExecutor) -> None:
    """F1: a command that ends just when its time is over is one of the two, and the session is in order."""
    for hundredths in (1, 2, 3, 4, 5):
        result = either.run("sleep 0.03; echo end", timeout=hundredths / 100)
        assert (result.exit_code, result.timed_out) in ((0, False), (124, True))
        assert either.run("echo ok").stdout == "ok\n"


@pytest.mark.parametrize("value", [0, -1, -0.5, float("inf"), float("nan"), 0.0])
def test_a_timeout_that_is_none_is_refused(either: BlockingExecutor, value: float) -> None:
    """F5: 0, negative and infinite time-outs are `ValueError`s, before anything runs."""
    with pytest.raises(ValueError, match="timeout must be a positive finite number"):
        either.run("touch ran", timeout=value)
    assert either.run("ls").stdout == ""


@pytest.mark.parametrize("value", ["30", b"1", [1], True, object()])
def test_a_timeout_of_another_type_is_refused(either: BlockingExecutor, value: object) -> None:
    """F5: a time-out is a number of seconds."""
    with pytest.raises(TypeError, match="timeout must be a number of seconds"):
        either.run("touch ran", timeout=value)  # type: ignore[arg-type]
    assert either.run("ls").stdout == ""


def test_no_timeout_and_the_default(open_shell: Any, mode: str, sleeps: Any) -> None:
    """A: None means no time-out; a time-out that is left out is the executor's."""
    shell = open_shell(mode=mode, timeout=0.2)
    assert shell.run(f"sleep {sleeps()}").timed_out
    assert not shell.run("sleep 0.4", timeout=None).timed_out
    assert not shell.run("sleep 0.4", timeout=20).timed_out


def test_a_host_that_ignores_interrupts(tmp_path: Path, sleeps: Any) -> None:
    """F3: the rest does not run when the host ignores SIGINT, SIGHUP and SIGTERM (nohup, CI)."""
    script = f"""
        import signal, sys
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        from shellkit import LocalExecutor
        for mode in ("persistent", "stateless"):
            with LocalExecutor(mode=mode, shell="bash", workdir={str(tmp_path)!r}).sync() as shell:
                rest = "sleep {sleeps()}; touch ran"
                for command in (rest, f"while :; do {{rest}}; done", f"bash -c '{{rest}}'"):
                    result = shell.run(command, timeout=0.2)
                    assert result.timed_out and result.duration < 1.5, result
                assert shell.run("ls").stdout == ""
                assert shell.run("yes | head -n 1; echo ${{PIPESTATUS[0]}}").stdout == "y\\n141\\n"
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=60, env=host_environment())
    assert sleeps.left() == []


def host_environment() -> dict[str, str]:
    import shellkit

    return {**os.environ, "PYTHONPATH": str(Path(shellkit.__file__).parent.parent)}


def test_keyboard_interrupt_ends_the_command_and_not_the_session(either: BlockingExecutor, sleeps: Any) -> None:
    """F6: Ctrl-C under `sync()` ends the command and is then raised; the session goes on."""
    import threading

    length = sleeps()

    def press() -> None:
        while not sleeps.left():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        either.run(f"sleep {length}; touch ran")
    pressing.join()
    assert sleeps.left() == []
    assert either.run("ls; echo ok").stdout == "ok\n"
