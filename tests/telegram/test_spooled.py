"""Files from the spool arrive as they are, masked, with their length, and once more if need be."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
import trio

from takopi.core.outgoing import Attachment, Spooled
from takopi.kit.pieces import PIECE_BYTES
from takopi.store.opening import open_file
from takopi.store.schema import STEPS
from tests.botapi.api import BotApi
from tests.botapi.faults import Cut
from tests.telegram.rig import ADA, Rig, card, open_rig


async def spool(rig: Rig, content: bytes) -> Spooled:
    """Say that this file is to be sent; how the rig's store names it is its own."""
    async with rig.spool.new() as new:
        new.write(content)
        file = new.finish()
        await rig.say(card("the file", attachment=Attachment("a.bin", file)))
    return file


async def flushed(rig: Rig) -> None:
    with trio.fail_after(30):
        await rig.telegram.outbox.flush()


def sent(rig: Rig) -> bytes:
    (message,) = rig.api.chat(ADA).bot_messages
    return rig.api.world.files[message.fields["document"]["file_id"]].data


async def test_token_across_the_edge_of_two_pieces_arrives_as_stars(rig: Rig) -> None:
    token = rig.api.token.encode()
    before, behind = bytes(PIECE_BYTES - 10), bytes(PIECE_BYTES)
    await spool(rig, before + token + behind)
    await flushed(rig)

    assert sent(rig) == before + b"*" * len(token) + behind


async def test_file_is_sent_again_from_its_beginning_and_then_removed(rig: Rig) -> None:
    content = bytes(range(256)) * 4096
    rig.api.fail(Cut(), method="sendDocument")
    file = await spool(rig, content)
    await flushed(rig)

    assert len(rig.api.sent("sendDocument")) == 2
    assert sent(rig) == content
    assert not rig.spool.path(file).exists()


async def test_lost_file_is_told_of_in_its_place(rig: Rig) -> None:
    async with rig.spool.new() as new:
        new.write(b"content")
        lost = Spooled(new.finish().name, 99)
        await rig.say(card("the file", attachment=Attachment("a.bin", lost)))
    await rig.say("the next")
    await flushed(rig)

    told, after = rig.api.chat(ADA).bot_messages
    assert "a.bin was not sent" in told.text
    assert "ask for it again" in told.text
    assert after.text == "the next"
    assert await rig.states() == ["sent", "sent"]
    assert not rig.spool.path(lost).exists()


async def test_row_of_an_older_store_with_its_file_in_it_is_sent(
    api: BotApi, tmp_path: Path
) -> None:
    opened = open_file(tmp_path / "state.db", steps=STEPS[:1], busy_s=5)
    opened.reader.close()
    with closing(opened.writer) as conn:
        old = msgspec.msgpack.encode(card("the file", attachment=Attachment("a.bin", b"inside")))
        conn.execute(
            "INSERT INTO outbox (transport, chat_id, kind, payload, state, created_ms)"
            " VALUES ('telegram', ?, 'notice', ?, 'waiting', 1)",
            (ADA, old),
        )
    async with open_rig(api, tmp_path) as rig:
        await flushed(rig)
        assert sent(rig) == b"inside"
