"""A bot without manners: it sends what it is told to, and shows what came back."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import trio

from tests.botapi.api import BotApi
from tests.botapi.server import serve_botapi

# Reading the usual ones takes longer than most of these tests.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Bot:
    """A client of the loopback Bot API."""

    def __init__(self, api: BotApi, client: httpx2.AsyncClient) -> None:
        self.api = api
        self.client = client

    async def call(self, method: str, **parameters: Any) -> Any:
        """The result of a call that is granted."""
        response = await self.client.post(method, json=parameters)
        assert response.status_code == 200, response.text
        return response.json()["result"]

    async def refusal(self, method: str, **parameters: Any) -> str:
        """The words of a refusal, which counts as expected."""
        self.api.expect_rejection("")
        response = await self.client.post(method, json=parameters)
        body = response.json()
        assert not body["ok"], f"{method} was granted: {body}"
        assert body["error_code"] == response.status_code
        return body["description"]


@asynccontextmanager
async def open_bot(api: BotApi) -> AsyncGenerator[Bot]:
    """One more client, with connections of its own."""
    base_url = f"{api.url}/bot{api.token}/"
    async with httpx2.AsyncClient(
        base_url=base_url, timeout=None, trust_env=False, verify=NO_CERTIFICATES
    ) as client:
        yield Bot(api, client)


@asynccontextmanager
async def served() -> AsyncGenerator[tuple[BotApi, Bot]]:
    """The server and a client of it, for a minute at most."""
    with trio.fail_after(60):
        async with serve_botapi() as api, open_bot(api) as bot:
            yield api, bot
