"""What every API has in common on the wire: how it is read, and how its answers are put."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from tests.model.script import Call, Conversation, Fail, Say


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of an event stream; after `pause`, the script's pause is kept before the next."""

    data: bytes
    pause: bool = False


class Api(Protocol):
    """One dialect of one vendor."""

    @property
    def path(self) -> str: ...

    def read(self, body: dict[str, Any]) -> Conversation:
        """The conversation in a request; raises `Malformed` for what the API would refuse."""
        ...

    def stream(self, reply: Say | Call, conversation: Conversation, serial: int) -> Iterator[Chunk]:
        """An answer as server-sent events."""
        ...

    def whole(self, reply: Say | Call, conversation: Conversation, serial: int) -> dict[str, Any]:
        """An answer in one piece."""
        ...

    def error(self, reply: Fail) -> dict[str, Any]: ...


def event(data: dict[str, Any], *, name: str = "", pause: bool = False) -> Chunk:
    head = f"event: {name}\n" if name else ""
    return Chunk(f"{head}data: {json.dumps(data)}\n\n".encode(), pause)


def words(text: str) -> list[str]:
    """A text as it trickles in: words with the blank that follows them."""
    return [f"{word} " for word in text.split(" ")[:-1]] + text.split(" ")[-1:] if text else []
