"""`shellkit agent`: a model at the keyboard, for one task or in conversation."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click

from .lines import LineReader
from .options import INTERRUPTED, command_text, session_options, told

__all__ = ["agent"]


@click.command()
@click.argument("task", required=False)
@click.option("--model", metavar="NAME", help="Which model. Default: $SHELLKIT_MODEL, then $OPENAI_MODEL.")
@click.option(
    "--base-url",
    metavar="URL",
    help="Where the API is: OpenAI's (the default, or $OPENAI_BASE_URL), Azure's "
    "https://RESOURCE.openai.azure.com/openai/v1/, or that of any compatible server.",
)
@click.option(
    "--api", type=click.Choice(["responses", "chat"]), help="Which API the server speaks. Default: responses."
)
@click.option(
    "--approve",
    type=click.Choice(["ask", "policy", "never"]),
    help="Ask before each command (the default), before those that the policy asks about, or never.",
)
@click.option(
    "--typing",
    type=click.Choice(["always", "first", "never"]),
    help="Of what is typed into a program, approve every text (the default), the first for each, or none.",
)
@click.option(
    "--policy",
    metavar="FILE",
    help="Refuse what this policy denies. Default with --approve policy: the preset of commands that only read.",
)
@click.option("--audit", metavar="FILE", help="Record each command in this audit log.")
@session_options
@click.option("--record", metavar="FILE", help="Record the session in this new file; see `shellkit play`.")
@click.option("--resume", metavar="FILE", help="Keep the conversation in this file, and go on with what is in it.")
@click.option("--hosted", is_flag=True, help="Run commands in a container of OpenAI's; none runs here.")
@click.option("--download", metavar="DIR", help="With --hosted: save the files that the model made in this directory.")
@click.option("--max-turns", type=click.IntRange(1), metavar="N", help="Stop after so many replies. Default: 50.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Stop when so many tokens are used.")
@click.option("--fresh", is_flag=True, help="A sub-agent: start as the parent did, not where its shell stands now.")
@click.option("--log", metavar="FILE", help="Log to this file.")
def agent(**chosen: Any) -> None:
    """Have a model do TASK in a shell of this machine; without TASK, talk to it.

    stdout gets the model's last message. At a terminal you see the commands and their output while they run. Ctrl-C
    ends the running command, and the model is told; pressed while none runs it ends the turn. `-` stands for all of
    stdin as the task.

    The key is taken from OPENAI_API_KEY (on Azure, from AZURE_OPENAI_API_KEY before that) and reaches neither the
    shell nor any log.

    A command that takes longer than --timeout, or ten minutes, runs on as a program. The model can launch programs
    itself, too, and type to them; `shellkit ps` lists those that run.

    The model can start sub-agents: `shellkit agent TASK` in its shell. They need no key, ask you through this agent,
    and may not do more than it may.

    The exit code is 0 when the model has come to an end, 1 when it stopped before that, 2 for a wrong call (no key, a
    wrong base URL, an unknown model), 130 after Ctrl-C, 143 after SIGTERM.

    \b
    shellkit agent 'which of the tests here are slow?'
    shellkit agent --approve policy --workdir ~/project
    """
    with told():
        try:
            from .agent_conversation import Conversation
            from .agent_options import AgentOptions

            if chosen["task"] is not None:
                chosen["task"] = command_text(chosen["task"])
                if not chosen["task"].strip():
                    raise click.UsageError("the task is empty; say what is to be done, or leave it out to talk")
            options = AgentOptions(**chosen)
            lines = LineReader("agent-history") if options.task is None and sys.stdin.isatty() else None
            with lines or contextlib.nullcontext():
                code = Conversation(options, lines).hold()
        except KeyboardInterrupt:
            code = INTERRUPTED
    sys.exit(code)
