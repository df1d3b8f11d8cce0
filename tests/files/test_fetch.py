from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import pytest
import trio
import trio.testing

from takopi.app.filing import FETCH_S, fetch_patiently
from takopi.core.errors import Refused, Rejected, TakopiError, TryLater, Unreachable
from takopi.core.ids import Scope
from takopi.core.messages import Document

CHAT = Scope("telegram", 1)
DOCUMENT = Document("f1", "a.txt")
DOWN = Unreachable("the line is cut", maybe_applied=False)


class Server:
    """Fails in these ways, then answers."""

    def __init__(self, *failures: TakopiError) -> None:
        self.failures: Iterator[TakopiError] = iter(failures)
        self.asked = 0

    async def fetch(self, _scope: Scope, file_id: str) -> BinaryIO:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        if (failure := next(self.failures, None)) is not None:
            raise failure
        return io.BytesIO(file_id.encode())


async def test_server_that_stumbles_is_asked_again(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(DOWN, TryLater("slow down", retry_after_s=30), DOWN)
    assert (await fetch_patiently(server.fetch, CHAT, DOCUMENT)).read() == b"f1"
    assert (server.asked, trio.current_time() > 30) == (4, True)


async def test_server_that_stays_down_is_told_of(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(*[DOWN] * 99)
    with pytest.raises(Refused, match=r"a\.txt could not be fetched: the line is cut") as caught:
        await fetch_patiently(server.fetch, CHAT, DOCUMENT)
    assert caught.value.way_out == "send it again"
    assert server.asked == 4


async def test_refusal_is_not_asked_for_again(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(Rejected("file is too big"))
    with pytest.raises(Refused, match="file is too big"):
        await fetch_patiently(server.fetch, CHAT, DOCUMENT)
    assert server.asked == 1


async def test_silent_server_is_given_up_in_time(autojump_clock: trio.testing.MockClock) -> None:
    async def fetch(_scope: Scope, _file_id: str) -> BinaryIO:
        await trio.sleep_forever()

    with pytest.raises(Refused, match="it took too long"):
        await fetch_patiently(fetch, CHAT, DOCUMENT)
    assert trio.current_time() == FETCH_S
