from __future__ import annotations

import pytest
import trio

from takopi.core.errors import ChatGone, TakopiError
from takopi.core.ids import MessageRef, Scope
from tests.botapi.faults import Held
from tests.botapi.refusal import bad_request, forbidden
from tests.telegram.rig import (
    ADA,
    GROUP,
    SCOPE,
    Rig,
    card,
    shown,
    texts,
)


async def test_a_deleted_topic_sends_its_answers_to_the_chat_and_says_so_once(rig: Rig) -> None:
    rig.api.expect_rejection("message thread not found")
    ada = rig.api.person(ADA)
    forum = rig.api.supergroup(GROUP, forum=True)
    topic = await ada.open_topic(forum, "fix")
    scope = Scope("telegram", GROUP, topic.id)
    await rig.say("in the topic", scope=scope)
    await rig.telegram.outbox.flush()
    await ada.delete_topic(forum, topic)
    await rig.say("one", scope=scope)
    await rig.say("two", scope=scope)
    ref = await rig.telegram.send(scope, card("three"))

    assert texts(forum.bot_messages) == ["one", "two", "three"]
    assert ref == MessageRef("telegram", GROUP, forum.bot_messages[-1].id)
    assert rig.heard.topics == [scope]
    assert len([request for request in rig.api.requests if request.error]) == 1


async def test_a_closed_topic_sends_to_the_chat_and_stays_a_topic(rig: Rig) -> None:
    forum = rig.api.supergroup(GROUP, forum=True)
    topic = await rig.api.person(ADA).open_topic(forum, "fix")
    rig.api.fail(bad_request("TOPIC_CLOSED"), method="sendMessage")
    await rig.say("one", scope=Scope("telegram", GROUP, topic.id))
    await rig.telegram.outbox.flush()

    assert [(message.text, message.topic) for message in forum.bot_messages] == [("one", None)]
    assert rig.heard.topics == []


async def test_a_chat_that_is_gone_parks_what_must_arrive_and_tells_who_waits(rig: Rig) -> None:
    ada = rig.api.person(ADA)
    await ada.block()
    await rig.say("one")
    await rig.until_states("parked")
    rig.telegram.edit(MessageRef("telegram", ADA, 5), shown("x"))
    with pytest.raises(ChatGone, match="blocked"):
        await rig.telegram.send(SCOPE, card("direct"))
    await rig.say("two")
    await rig.telegram.outbox.flush()

    assert await rig.states() == ["parked", "parked"]
    assert ada.chat.bot_messages == []


async def test_a_chat_gone_in_the_middle_drops_what_waits_behind(rig: Rig) -> None:
    held = Held()
    rig.api.fail(held, method="sendMessage")
    errors: list[TakopiError] = []

    async def send(text: str) -> None:
        try:
            await rig.telegram.send(SCOPE, card(text))
        except ChatGone as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, "first")
        await rig.api.wait_for_request(lambda request: request.method == "sendMessage")
        nursery.start_soon(send, "second")
        nursery.start_soon(send, "third")
        rig.telegram.edit(MessageRef("telegram", ADA, 5), shown("x"))
        await trio.testing.wait_all_tasks_blocked()
        rig.api.fail(forbidden("bot was kicked"), method="sendMessage")
        held.until.set()

    assert len(errors) == 2
    assert len(rig.api.requests) == 2


async def test_a_group_that_moved_is_followed_with_all_that_waits(rig: Rig) -> None:
    group = rig.api.group(-500)
    new = rig.api.migrate(group, GROUP)
    stranger = new.add(rig.api.bot, {"text": "not what was meant"})
    await rig.say(
        card("one", reply_to=stranger.id, removes=stranger.id), scope=Scope("telegram", -500)
    )
    await rig.say("two", scope=Scope("telegram", -500))
    ref = await rig.telegram.send(
        Scope("telegram", -500), card("three", reply_to=stranger.id, removes=stranger.id)
    )
    await rig.telegram.outbox.flush()

    assert texts(new.bot_messages) == ["not what was meant", "one", "two", "three"]
    assert [message.reply_to for message in new.bot_messages] == [None] * 4
    assert ref == MessageRef("telegram", GROUP, new.bot_messages[-1].id)
    assert rig.heard.moves == [(Scope("telegram", -500), Scope("telegram", GROUP))]
