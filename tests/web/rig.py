"""The web room with a real store and a real HTTP server on a port of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h11
import httpx2
import trio

from takopi.config.limits import Limits
from takopi.config.loaded import Config
from takopi.config.schema import Oneshot, Web
from takopi.core.messages import Arrival
from takopi.files.spool import Spool
from takopi.store.database import Database, open_database
from takopi.web.transport import WebTransport, open_web

TOKEN = "canary-token-of-the-page-0123456789-abcdefg"

CONFIG = Config(
    bot_token="",
    chat_id=None,
    allowed_user_ids=frozenset(),
    admin_user_ids=frozenset(),
    default_engine=None,
    default_project=None,
    session_mode="reply",
    api_url="",
    transports=("web",),
    projects={},
    oneshot=Oneshot(),
    limits=Limits(),
    engines={},
    web=Web(port=0),
)


@dataclass(frozen=True, slots=True)
class Rig:
    """One start of the room, and a browser that has been let in."""

    db: Database
    web: WebTransport
    client: httpx2.AsyncClient
    spool: Spool

    async def post(self, path: str, body: object, **headers: str) -> httpx2.Response:
        own = {"origin": self.web.address} | headers
        return await self.client.post(path, json=body, headers=own)

    async def say(self, text: str, *, key: str = "key-0001", **more: object) -> httpx2.Response:
        return await self.post("/send", {"text": text, "key": key, **more})

    async def history(self) -> list[dict[str, Any]]:
        return (await self.client.get("/history")).json()["messages"]

    async def next_arrival(self) -> Arrival:
        with trio.fail_after(20):
            return await self.web.incoming.receive()

    @asynccontextmanager
    async def events(self, *, last: str = "") -> AsyncGenerator[Events, None]:
        """An open page, which has seen everything up to `last`."""
        host = self.web.address.removeprefix("http://")
        cookies = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        headers = [("host", host), ("cookie", cookies)]
        if last:
            headers.append(("last-event-id", last))
        stream = await trio.open_tcp_stream("127.0.0.1", int(host.rpartition(":")[2]))
        async with stream:
            http = h11.Connection(h11.CLIENT)
            request = h11.Request(method="GET", target="/events", headers=headers)
            await stream.send_all(
                (http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b"")
            )
            yield Events(stream, http)


class Events:
    """The events that come over one connection."""

    def __init__(self, stream: trio.SocketStream, http: h11.Connection) -> None:
        self._stream = stream
        self._http = http
        self._text = ""

    async def next(self) -> dict[str, Any]:
        """The next event, with its name, its number and its data."""
        while True:
            block, found, rest = self._text.partition("\n\n")
            if found:
                self._text = rest
                fields = dict(line.split(": ", 1) for line in block.splitlines())
                if "data" in fields:
                    return fields | {"data": json.loads(fields["data"])}
                continue
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._stream.receive_some(65536))
            elif isinstance(event, h11.Data):
                self._text += bytes(event.data).decode()
            else:
                assert isinstance(event, h11.Response), event
                assert event.status_code == 200


@asynccontextmanager
async def open_rig(
    folder: Path, *, port: int = 0, takes_files: bool = False
) -> AsyncGenerator[Rig, None]:
    """Start the room on the state in `folder`; at the end it stops as the daemon would."""
    config = replace(CONFIG, web=Web(port=port))
    with trio.fail_after(60):
        async with (
            open_database(folder / "state.db") as db,
            trio.open_nursery() as stores,
            open_web(
                config,
                db,
                token=TOKEN,
                spool=(spool := Spool(folder / "spool", db)),
                takes_files=lambda: takes_files,
            ) as web,
        ):
            await stores.start(db.serve)
            await spool.prepare()
            async with trio.open_nursery() as services:
                await services.start(web.outbox.serve)
                async with trio.open_nursery() as front:
                    front.start_soon(web.listen)
                    async with httpx2.AsyncClient(
                        base_url=web.address, timeout=None, trust_env=False
                    ) as client:
                        await client.get(f"/?token={TOKEN}")
                        yield Rig(db, web, client, spool)
                    front.cancel_scope.cancel()
                services.cancel_scope.cancel()
            stores.cancel_scope.cancel()
