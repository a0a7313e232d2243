"""A scripted model on 127.0.0.1, by the standard library alone: what `shellkit demo` and the documentation talk to.

Real HTTP for any client and any process of this machine. It never listens elsewhere, and leaves no thread or socket.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .scripted_model import Reply, ScriptedModel

__all__ = ["serve"]


@contextlib.contextmanager
def serve(model: ScriptedModel) -> Iterator[str]:
    """Serve the model while the context lasts.

    Returns:
        The base URL, for `OpenAI(base_url=..., api_key="any")`.
    """
    server = _Server(model)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="shellkit-scripted-model")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        model.close()
        server.hang_up()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # `server_close` waits for the threads of the connections

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.model = model
        self.connections: set[socket.socket] = set()

    def hang_up(self) -> None:
        """End the connections that clients keep open, for their threads read until then."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Connection(BaseHTTPRequestHandler):
    server: _Server  # type: ignore[mutable-override]  # (socketserver sets it to the server that made this)
    protocol_version = "HTTP/1.1"
    # With Nagle's algorithm the second write of an answer waits for the peer's delayed acknowledgement, 40 ms.
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the client went away, or the script says that we do
            super().handle()

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_GET  # noqa: N815  (the names by which http.server looks them up)

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        data = self.rfile.read(length)
        if len(data) != length:  # the client went away before it had asked
            return
        body = json.loads(data) if self.headers.get_content_type() == "application/json" and data else {}
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        model, headers = self.server.model, dict(self.headers)
        self._send(model.handle(url.path, body, method=self.command, query=query, headers=headers))

    def _send(self, reply: Reply) -> None:
        status, headers, chunks = reply
        begun = False
        for chunk in chunks:
            if not begun:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                begun = True
            if chunk:  # an empty one would end the body
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's name)
        """Say nothing: the terminal is the program's."""
