"""A model that follows a script, behind the OpenAI API: what a request is answered with, as bytes. No socket.

`loopback` serves it for the demo and the documentation, `openai_server` for tests. It refuses what the API would
refuse of a conversation (a call without its output, say), so that a test notices a history that does not fit.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from . import model_chat, model_responses
from .model_containers import Containers
from .model_steps import (
    Broken,
    Failure,
    Hang,
    Item,
    Script,
    Step,
    function_call,
    local_shell_call,
    message,
    reasoning,
    shell_call,
    shell_call_output,
)

__all__ = [
    "Broken",
    "Failure",
    "Hang",
    "Item",
    "Reply",
    "Script",
    "ScriptedModel",
    "Step",
    "function_call",
    "local_shell_call",
    "message",
    "reasoning",
    "shell_call",
    "shell_call_output",
]

#: Status, headers and body; the body raises ConnectionResetError where the connection must drop.
Reply: TypeAlias = tuple[int, dict[str, str], Iterator[bytes]]
_Frames: TypeAlias = Callable[[dict[str, Any], list[Item]], list[bytes]]

#: OpenAI's own prefix, Azure's, and that of Azure's older API, which names the model in the path.
_PATH = re.compile(r"(?:/v1|/openai/v1|/openai/deployments/[^/]+|/openai)/(.+)")
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "shell_call": "sh",
    "shell_call_output": "sho",
    "local_shell_call": "lsh",
}
_JSON = {"content-type": "application/json"}
#: Tells the openai package that asking again is in vain.
_FINAL = {"x-should-retry": "false"}
_EXHAUSTED = Failure(500, "the script of the model is exhausted", headers=_FINAL)


class ScriptedModel:
    """Answers requests step by step. One may serve several threads.

    Args:
        script: the steps in order, or a function from a request's body to its step.
        delay: seconds between the events of a stream.
        tokens: of input and of output that each reply is said to have taken.
        models: names of models there are; another is not found. Empty takes any.
        api_key: the only key that is let in, or None for any.

    Attributes:
        requests: the bodies received, in order, each with "method", "path" and "headers" (names in lower case) added.
        containers: what the hosted shell's containers hold.
    """

    def __init__(
        self,
        script: Script,
        *,
        delay: float = 0.0,
        tokens: tuple[int, int] = (100, 20),
        models: Sequence[str] = (),
        api_key: str | None = None,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.containers = Containers()
        self._script = script if callable(script) else iter(script)
        self._delay = delay
        self._tokens = tokens
        self._models = tuple(models)
        self._api_key = api_key
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._numbers = itertools.count(1)
        #: The conversation up to and with each stored response.
        self._stored: dict[str, list[Item]] = {}

    def close(self) -> None:
        """Drop what still hangs or waits. Idempotent."""
        self._closed.set()

    def handle(
        self,
        path: str,
        body: dict[str, Any],
        *,
        method: str = "POST",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Answer one request.

        Args:
            path: the URL's path, without a query.
            body: the JSON object; empty for a request that has none.
            method: the HTTP method.
            query: the URL's query, one value a name.
            headers: the request's.
        """
        given = {name.lower(): value for name, value in (headers or {}).items()}
        self.requests.append({**body, "method": method, "path": path, "headers": given})
        key = given.get("api-key") or given.get("authorization", "").removeprefix("Bearer ")
        if self._api_key not in (None, key):
            return _plain(Failure(401, "Incorrect API key provided.", "invalid_api_key"))
        found = _PATH.fullmatch(path)
        match method, found[1] if found else "":
            case "POST", "responses":
                return self._answer(body, self._refused_response(body), self._response)
            case "POST", "chat/completions":
                fault = model_chat.fault(body.get("messages", []))
                return self._answer(body, Failure(400, fault) if fault else None, self._completion)
            case "GET", "models":
                listed = [{"id": each, "object": "model", "created": 0, "owned_by": "x"} for each in self._models]
                return _plain({"object": "list", "data": listed})
            case _, rest if rest.split("/")[0] == "containers":
                return _plain(self.containers.handle(method, rest, body, query or {}))
        return _plain(Failure(404, f"Invalid URL ({method} {path})"))

    def _answer(self, body: dict[str, Any], refused: Failure | None, frames: _Frames) -> Reply:
        if self._models and body.get("model") not in self._models:
            text = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            return _plain(Failure(404, text, "model_not_found"))
        if refused is not None:
            return _plain(refused)
        step = self._step(body)
        if isinstance(step, Failure):
            return _plain(step)
        items = step.items if isinstance(step, Broken | Hang) else step
        try:
            sent = frames(body, [self._numbered(item) for item in items])
        except ValueError as error:
            return _plain(Failure(500, str(error), headers=_FINAL))
        kind = "text/event-stream" if body.get("stream") else "application/json"
        return 200, {"content-type": kind}, self._sent(sent, step)

    def _step(self, body: dict[str, Any]) -> Step:
        if callable(self._script):
            return self._script(body)
        with self._lock:
            return next(self._script, _EXHAUSTED)

    def _numbered(self, item: Item) -> Item:
        """Fill in the ids that the script leaves to us."""
        number = next(self._numbers)
        filled = dict(item)
        if filled.get("call_id", "") is None:
            filled["call_id"] = f"call_{number}"
        if filled.get("id", "") is None:
            filled["id"] = f"{_PREFIXES[item['type']]}_{number}"
        return filled

    def _conversation(self, body: dict[str, Any]) -> list[Item]:
        return model_responses.history(body, self._stored.get(body.get("previous_response_id") or "", ()))

    def _refused_response(self, body: dict[str, Any]) -> Failure | None:
        before = body.get("previous_response_id")
        if before is not None and before not in self._stored:
            return Failure(400, f"Previous response with id '{before}' not found.", "previous_response_not_found")
        for tool in body.get("tools", ()):
            name = (tool.get("environment") or {}).get("container_id")
            if name is not None and (unusable := self.containers.fault(name)):
                return unusable
        fault = model_responses.fault(self._conversation(body))
        return Failure(400, fault) if fault else None

    def _response(self, body: dict[str, Any], output: list[Item]) -> list[bytes]:
        name = f"resp_{next(self._numbers)}"
        if body.get("store", True):
            self._stored[name] = [*self._conversation(body), *output]
        whole = model_responses.response(body, output, name=name, tokens=self._tokens)
        if not body.get("stream"):
            return _halves(_encoded(whole))
        events = model_responses.events(whole)
        return [b"event: %b\ndata: %b\n\n" % (each["type"].encode(), _encoded(each)) for each in events]

    def _completion(self, body: dict[str, Any], output: list[Item]) -> list[bytes]:
        name = f"chatcmpl-{next(self._numbers)}"
        whole = model_chat.completion(body, output, name=name, tokens=self._tokens)
        if not body.get("stream"):
            return _halves(_encoded(whole))
        lines = [*map(_encoded, model_chat.chunks(body, whole)), b"[DONE]"]
        return [b"data: %b\n\n" % line for line in lines]

    def _sent(self, frames: Sequence[bytes], step: Step) -> Iterator[bytes]:
        stop = step.after if isinstance(step, Broken | Hang) else len(frames)
        for number, frame in enumerate(frames[:stop]):
            if number and self._closed.wait(self._delay):
                raise ConnectionResetError("the scripted model is closed")
            yield frame
        if isinstance(step, Hang):
            self._closed.wait()
        if isinstance(step, Broken | Hang):
            raise ConnectionResetError("scripted")


def _halves(body: bytes) -> list[bytes]:
    middle = len(body) // 2
    return [body[:middle], body[middle:]]


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def _plain(answer: dict[str, Any] | bytes | Failure) -> Reply:
    """Return an answer that is no step's: an object, a file's content or an error."""
    if isinstance(answer, bytes):
        return 200, {"content-type": "application/binary"}, iter([answer])
    if not isinstance(answer, Failure):
        return 200, _JSON, iter([_encoded(answer)])
    kind = "invalid_request_error" if answer.status < 500 else "server_error"
    error = {"message": answer.message, "type": kind, "param": None, "code": answer.code}
    return answer.status, {**_JSON, **answer.headers}, iter([_encoded({"error": error})])
