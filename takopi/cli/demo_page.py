"""The page without a browser: speaks its API over HTTP, and tells what a person would see."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
import trio

from takopi.core.errors import TakopiError, Unreachable
from takopi.core.outgoing import Button, Text
from takopi.kit.http import FAULTS, BareClient, open_client

OK = 200


class Shown(msgspec.Struct, frozen=True):
    """A message as the page shows it."""

    id: int
    author: str
    words: Text = msgspec.field(name="text")
    buttons: tuple[tuple[Button, ...], ...] = ()
    reply_to: int | None = None
    deleted: bool = False

    @property
    def text(self) -> str:
        """What it says."""
        return self.words.text

    @property
    def labels(self) -> tuple[str, ...]:
        """What can be pressed."""
        return tuple(button.label for row in self.buttons for button in row)


class _Sent(msgspec.Struct, frozen=True):
    id: int


class _Refusal(msgspec.Struct, frozen=True):
    error: str


Look: TypeAlias = Callable[[Shown], bool]


class Page:
    """A chat with takopi, from the person's side. `tell` gets what it shows, line by line."""

    def __init__(self, client: BareClient, address: str, *, tell: Callable[[str], None]) -> None:
        self._client = client
        self._address = address
        self._tell = tell
        self._shown: dict[int, Shown] = {}
        self._changed = trio.Event()
        self.awaited = "the page"

    async def say(self, text: str, *, reply_to: Shown | None = None) -> int:
        """Send a message, as a reply if it is one; returns its number."""
        self._print("you", text if reply_to is None else f"↩ {text}")
        body = {
            "text": text,
            "reply_to": None if reply_to is None else reply_to.id,
            "key": uuid4().hex,
        }
        return msgspec.json.decode(await self._post("/send", body), type=_Sent).id

    async def press(self, shown: Shown, label: str) -> None:
        """Press the button of that label."""
        self._print("you", f"[{label}]")
        data = next(b.data for row in shown.buttons for b in row if b.label == label)
        await self._post("/press", {"message": shown.id, "data": data, "key": uuid4().hex})

    async def sees(self, what: str, look: Look) -> Shown:
        """The first message of takopi that looks so, as soon as there is one."""
        self.awaited = what
        while True:
            for shown in self._shown.values():
                if shown.author == "takopi" and look(shown):
                    return shown
            await self._changed.wait()

    async def follow(self) -> None:
        """Keep up with what happens on the page until cancelled."""
        try:
            async with self._client.stream("GET", f"{self._address}/events") as response:
                if response.status_code != OK:
                    raise _refused("/events", response.status_code, await response.aread())
                unread = b""
                async with aclosing(response.aiter_bytes()) as pieces:
                    async for piece in pieces:
                        *events, unread = (unread + piece).split(b"\n\n")
                        for event in events:
                            self._take(event)
        except FAULTS as error:
            raise _lost(error) from None
        raise Unreachable("the page ended its stream of events", maybe_applied=False)

    def _take(self, event: bytes) -> None:
        fields = dict(line.split(b": ", 1) for line in event.split(b"\n"))
        if fields.get(b"event") != b"message":
            return
        shown = msgspec.json.decode(fields[b"data"], type=Shown)
        before = self._shown.pop(shown.id, None)
        if not shown.deleted:
            self._shown[shown.id] = shown
            if shown.author == "takopi":
                self._show(shown, before)
        self._changed.set()
        self._changed = trio.Event()

    def _show(self, shown: Shown, before: Shown | None) -> None:
        # Of an edit only what is new, as an eye would take it in.
        known = () if before is None else before.text.splitlines()
        lines = [line for line in shown.text.splitlines() if line not in known or not line]
        if shown.labels and (before is None or before.labels != shown.labels):
            lines += ["", " ".join(f"[{label}]" for label in shown.labels)]
        self._print("takopi" if before is None else "edited", "\n".join(lines).strip("\n"))

    def _print(self, who: str, text: str) -> None:
        for line in text.splitlines():
            self._tell(f"{who:>8} │ {line}".rstrip())
            who = ""

    async def _post(self, path: str, body: object) -> bytes:
        headers = {"content-type": "application/json", "origin": self._address}
        try:
            reply = await self._client.post(
                f"{self._address}{path}", content=msgspec.json.encode(body), headers=headers
            )
        except FAULTS as error:
            raise _lost(error) from None
        if reply.status_code != OK:
            raise _refused(path, reply.status_code, reply.content)
        return reply.content


@asynccontextmanager
async def open_page(url: str, *, tell: Callable[[str], None]) -> AsyncGenerator[Page, None]:
    """The page at the address that takopi gave out, for as long as the block lasts."""
    parts = urlsplit(url)
    async with open_client() as client, trio.open_nursery() as nursery:
        try:
            # The answer brings the cookie that the token is changed into; the client keeps it.
            reply = await client.get(url)
        except FAULTS as error:
            raise _lost(error) from None
        if reply.is_error:
            raise _refused("/", reply.status_code, reply.content)
        page = Page(client, f"{parts.scheme}://{parts.netloc}", tell=tell)
        nursery.start_soon(page.follow)
        try:
            yield page
        finally:
            nursery.cancel_scope.cancel()


def _lost(error: Exception) -> Unreachable:
    return Unreachable(f"the page did not answer ({type(error).__name__})", maybe_applied=True)


def _refused(path: str, status: int, body: bytes) -> TakopiError:
    try:
        why = msgspec.json.decode(body, type=_Refusal).error
    except msgspec.DecodeError:
        why = body[:200].decode("utf-8", "replace")
    return TakopiError(f"the page answers {status} to {path}: {why}")
