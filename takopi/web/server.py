"""The routes of the page, served inside our nursery: what it may ask, and in which form."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import quote

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.trio import serve  # pyright: ignore[reportUnknownVariableType] its WSGI half is untyped
from msgspec import Meta
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from takopi.core.errors import Refused, StoreFailed, TakopiError
from takopi.core.messages import Arrival
from takopi.core.outgoing import Attachment
from takopi.files.spool import Spool
from takopi.kit.clock import now_ms
from takopi.kit.pieces import pour
from takopi.store.database import Database
from takopi.web import inbound, messages, uploads
from takopi.web.feed import Feed
from takopi.web.guard import Guard
from takopi.web.stream import Stream

MAX_BODY_BYTES = 1_000_000
MAX_UPLOAD_BYTES = 20 * 1024 * 1024
MAX_FILES = 10
MAX_NAME = 300
NO_FILES = "Files are off here: set files.enabled = true in takopi.toml."
PAGE_SIZE = 100
BYTES = "application/octet-stream"
STOP_S = 1.0
QUEUED_PIECES = 1000

PAGE = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "bubble.js": "text/javascript; charset=utf-8",
    "composer.js": "text/javascript; charset=utf-8",
    "files.js": "text/javascript; charset=utf-8",
    "link.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files of the page. Nothing else is ever read from the disk."""

_NUMBER = re.compile(r"[0-9]{1,15}")
_Number = Annotated[int, Meta(ge=1, le=10**15)]
_Key = Annotated[str, Meta(min_length=8, max_length=64)]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Command:
    """What can be typed after a slash, and what it does."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the routes work with. `deliver` hands on what is in the inbox, at once."""

    db: Database
    feed: Feed
    spool: Spool
    token: str
    port: int
    deliver: Callable[[Arrival], None]
    menu: Callable[[], tuple[Command, ...]]
    takes_files: Callable[[], bool]


class Sending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /send`. `key` is new for each message and the same for each attempt."""

    text: str
    key: _Key
    reply_to: _Number | None = None
    files: Annotated[tuple[_Number, ...], Meta(max_length=MAX_FILES)] = ()


class Pressing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /press`; the toast that answers it carries the same `key`."""

    message: _Number
    data: Annotated[str, Meta(max_length=64)]
    key: _Key


class History(msgspec.Struct, frozen=True):
    """The answer of `GET /history`. After `change`, `GET /events` goes on."""

    messages: tuple[messages.Entry, ...]
    change: int
    more: bool
    commands: tuple[Command, ...]
    files: bool


class _Bad(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class _Routes:
    site: Site

    @staticmethod
    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in PAGE:
            raise _Bad(404, "There is no such file.")
        data = files("takopi.web").joinpath("page", name).read_bytes()
        return Response(data, media_type=PAGE[name])

    async def history(self, request: Request) -> Response:
        before = _number(request.query_params.get("before"), "before")
        entries, change = await self.site.db.read(
            lambda conn: (
                messages.before(conn, before, limit=PAGE_SIZE + 1),
                messages.last_change(conn),
            )
        )
        more = len(entries) > PAGE_SIZE
        shown = entries[-PAGE_SIZE:]
        return _json(History(shown, change, more, self.site.menu(), self.site.takes_files()))

    async def events(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        # A browser that reconnects says where it was, and then the address is out of date.
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        number = _number(after, "after") or 0
        await Stream(self.site.db, self.site.feed, after=number).run(receive, send)

    async def send(self, request: Request) -> Response:
        wanted = await _read(request, Sending)
        text = wanted.text.strip()
        if not text and not wanted.files:
            raise _Bad(400, "There is nothing in this message.")
        message_id, arrival = await self.site.db.write(
            lambda conn: inbound.write(
                conn,
                text,
                reply_to=wanted.reply_to,
                key=wanted.key,
                now_ms=now_ms(),
                files=wanted.files,
            )
        )
        self._hand_over(arrival)
        return _json({"id": message_id})

    async def press(self, request: Request) -> Response:
        wanted = await _read(request, Pressing)
        arrival = await self.site.db.write(
            lambda conn: inbound.press(
                conn, wanted.message, data=wanted.data, key=wanted.key, now_ms=now_ms()
            )
        )
        self._hand_over(arrival)
        return _json({})

    async def file(self, request: Request) -> Response:
        number = _number(request.path_params["message"], "message") or 0
        file = await self.site.db.read(lambda conn: messages.file_of(conn, number))
        return await self._download(file)

    async def upload(self, request: Request) -> Response:
        if not self.site.takes_files():
            raise _Bad(409, NO_FILES)
        name = request.query_params.get("name", "")
        key = request.query_params.get("key", "")
        if not 1 <= len(name) <= MAX_NAME or not 8 <= len(key) <= 64:
            raise _Bad(400, f"A file needs a `name` of 1 to {MAX_NAME} characters, and a `key`.")
        if _kind(request) != BYTES:
            raise _Bad(415, f"Send the bytes of the file, as {BYTES}.")
        too_long = _check_length(request, MAX_UPLOAD_BYTES, "20 MB")
        async with self.site.spool.new() as new:
            async with aclosing(request.stream()) as pieces:
                await pour(pieces, new.write, max_bytes=MAX_UPLOAD_BYTES, too_big=too_long)
            spooled = await trio.to_thread.run_sync(new.finish)
            # A name that is no text cannot be kept; half a character is none.
            file = Attachment(name.encode(errors="replace").decode(), spooled)
            number = await self.site.db.write(
                lambda conn: uploads.add(conn, file, key=key, now_ms=now_ms())
            )
        return _json({"id": number})

    async def uploaded(self, request: Request) -> Response:
        number = _number(request.path_params["upload"], "upload") or 0
        file = await self.site.db.read(lambda conn: uploads.find(conn, number))
        return await self._download(file)

    async def _download(self, file: Attachment | None) -> Response:
        gone = _Bad(404, "This file is gone.")
        if file is None:
            raise gone
        headers = {
            "content-disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
        }
        if isinstance(file.data, bytes):
            return Response(file.data, media_type=BYTES, headers=headers)
        try:
            opening = partial(self.site.spool.open, file.data, shown=file.name)
            (await trio.to_thread.run_sync(opening)).close()
        except Refused:
            raise gone from None
        return FileResponse(self.site.spool.path(file.data), media_type=BYTES, headers=headers)

    def _hand_over(self, arrival: Arrival | None) -> None:
        # Nothing is awaited between the commit and this, so a browser that leaves changes nothing.
        if arrival is not None:
            self.site.deliver(arrival)
            self.site.feed.note_change()


def build_app(site: Site) -> Guard:
    """The page as an ASGI application, behind its guard."""
    routes = _Routes(site)
    app = Starlette(
        routes=[
            Route("/", routes.page),
            Route("/page/{name}", routes.page),
            Route("/history", routes.history),
            Route("/events", _Streaming(routes)),
            Route("/send", routes.send, methods=["POST"]),
            Route("/press", routes.press, methods=["POST"]),
            Route("/file/{message}", routes.file),
            Route("/upload", routes.upload, methods=["POST"]),
            Route("/upload/{upload}", routes.uploaded),
        ],
        exception_handlers={_Bad: _say, TakopiError: _say},
    )
    return Guard(app, port=site.port, token=site.token)


async def serve_site(site: Site, listener_fd: int) -> None:
    """Answer on a listening socket, which becomes ours, until cancelled."""
    config = Config()
    config.bind = [f"fd://{listener_fd}"]
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.graceful_timeout = STOP_S
    # A body that is refused is read by nobody, and the server's reader would wait for us with a
    # full queue while we wait for it to let the refusal go.
    config.max_app_queue_size = QUEUED_PIECES
    # Starlette and hypercorn spell the types of the same protocol differently.
    await serve(cast("Any", build_app(site)), config)


@dataclass(frozen=True, slots=True)
class _Streaming:
    """A route that is an application of its own: it answers for as long as the page is open."""

    routes: _Routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.routes.events(scope, receive, send)


def _say(_request: Request, error: Exception) -> Response:
    match error:
        case _Bad():
            status, sentence = error.status, error.sentence
        case Refused():
            status, sentence = 409, error.what
        case StoreFailed():
            status, sentence = 503, f"Nothing was written: {error.what}. Try again."
        case _:
            status, sentence = 500, str(error)
    return _json({"error": sentence}, status)


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise _Bad(400, f"`{name}` must be a number.")
    return int(text)


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip()


def _check_length(request: Request, max_bytes: int, most: str) -> _Bad:
    """Refuse a body that is too long by its own account; returns the refusal for one that lies."""
    too_long = _Bad(413, f"This is too long: {most} is the most.")
    length = request.headers.get("content-length", "")
    if len(length) > 15 or (length.isdecimal() and int(length) > max_bytes):
        raise too_long
    return too_long


async def _body(request: Request, max_bytes: int, most: str) -> bytes:
    too_long = _check_length(request, max_bytes, most)
    body = bytearray()
    async with aclosing(request.stream()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > max_bytes:
                raise too_long
    return bytes(body)


async def _read(request: Request, shape: type[T]) -> T:
    if _kind(request) != "application/json":
        raise _Bad(415, "Send JSON.")
    body = await _body(request, MAX_BODY_BYTES, f"{MAX_BODY_BYTES // 1_000_000} MB")
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Bad(400, f"This is not what the page sends: {error}.") from error
