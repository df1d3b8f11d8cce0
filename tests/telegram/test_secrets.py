"""S2 in this room: the token is in no log line and no error, whatever goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from takopi.core.errors import BadToken
from takopi.core.outgoing import Attachment, Mark
from tests.botapi.api import BotApi
from tests.botapi.faults import Closed, Cut, Html, Silence
from tests.botapi.refusal import Refused, conflict, forbidden, too_many_requests
from tests.telegram.rig import ADA, BOB, Rig, card, open_rig, watch_log

TROUBLES = (
    Html(),
    Cut(),
    Closed(),
    Silence(),
    Refused(500, "Internal Server Error"),
    too_many_requests(1),
)


async def test_s2_the_token_is_in_no_line_of_the_log(api: BotApi, tmp_path: Path) -> None:
    ada, bob = api.person(ADA), api.person(BOB, "Bob")
    for trouble in (*TROUBLES, conflict("terminated by other getUpdates")):
        api.fail(trouble, method="getUpdates")
    api.fail(Refused(400, "Bad Request: query is too old"), method="answerCallbackQuery")
    with watch_log() as log:
        async with open_rig(api, tmp_path, poll=True) as rig:
            await bob.send(bob.chat, "canary words of a stranger")
            await send_through(rig)
            await ada.send(ada.chat, "canary prompt")
            await rig.next_arrival()

    told = repr(log.lines)
    assert {"poll.failed", "send.postponed", "stranger.ignored", "chat.parked"} <= {
        line["event"] for line in log.lines
    }
    assert api.token not in told
    assert api.token.partition(":")[2] not in told
    assert "canary" not in told


async def send_through(rig: Rig) -> None:
    for trouble in (Html(), Closed(), too_many_requests(1)):
        rig.api.fail(trouble, method="sendMessage")
    await rig.say("canary answer")
    with trio.fail_after(30):
        await rig.telegram.outbox.flush()
    rig.api.fail(forbidden("bot was blocked by the user"), method="sendMessage")
    await rig.say("another canary")
    await rig.until_states("sent", "parked")


async def test_s2_the_token_is_not_sent_in_a_message_or_a_file(rig: Rig) -> None:
    token, stars = rig.api.token, "*" * len(rig.api.token)
    bold = Mark("bold", len(f"🐙 {token} ") + 1, 3)

    await rig.say(card(f"🐙 {token} and", marks=(bold,)))
    await rig.say(card("file", attachment=Attachment("a.toml", f"token = '{token}'".encode())))
    await rig.telegram.outbox.flush()

    message, file = rig.api.chat(ADA).bot_messages
    assert message.text == f"🐙 {stars} and"
    assert [(e["offset"], e["length"]) for e in message.entities] == [(len(stars) + 4, 3)]
    stored = rig.api.world.files[file.fields["document"]["file_id"]]
    assert stored.data == f"token = '{stars}'".encode()


async def test_s2_the_token_is_not_in_what_ends_the_daemon(api: BotApi, tmp_path: Path) -> None:
    api.fail(Refused(401, "Unauthorized"), method="getMe")
    async with open_rig(api, tmp_path) as rig:
        with pytest.raises(BadToken) as caught:
            await rig.telegram.poll()

    error: BaseException | None = caught.value
    while error is not None:
        assert api.token not in repr(error)
        error = error.__cause__ or error.__context__
