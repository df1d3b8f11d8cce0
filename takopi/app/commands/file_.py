"""/file get: a file of the folder that is worked in here, sent into the chat."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import partial

import trio

from takopi.app.desk import Call, Desk, Rest
from takopi.app.filing import OFF, find_folder, shelf_of
from takopi.core.errors import Refused
from takopi.core.outgoing import Attachment, Card, Outgoing
from takopi.files.shelf import Shelf
from takopi.files.spool import NewFile
from takopi.kit.mask import Mask
from takopi.present.compose import code
from takopi.present.wording import one_line
from takopi.routing.resolve import Resolved
from takopi.runs.workshop import put

USAGE = "use `/file get <path>`"
PATH_CHARS = 300


async def run(desk: Desk, call: Call) -> Rest | None:
    """Send a file; which folder its path is meant in is decided at once."""
    verb, rest = [*call.args.split(maxsplit=1), "", ""][:2]
    if verb.lower() not in {"", "get"}:
        raise Refused(f"/file cannot do that: {one_line(call.args, 60)}", way_out=USAGE)
    if not rest:
        raise Refused("which file?", way_out=USAGE)
    if not desk.config.files.enabled:
        raise Refused("files are off here", way_out=OFF)
    message = replace(call.message, text=rest, quote=None)
    resolved = await desk.requests.resolve(message)
    return partial(_send, desk, call, resolved)


async def _send(desk: Desk, call: Call, resolved: Resolved) -> None:
    path = resolved.prompt.strip().strip("`\"'")
    folder = await find_folder(desk.shop, resolved, make=False)
    shelf = shelf_of(desk.shop, folder)
    token = desk.config.bot_token
    mask = Mask((token,) if token else ())
    async with desk.shop.spool.new() as new:
        file = await trio.to_thread.run_sync(_copy, shelf, path, new, mask)
        message = Outgoing(
            Card(code(one_line(path, PATH_CHARS))),
            attachment=file,
            reply_to=call.message.message_id,
        )

        def change(conn: sqlite3.Connection) -> None:
            put(conn, call.scope, message, kind="notice")

        await desk.shop.db.write(change)
    desk.shop.transport(call.scope).wake(call.scope.chat)


def _copy(shelf: Shelf, path: str, new: NewFile, mask: Mask) -> Attachment:
    """The file as it is now, and as it may be seen."""
    name = shelf.read(path, lambda piece: new.write(mask.feed(piece)))
    new.write(mask.end())
    return Attachment(name, new.finish())
