"""The loopback Bot API on the wire: each request is checked and applied, or meets trouble."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import unquote

import h11
import msgspec
import trio

from tests.botapi.api import BotApi, Request, Violated
from tests.botapi.body import read_parameters
from tests.botapi.chats import Json, User
from tests.botapi.faults import Closed, Cut, Fault, Held, Html, Late, Silence
from tests.botapi.methods import METHODS
from tests.botapi.refusal import Refused, bad_request
from tests.botapi.schema import check_parameters, method_fields
from tests.botapi.updates import KINDS
from tests.botapi.world import StoredFile
from tests.wire.door import Door
from tests.wire.http import HttpConnection, HttpRequest

TOKEN = "123456789:AAHloopback-token-of-the-tests-00000"
DOWNLOAD = "download"
ADDRESS = re.compile(r"/(?P<file>file/)?bot(?P<token>\d+(?::|%3A)[^/]*)/(?P<rest>[^?]+)")
PAGE = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body>\r\n</html>\r\n"


@asynccontextmanager
async def serve_botapi(
    *, token: str = TOKEN, bot_name: str = "takopi_bot"
) -> AsyncGenerator[BotApi]:
    """Serve the Bot API on loopback for as long as the block lasts.

    Raises `Violated` at its end for any request that Telegram would have refused, unless the test
    expected it.
    """
    bot = User(int(token.partition(":")[0]), "takopi", username=bot_name, is_bot=True)

    async def converse(stream: trio.SocketStream) -> None:
        # A client may leave in the middle, and one that is killed does.
        with suppress(trio.BrokenResourceError, h11.RemoteProtocolError):
            await _Conversation(api, stream).serve()

    try:
        async with trio.open_nursery() as nursery:
            door = Door(nursery, converse)
            api = BotApi(token, bot, door=door)
            try:
                door.open()
                yield api
            finally:
                door.give_up()
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The test's own block must not see that there is a nursery.
        raise (group.exceptions[0] if len(group.exceptions) == 1 else group) from None
    if api.violations:
        raise Violated("; ".join(api.violations))


class _Conversation:
    """One client's connection."""

    def __init__(self, api: BotApi, stream: trio.SocketStream) -> None:
        self._api = api
        self._http = HttpConnection(stream)
        self._id = api.world.serial()

    async def serve(self) -> None:
        while request := await self._http.next_request():
            if not await self._answer(request):
                return

    async def _answer(self, http: HttpRequest) -> bool:
        found = ADDRESS.match(http.target)
        method = DOWNLOAD if found and found["file"] else found["rest"] if found else ""
        request = Request(method, {}, at_s=trio.current_time(), connection=self._id)
        self._api.record(request)
        try:
            self._check_address(method, token=unquote(found["token"]) if found else None)
            request.parameters = (
                {"file_path": unquote(found["rest"])}
                if found and method == DOWNLOAD
                else read_parameters(method, http)
            )
        except Refused as refused:
            await self._refuse(request, refused)
            return True
        return await self._handle(request)

    def _check_address(self, method: str, *, token: str | None) -> None:
        if token is None:
            raise Refused(404, "Not Found")
        if token != self._api.token:
            raise Refused(401, "Unauthorized")
        if method != DOWNLOAD and method_fields(method) is None:
            raise Refused(404, "Not Found")

    async def _handle(self, request: Request) -> bool:
        """Whether the connection is good for another request."""
        fault = self._api.meet_fault(request)
        outcome: Any = None
        if fault is None or fault.applied:
            try:
                outcome = await self._apply(request)
            except Refused as refused:
                outcome = refused
            if fault is None and request.method == "getUpdates":
                # A poll waits long enough for trouble to come up meanwhile.
                fault = self._api.meet_fault(request)
        if fault:
            return await self._trouble(request, fault, outcome)
        await self._reply(request, outcome)
        return True

    async def _apply(self, request: Request) -> Any:
        api, parameters = self._api, request.parameters
        if request.method == DOWNLOAD:
            return self._find_file(parameters["file_path"])
        check_parameters(request.method, parameters)
        if request.method == "getUpdates":
            return await self._poll(request)
        if api.pace and request.chat_id in api.world.chats:
            api.pace.check(request.method, api.world.known_chat(request.chat_id))
        return METHODS[request.method](api.world, parameters)

    def _find_file(self, path: str) -> StoredFile:
        for file in self._api.world.files.values():
            if file.path == path:
                return file
        raise Refused(404, "Not Found")

    async def _poll(self, request: Request) -> list[Json]:
        parameters = request.parameters
        allowed: list[str] | None = parameters.get("allowed_updates")
        unknown = set(allowed or ()) - set(KINDS)
        if unknown:
            raise bad_request(f"allowed_updates has unknown kinds: {', '.join(sorted(unknown))}")
        limit, timeout_s = parameters.get("limit", 100), parameters.get("timeout", 0)
        if not 1 <= limit <= 100:
            raise bad_request("limit must be between 1 and 100")
        if timeout_s < 0:
            raise bad_request("timeout must not be negative")
        offset = parameters.get("offset", 0)
        outcome: list[Json] | Refused = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, request, nursery.cancel_scope)
            try:
                outcome = await self._api.updates.poll(
                    offset=offset, limit=limit, timeout_s=timeout_s, allowed=allowed
                )
            except Refused as refused:
                outcome = refused
            nursery.cancel_scope.cancel()
        if request.left:
            raise trio.BrokenResourceError("the client left while it waited")
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    async def _watch(self, request: Request, waiting: trio.CancelScope) -> None:
        """Nobody polls any more once the client has left, as one that is killed does."""
        await self._http.wait_until_left()
        request.left = True
        self._api.note_request()
        waiting.cancel()

    async def _reply(self, request: Request, outcome: Any) -> None:
        if isinstance(outcome, Refused):
            await self._refuse(request, outcome)
        elif isinstance(outcome, StoredFile):
            await self._http.reply(200, outcome.data, content_type=outcome.content_type)
            self._note_reply(request, 200)
        else:
            await self._send(request, 200, {"ok": True, "result": outcome})

    async def _refuse(self, request: Request, refused: Refused) -> None:
        request.error = refused.description
        self._api.judge(request.method, refused)
        await self._send(request, refused.status, refused.body)

    async def _trouble(self, request: Request, fault: Fault, outcome: Any) -> bool:
        match fault.trouble:
            case Refused() as refused:
                request.error = refused.description
                await self._send(request, refused.status, refused.body)
                return True
            case Html(status):
                await self._http.reply(status, PAGE, content_type="text/html")
                self._note_reply(request, status)
                return True
            case Late(by_s):
                await trio.sleep(by_s)
                await self._reply(request, outcome)
                return True
            case Held(until):
                await until.wait()
                await self._reply(request, outcome)
                return True
            case Cut():
                await self._http.stream.send_all(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                    b'content-length: 4000\r\n\r\n{"ok":true,"result":{"messa'
                )
            case Closed():
                pass
            case Silence():
                await self._http.wait_until_left()
                request.left = True
        self._note_reply(request, None)
        return False

    async def _send(self, request: Request, status: int, body: dict[str, Any]) -> None:
        await self._http.reply(status, msgspec.json.encode(body))
        self._note_reply(request, status)

    def _note_reply(self, request: Request, status: int | None) -> None:
        request.status = status
        request.replied_at_s = trio.current_time()
        self._api.note_request()
        if self._api.on_reply:
            self._api.on_reply(request)
