"""What `shellkit agent` is told on the command line, and what becomes of it: the client, and the terms it works under.

Used by `agent` and `agent_setup`. It starts nothing, and it never shows the key.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import attrs

from ..agent.terms import Approve, Terms
from ..errors import ShellkitError
from ..policy.confinement import ConfinementMode
from ..policy.environ import filter_environment
from ..tool import TypingMode
from .policy import policy_of, policy_text

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["AgentOptions", "first_terms", "open_client"]

_MODEL_VARIABLES = ("SHELLKIT_MODEL", "OPENAI_MODEL")


@attrs.frozen(kw_only=True)
class AgentOptions:
    """The options as they were given; None for one that was left out."""

    task: str | None
    model: str | None
    base_url: str | None
    api: Literal["responses", "chat"] | None
    approve: Approve | None
    typing: TypingMode | None
    policy: str | None
    audit: str | None
    log: str | None
    resume: str | None
    record: str | None
    hosted: bool
    download: str | None
    fresh: bool
    max_turns: int | None
    max_tokens: int | None
    mode: str
    shell: str | None
    workdir: str | None
    confinement: ConfinementMode | None
    timeout: float | None

    def for_parent(self) -> dict[str, object]:
        """Return what a sub-agent asks its parent for: the arguments of `Terms.lend`.

        Raises:
            ShellkitError: an option is not for sub-agents.
            PolicyError: the policy file cannot be used.
        """
        if self.base_url is not None or self.hosted:
            which = "--hosted" if self.hosted else "--base-url"
            raise ShellkitError(f"a sub-agent reaches the model through its parent; leave {which} out")
        return {
            "model": self.model or None,
            "api": self.api,
            "approve": self.approve,
            "typing": self.typing,
            "policy": _checked_policy(self.policy),
            "audit": _absolute(self.audit),
            "log": _absolute(self.log),
            "workdir": None if self.fresh else _here(self.workdir),
            "confinement": self.confinement,
            "max_turns": self.max_turns,
            "max_tokens": self.max_tokens,
        }


def first_terms(options: AgentOptions) -> Terms:
    """Return the terms of an agent that a person starts.

    Raises:
        ShellkitError: something is missing or does not go together; the message names the remedy.
        PolicyError: the policy file cannot be used.
    """
    model = options.model or next(filter(None, map(os.environ.get, _MODEL_VARIABLES)), None)
    if model is None:
        raise ShellkitError("no model: name one with --model or in SHELLKIT_MODEL (on Azure, the deployment's name)")
    if options.fresh:
        raise ShellkitError("--fresh is for sub-agents; this agent has no parent")
    if options.download is not None and not options.hosted:
        raise ShellkitError("--download fetches the files of a container; it goes with --hosted")
    local = {
        "--policy": options.policy,
        "--audit": options.audit,
        "--approve": options.approve,
        "--typing": options.typing,
        "--workdir": options.workdir,
        "--record": options.record,
    }
    if options.hosted and (given := [name for name, value in local.items() if value is not None]):
        raise ShellkitError(f"with --hosted nothing runs on this machine; leave {' and '.join(given)} out")
    return Terms(
        model=model,
        api=options.api or "responses",
        approve=options.approve or "ask",
        typing=options.typing or "always",
        policy=_checked_policy(options.policy),
        audit=_absolute(options.audit),
        log=_absolute(options.log),
        workdir=_here(options.workdir),
        confinement=options.confinement or ("off" if options.workdir is None else "root"),
        environment=filter_environment(os.environ).variables,
        max_turns=options.max_turns or 50,
        max_tokens=options.max_tokens,
    )


def open_client(options: AgentOptions) -> AsyncOpenAI:
    """Return a client for OpenAI, for Azure's `/openai/v1/`, or for a server that speaks like them.

    Raises:
        ShellkitError: there is no key, or the base URL is none.
    """
    base_url = options.base_url or os.environ.get("OPENAI_BASE_URL") or None
    names = ["OPENAI_API_KEY"]
    if _host(base_url or "https://api.openai.com/v1").endswith(".azure.com"):
        names.insert(0, "AZURE_OPENAI_API_KEY")
    name = next(filter(os.environ.get, names), None)
    if name is None:
        raise ShellkitError(
            f"no API key: set {' or '.join(names)} (to anything, for a server that wants none); "
            "`shellkit demo` needs no key"
        )
    key = os.environ[name]
    if not re.fullmatch("[!-~]+", key):  # what a header may hold; an error of h11's would quote the key
        raise ShellkitError(f"{name} holds a character that no key has, such as the end of a line; set it anew")
    from openai import AsyncOpenAI

    try:
        return AsyncOpenAI(base_url=base_url, api_key=key)
    except Exception as error:
        # The HTTP library reads proxies and certificates from the environment, and raises what happens to it there.
        raise ShellkitError(
            f"no connection can be made ({error}); see to the base URL, and to HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, "
            "SSL_CERT_FILE and SSL_CERT_DIR in the environment"
        ) from error


def _host(base_url: str) -> str:
    with contextlib.suppress(ValueError):  # brackets, or a port, that are wrong
        url = urlsplit(base_url)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0 and base_url.isprintable():
            return url.hostname
    # It is not shown: there may be a password in it.
    raise ShellkitError("what --base-url or OPENAI_BASE_URL holds is no base URL; one looks like https://HOST/v1")


def _checked_policy(path: str | None) -> str | None:
    if path is None:
        return None
    text = policy_text(path)
    policy_of(text, path)
    return text


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)


def _here(workdir: str | None) -> str:
    try:
        return os.path.abspath(os.path.expanduser(workdir or "."))
    except FileNotFoundError as error:
        raise ShellkitError("the current directory has been deleted; go to another") from error
