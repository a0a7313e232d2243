"""A pytest fixture that serves a scripted model over HTTP, for every client, framework and process a test starts.

A conftest or a test module takes it by `from shellkit.testing.openai_server import openai_server`. It needs
pytest-httpserver; `loopback` serves the same model where no test runs.
"""

from __future__ import annotations

import gc
import re
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import pytest

from .scripted_model import Script, ScriptedModel

if TYPE_CHECKING:
    from werkzeug import Request, Response

__all__ = ["OpenAIServer", "StartServer", "openai_server"]


@attrs.frozen
class OpenAIServer:
    """A scripted model that is being served.

    Attributes:
        base_url: for `OpenAI(base_url=..., api_key="any")`.
        model: what it was asked, in `model.requests`.
    """

    base_url: str
    model: ScriptedModel


class StartServer(Protocol):
    """What the fixture is: a function from a script to a server."""

    def __call__(self, script: Script, **options: Any) -> OpenAIServer:
        """Serve a script until the test ends; the options are those of `ScriptedModel`."""


@pytest.fixture
def openai_server() -> Iterator[StartServer]:
    """Return a function that serves a script until the test ends."""
    from pytest_httpserver import HTTPServer

    class Server(HTTPServer):
        def thread_target(self) -> None:
            assert self.server is not None
            self.server.serve_forever(0.02)  # seconds that stopping takes; half a second by default

    started: list[tuple[Server, ScriptedModel]] = []

    def start(script: Script, **options: Any) -> OpenAIServer:
        model = ScriptedModel(script, **options)
        server = Server(host="127.0.0.1", port=0, threaded=True)
        server.expect_request(re.compile("/.*")).respond_with_handler(lambda request: _answer(model, request))
        server.start()
        started.append((server, model))
        return OpenAIServer(server.url_for("/v1"), model)

    yield start
    for server, model in started:
        model.close()
        server.stop()
    gc.collect()  # werkzeug leaves its selector to it where a client has reset the connection
    for server, _ in started:
        server.check()  # what a script that is a function has raised


def _answer(model: ScriptedModel, request: Request) -> Response:
    from werkzeug import Response

    body = request.get_json(silent=True) or {}
    status, headers, chunks = model.handle(
        request.path,
        body,
        method=request.method,
        query=request.args.to_dict(),
        headers=dict(request.headers),
    )
    return Response(_sent(chunks, request.environ["werkzeug.socket"]), status=status, headers=headers)


def _sent(chunks: Iterator[bytes], connection: socket.socket) -> Iterator[bytes]:
    try:
        yield from chunks
    except ConnectionResetError:
        # werkzeug would wait for the next request on a connection that got no answer yet.
        connection.shutdown(socket.SHUT_RDWR)
        raise
