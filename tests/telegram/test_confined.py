"""What a Telegram update looks like is known in one room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import takopi

PACKAGE = Path(takopi.__file__).parent
ROOM = PACKAGE / "telegram"
FIELDS = {
    "callback_query",
    "edited_message",
    "message_thread_id",
    "my_chat_member",
    "reply_to_message",
    "sender_chat",
}
"""Names that nothing but Telegram's updates have."""


def names(path: Path) -> Iterator[str]:
    """Every name that the module says, in code or as text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)):
                yield text
            case _:
                pass


def read_in(folder: Path) -> set[str]:
    """Which fields of an update the modules of a folder speak of."""
    return {name for path in folder.rglob("*.py") for name in names(path)} & FIELDS


def test_update_is_read_nowhere_but_in_its_room() -> None:
    rooms = [path for path in PACKAGE.iterdir() if path.is_dir() and path != ROOM]
    assert {room.name: read_in(room) for room in rooms if read_in(room)} == {}
    assert read_in(ROOM) == FIELDS
