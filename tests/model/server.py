"""A scripted model on loopback that records every request and forgives none it has no rule for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import h11
import trio

from tests.model.chat import ChatCompletions
from tests.model.fields import Malformed, table
from tests.model.messages import Messages
from tests.model.responses import Responses
from tests.model.script import Call, Conversation, Fail, Hang, Rule, Say, Script, resolve
from tests.model.wire import Api
from tests.wire.http import HttpConnection

APIS: tuple[Api, ...] = (Messages(), Responses(), ChatCompletions())


class Unscripted(AssertionError):
    """The model was sent what its script did not foresee."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came. `left` is set when the client has hung up on a `Hang`."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    conversation: Conversation | None = None
    rule: Rule | None = None
    left: trio.Event = field(default_factory=trio.Event)


class Model:
    """What a test sees of the scripted model: where it is and what it was asked."""

    def __init__(self, script: Script, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}"
        self.requests: list[Request] = []
        self.failures: list[str] = []
        self._script = tuple(script)
        self._used: Counter[int] = Counter()
        self._arrival = trio.Event()

    @property
    def conversations(self) -> list[Conversation]:
        return [request.conversation for request in self.requests if request.conversation]

    async def arrived(self, rule: Rule) -> Request:
        """The first request that `rule` answers, however long it takes to come."""
        while True:
            for request in self.requests:
                if request.rule is rule:
                    return request
            await self._arrival.wait()

    def record(self, request: Request) -> int:
        """Keep a request; its number, from 1, makes the ids of its answer."""
        self.requests.append(request)
        self._arrival.set()
        self._arrival = trio.Event()
        return len(self.requests)

    def choose(self, conversation: Conversation) -> Rule | None:
        for index, rule in enumerate(self._script):
            spent = rule.times is not None and self._used[index] >= rule.times
            if not spent and rule.fits(conversation):
                self._used[index] += 1
                return rule
        return None


@asynccontextmanager
async def serve_model(script: Script) -> AsyncGenerator[Model]:
    """Serve `script` on loopback for as long as the block lasts.

    Raises `Unscripted` at its end if any request fitted no rule: a test cannot overlook it.
    """
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    model = Model(script, listener.socket.getsockname()[1])

    async def converse(stream: trio.SocketStream) -> None:
        # A client may leave in the middle, and a cancelled CLI does.
        with suppress(trio.BrokenResourceError, h11.RemoteProtocolError):
            await _Connection(stream, model).serve()

    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_listeners, converse, [listener])
            yield model
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise _plain(group) from None
    if model.failures:
        raise Unscripted("; ".join(model.failures))


def _plain(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong in the test's own block, which must not see that there is a nursery."""
    return group.exceptions[0] if len(group.exceptions) == 1 else group


class _Connection:
    """One client's connection, kept alive from request to request."""

    def __init__(self, stream: trio.SocketStream, model: Model) -> None:
        self._model = model
        self._http = HttpConnection(stream)

    async def serve(self) -> None:
        while http := await self._http.next_request():
            await self._answer(Request(http.method, http.target, http.headers, http.body))

    async def _answer(self, request: Request) -> None:
        path = request.target.partition("?")[0]
        for api in APIS:
            if (request.method, path) == ("POST", api.path):
                await self._answer_conversation(api, request)
                return
        self._model.record(request)
        match (request.method, path):
            case ("POST", "/v1/messages/count_tokens"):
                await self._send_json(200, {"input_tokens": 100})
            case ("GET", "/v1/models"):
                await self._send_json(200, MODELS)
            case _:
                await self._refuse(404, f"{request.method} {request.target} is not served here")

    async def _answer_conversation(self, api: Api, request: Request) -> None:
        try:
            conversation = api.read(table(json.loads(request.body), "body"))
        except (ValueError, Malformed) as problem:
            self._model.record(request)
            await self._refuse(400, f"POST {api.path}: {problem}", api=api)
            return
        rule = self._model.choose(conversation)
        recorded = Request(
            request.method, request.target, request.headers, request.body, conversation, rule
        )
        serial = self._model.record(recorded)
        if rule is None:
            await self._refuse(400, _no_rule(api, conversation), api=api)
            return
        match resolve(rule.reply, conversation):
            case Fail() as reply:
                await self._send_json(reply.status, api.error(reply))
            case Hang() as reply:
                await self._hang(api, reply, request=recorded, serial=serial)
            case Call(kept_back=False) as reply if reply.tool not in conversation.tools:
                offered = ", ".join(conversation.tools) or "none"
                await self._refuse(
                    400, f"the script calls {reply.tool}, and on offer are: {offered}", api=api
                )
            case reply if conversation.stream:
                await self._stream_reply(api, reply, conversation=conversation, serial=serial)
            case reply:
                await self._send_json(200, api.whole(reply, conversation, serial))

    async def _stream_reply(
        self, api: Api, reply: Say | Call, *, conversation: Conversation, serial: int
    ) -> None:
        await self._send_event_stream_head()
        for chunk in api.stream(reply, conversation, serial):
            await self._http.send(h11.Data(data=chunk.data))
            if chunk.pause and isinstance(reply, Say):
                await trio.sleep(reply.pause_s)
        await self._http.send(h11.EndOfMessage())

    async def _hang(self, api: Api, reply: Hang, *, request: Request, serial: int) -> None:
        # The client may leave while the words are being sent.
        try:
            if reply.text and request.conversation:
                await self._send_event_stream_head()
                chunks = list(api.stream(Say(reply.text), request.conversation, serial))
                last_word = max(index for index, chunk in enumerate(chunks) if chunk.pause)
                for chunk in chunks[: last_word + 1]:
                    await self._http.send(h11.Data(data=chunk.data))
            await self._http.wait_until_left()
        finally:
            request.left.set()

    async def _refuse(self, status: int, what: str, *, api: Api = APIS[0]) -> None:
        self._model.failures.append(what)
        await self._send_json(status, api.error(Fail(status, f"not in the script: {what}")))

    async def _send_json(self, status: int, value: dict[str, Any]) -> None:
        await self._http.reply(status, json.dumps(value).encode())

    async def _send_event_stream_head(self) -> None:
        headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache")]
        await self._http.send(h11.Response(status_code=200, headers=headers))


# One list that every client can read: OpenAI's fields and Anthropic's.
MODELS: dict[str, Any] = {
    "object": "list",
    "data": [
        {
            "id": "scripted",
            "type": "model",
            "object": "model",
            "display_name": "scripted",
            "created": 0,
            "owned_by": "takopi",
        }
    ],
    "has_more": False,
}


def _no_rule(api: Api, conversation: Conversation) -> str:
    latest = conversation.latest
    waiting = f"{latest.role} said {latest.text[:200]!r}" if latest else "nobody said anything"
    return f"no rule for POST {api.path}: {waiting}"
