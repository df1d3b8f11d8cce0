from __future__ import annotations

from typing import Any

import pytest

from tests.botapi.bot import Bot, served
from tests.botapi.person import Attached

ADA = 1001
TEAM = -1001
FORUM = -1002


async def _last(bot: Bot, kind: str = "message") -> dict[str, Any]:
    """The newest update."""
    return (await bot.call("getUpdates"))[-1][kind]


async def _card(bot: Bot, chat_id: int = ADA, *, label: str = "Go", **more: Any) -> Any:
    keyboard = [[{"text": label, "callback_data": "rn:1"}]]
    markup = {"inline_keyboard": keyboard}
    return await bot.call("sendMessage", chat_id=chat_id, text="card", reply_markup=markup, **more)


async def test_a_message_says_who_where_and_when() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA, "Ada", username="ada")
        await ada.send(ada.chat, "hello")
        message = await _last(bot)
        assert message["from"] == {
            "id": ADA, "is_bot": False, "first_name": "Ada", "username": "ada",
            "language_code": "en",
        }  # fmt: skip
        assert message["chat"] == {
            "id": ADA, "type": "private", "first_name": "Ada", "username": "ada",
        }  # fmt: skip
        assert abs(message["date"] - api.world.clock.now_s()) < 60


async def test_a_reply_carries_the_message_it_replies_to_but_not_that_ones() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        first = await ada.send(ada.chat, "first")
        await bot.call(
            "sendMessage", chat_id=ADA, text="second", reply_parameters={"message_id": first.id},
            entities=[{"type": "code", "offset": 0, "length": 6}],
        )  # fmt: skip
        await ada.send(ada.chat, "third", reply_to=ada.chat.messages[1], quote="con")
        message = await _last(bot)
        assert message["reply_to_message"]["text"] == "second"
        assert message["reply_to_message"]["entities"][0]["type"] == "code"
        assert "reply_to_message" not in message["reply_to_message"]
        assert message["quote"] == {"text": "con", "position": 2, "is_manual": True}


async def test_replies_in_a_group_make_a_thread_that_is_no_topic() -> None:
    async with served() as (api, bot):
        ada, team = api.person(ADA), api.supergroup(TEAM)
        first = await ada.send(team, "first")
        second = await ada.send(team, "second", reply_to=first)
        await ada.send(team, "third", reply_to=second)
        message = await _last(bot)
        assert message["message_thread_id"] == first.id
        assert "is_topic_message" not in message


async def test_a_topic_message_replies_to_its_root_unless_to_another() -> None:
    async with served() as (api, bot):
        ada, forum = api.person(ADA), api.supergroup(FORUM, forum=True)
        topic = await ada.open_topic(forum, "Work")
        assert (await _last(bot))["forum_topic_created"]["name"] == "Work"
        said = await ada.send(forum, "hello", topic=topic)
        message = await _last(bot)
        assert (message["message_thread_id"], message["is_topic_message"]) == (topic.id, True)
        assert message["reply_to_message"]["message_id"] == topic.id
        assert message["chat"]["is_forum"]
        await ada.send(forum, "again", reply_to=said)
        message = await _last(bot)
        assert message["message_thread_id"] == topic.id
        assert message["reply_to_message"]["text"] == "hello"


async def test_the_bot_makes_writes_to_renames_and_loses_a_topic() -> None:
    async with served() as (api, bot):
        ada, forum = api.person(ADA), api.supergroup(FORUM, forum=True)
        made = await bot.call("createForumTopic", chat_id=FORUM, name="Work")
        place = {"chat_id": FORUM, "message_thread_id": made["message_thread_id"]}
        sent = await bot.call("sendMessage", **place, text="here")
        assert (sent["message_thread_id"], sent["is_topic_message"]) == (
            made["message_thread_id"],
            True,
        )
        await bot.call("editForumTopic", **place, name="Play")
        topic = forum.topics[made["message_thread_id"]]
        assert topic.name == "Play"
        assert await bot.refusal("editForumTopic", **place, name="Play") == (
            "Bad Request: TOPIC_NOT_MODIFIED"
        )
        await ada.delete_topic(forum, topic)
        assert forum.messages == []
        assert await bot.refusal("sendMessage", **place, text="x") == (
            "Bad Request: message thread not found"
        )


async def test_a_closed_topic_takes_messages_of_admins_only() -> None:
    async with served() as (api, bot):
        forum = api.supergroup(FORUM, forum=True)
        made = await bot.call("createForumTopic", chat_id=FORUM, name="Work")
        place = {"chat_id": FORUM, "message_thread_id": made["message_thread_id"]}
        await bot.call("closeForumTopic", **place)
        assert "TOPIC_NOT_MODIFIED" in await bot.refusal("closeForumTopic", **place)
        await bot.call("sendMessage", **place, text="as admin")
        forum.bot_status = "member"
        assert await bot.refusal("sendMessage", **place, text="x") == "Bad Request: TOPIC_CLOSED"
        assert "not enough rights" in await bot.refusal("reopenForumTopic", **place)


async def test_a_reply_to_a_topic_message_goes_to_the_topic() -> None:
    async with served() as (api, bot):
        ada, forum = api.person(ADA), api.supergroup(FORUM, forum=True)
        topic = await ada.open_topic(forum, "Work")
        said = await ada.send(forum, "hello", topic=topic)
        sent = await bot.call(
            "sendMessage", chat_id=FORUM, text="x", reply_parameters={"message_id": said.id}
        )
        assert (sent["message_thread_id"], sent["is_topic_message"]) == (topic.id, True)


async def test_a_press_carries_the_card_and_is_answered() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await _card(bot)
        card = await ada.sees(lambda message: message.text == "card")
        press = await ada.press(card, "Go")
        query = await _last(bot, "callback_query")
        assert (query["id"], query["data"], query["from"]["id"]) == (press.id, "rn:1", ADA)
        assert query["message"]["text"] == "card"
        assert query["message"]["from"]["is_bot"]
        await bot.call(
            "answerCallbackQuery", callback_query_id=press.id, text="ok", show_alert=True
        )
        answer = await press.answered()
        assert (answer.text, answer.alert) == ("ok", True)


async def test_a_press_on_an_old_card_shows_little_of_it() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await _card(bot)
        await ada.press(ada.chat.messages[0], "Go", inaccessible=True)
        query = await _last(bot, "callback_query")
        assert query["message"] == {"chat": ada.chat.json(), "message_id": 1, "date": 0}


async def test_data_can_be_forged_by_anybody_on_any_message() -> None:
    async with served() as (api, bot):
        eve, ada = api.person(666, "Eve"), api.person(ADA)
        said = await ada.send(ada.chat, "no buttons")
        await eve.press_data(said, "rn:666")
        query = await _last(bot, "callback_query")
        assert (query["data"], query["from"]["id"]) == ("rn:666", 666)


async def test_only_a_button_that_is_there_can_be_pressed() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await _card(bot)
        with pytest.raises(AssertionError, match=r"0 buttons 'Stop' among \['Go'\]"):
            await ada.press(ada.chat.messages[0], "Stop")


async def test_an_edit_comes_as_one() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        said = await ada.send(ada.chat, "/one")
        await ada.edit(said, "two")
        edited = await _last(bot, "edited_message")
        assert (edited["message_id"], edited["text"]) == (said.id, "two")
        assert "entities" not in edited
        assert edited["edit_date"] >= edited["date"]


async def test_a_deletion_by_a_person_is_not_told() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        said = await ada.send(ada.chat, "one")
        await ada.delete(said)
        assert ada.chat.messages == []
        assert len(await bot.call("getUpdates")) == 1


async def test_files_of_all_sorts_come_and_can_be_fetched() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await ada.voice(ada.chat, b"OggS", duration_s=7)
        voice = (await _last(bot))["voice"]
        assert (voice["duration"], voice["mime_type"], voice["file_size"]) == (7, "audio/ogg", 4)
        notes = Attached("notes.txt", b"notes", "text/plain", caption="/run it")
        await ada.document(ada.chat, notes)
        message = await _last(bot)
        assert (message["document"]["file_name"], message["caption"]) == ("notes.txt", "/run it")
        assert message["caption_entities"] == [{"type": "bot_command", "offset": 0, "length": 4}]
        await ada.photo(ada.chat, Attached("p.jpg", b"j" * 99, "image/jpeg"))
        sizes = (await _last(bot))["photo"]
        assert [size["file_size"] for size in sizes] == [64, 99]
        file = await bot.call("getFile", file_id=sizes[-1]["file_id"])
        url = f"{api.url}/file/bot{api.token}/{file['file_path']}"
        assert (await bot.client.get(url)).content == b"j" * 99


async def test_an_album_is_several_messages_of_one_group() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await ada.album(
            ada.chat, [Attached("a.txt", b"a", caption="both"), Attached("b.txt", b"b")]
        )
        first, second = [update["message"] for update in await bot.call("getUpdates")]
        assert first["media_group_id"] == second["media_group_id"]
        assert (first["caption"], "caption" in second) == ("both", False)


async def test_a_long_paste_comes_in_parts_that_make_the_whole() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        text = "\n".join(f"line {number} 😀" for number in range(1000))
        await ada.paste(ada.chat, text)
        parts = [update["message"]["text"] for update in await bot.call("getUpdates")]
        assert len(parts) > 1
        assert "\n".join(parts) == text
        with pytest.raises(ValueError, match="no client sends that in one message"):
            await ada.send(ada.chat, text)


async def test_a_forwarded_message_names_its_origin() -> None:
    async with served() as (api, bot):
        ada, eve = api.person(ADA), api.person(666, "Eve")
        said = await eve.send(eve.chat, "hers")
        await ada.forward(said, ada.chat)
        message = await _last(bot)
        assert (message["from"]["id"], message["text"]) == (ADA, "hers")
        assert message["forward_origin"]["sender_user"]["id"] == 666


async def test_who_hides_behind_a_group_or_a_channel_is_not_named() -> None:
    async with served() as (api, bot):
        ada, team, news = api.person(ADA), api.supergroup(TEAM), api.channel(-1003)
        await ada.send(team, "as the group", as_chat=team)
        message = await _last(bot)
        assert (message["from"]["username"], message["sender_chat"]["id"]) == (
            "GroupAnonymousBot",
            TEAM,
        )
        await ada.send(team, "as a channel", as_chat=news)
        message = await _last(bot)
        assert (message["from"]["username"], message["sender_chat"]["type"]) == (
            "Channel_Bot",
            "channel",
        )


async def test_a_channel_post_has_no_sender() -> None:
    async with served() as (api, bot):
        api.post(api.channel(-1003), "news")
        post = await _last(bot, "channel_post")
        assert (post["text"], "from" in post) == ("news", False)


async def test_another_bot_can_write() -> None:
    async with served() as (api, bot):
        other = api.person(77, "Other", username="other_bot", is_bot=True)
        await other.send(api.supergroup(TEAM), "beep")
        assert (await _last(bot))["from"]["is_bot"]


async def test_a_person_comes_in() -> None:
    async with served() as (api, bot):
        await api.person(ADA).join(api.supergroup(TEAM))
        assert (await _last(bot))["new_chat_members"][0]["id"] == ADA


async def test_a_bot_that_is_blocked_is_told_and_cannot_write() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        await ada.block()
        member = await _last(bot, "my_chat_member")
        assert (member["old_chat_member"]["status"], member["new_chat_member"]["status"]) == (
            "member",
            "kicked",
        )
        words = await bot.refusal("sendMessage", chat_id=ADA, text="x")
        assert words == "Forbidden: bot was blocked by the user"
        await ada.unblock()
        await bot.call("sendMessage", chat_id=ADA, text="x")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("kicked", "Forbidden: bot was kicked from the supergroup chat"),
        ("left", "Forbidden: bot is not a member of the supergroup chat"),
    ],
)
async def test_a_bot_that_is_out_of_a_group_hears_and_says_nothing(status: Any, words: str) -> None:
    async with served() as (api, bot):
        ada, team = api.person(ADA), api.supergroup(TEAM)
        await ada.set_bot_status(team, status)
        await ada.send(team, "unheard")
        assert [sorted(one) for one in await bot.call("getUpdates")] == [
            ["my_chat_member", "update_id"]
        ]
        assert await bot.refusal("sendMessage", chat_id=TEAM, text="x") == words


async def test_what_the_test_brings_about_is_no_violation() -> None:
    async with served() as (api, bot):
        await api.person(ADA).block()
        await bot.client.post("sendMessage", json={"chat_id": ADA, "text": "x"})
        old = api.group(-5)
        api.migrate(old, TEAM)
        await bot.client.post("sendMessage", json={"chat_id": -5, "text": "x"})
        assert [request.status for request in api.requests] == [403, 400]
        assert api.violations == []


async def test_a_group_that_moved_says_where_to() -> None:
    async with served() as (api, bot):
        old = api.group(-5, "Team")
        new = api.migrate(old, TEAM)
        away, home = [update["message"] for update in await bot.call("getUpdates")]
        assert (away["chat"]["id"], away["migrate_to_chat_id"]) == (-5, TEAM)
        assert (home["chat"]["id"], home["migrate_from_chat_id"]) == (TEAM, -5)
        response = await bot.client.post("sendMessage", json={"chat_id": -5, "text": "x"})
        assert response.json() == {
            "ok": False,
            "error_code": 400,
            "description": "Bad Request: group chat was upgraded to a supergroup chat",
            "parameters": {"migrate_to_chat_id": TEAM},
        }
        await bot.call("sendMessage", chat_id=TEAM, text="x")
        assert new.bot_messages[0].text == "x"


async def test_a_chat_reads_as_a_person_sees_it() -> None:
    async with served() as (api, bot):
        ada = api.person(ADA)
        said = await ada.send(ada.chat, "/run it")
        entities = [
            {"type": "bold", "offset": 0, "length": 4},
            {"type": "text_link", "offset": 5, "length": 4, "url": "https://a.b"},
            {"type": "code", "offset": 11, "length": 2},
        ]
        keyboard = [[{"text": "Cancel", "callback_data": "rn:1"}]]
        await bot.call(
            "sendMessage",
            chat_id=ADA,
            text="done 😀it.\nok",
            entities=entities,
            disable_notification=True,
            reply_parameters={"message_id": said.id},
            reply_markup={"inline_keyboard": keyboard},
        )
        press = await ada.press(ada.chat.messages[1], "Cancel")
        await bot.call("answerCallbackQuery", callback_query_id=press.id, text="Stopping")
        await ada.document(ada.chat, Attached("a.txt", b"a"))
        assert api.transcript(ADA) == (
            "== private 1001 Ada\n"
            "#1 Ada:\n"
            "    /run it\n"
            "#2 takopi (to #1, silent):\n"
            "    *done* [😀it](https://a.b).\n"
            "    `ok`\n"
            "    [Cancel]\n"
            "    Ada pressed rn:1: Stopping\n"
            "#3 Ada:\n"
            "    <a.txt>"
        )


async def test_waiting_for_what_does_not_come_shows_the_chat() -> None:
    async with served() as (api, _):
        ada = api.person(ADA)
        await ada.send(ada.chat, "hello?")
        with pytest.raises(AssertionError, match=r"not seen within 0 s in:\n.*\n.*\n +hello\?"):
            await ada.sees(lambda _: True, within_s=0)
        with pytest.raises(AssertionError, match="not so within 0 s"):
            await ada.chat.wait_until(lambda chat: len(chat.messages) == 2, within_s=0)
