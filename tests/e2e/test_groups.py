from __future__ import annotations

from tests.botapi.chats import Chat
from tests.e2e.rig import ADA, Rig

GROUP = -1001234567890
BOB = 2002


async def start_with_group(rig: Rig, *, forum: bool = False) -> Chat:
    """takopi with a project z80 that has a group, in which Ada and Bob are let in."""
    repo = rig.project("z80")
    rig.configure(
        f'allowed_user_ids = [{ADA}, {BOB}]\n[projects.z80]\npath = "{repo}"\nchat_id = {GROUP}'
    )
    rig.api.person(BOB, "Bob")
    group = rig.api.supergroup(GROUP, forum=forum)
    await rig.start()
    return group


def mention(rig: Rig, text: str) -> str:
    return f"@{rig.api.bot.username} {text}"


async def test_group_of_a_project_works_in_that_project(rig: Rig) -> None:
    group = await start_with_group(rig)

    answer = await rig.ending(await rig.say(mention(rig, "run pwd"), chat=group))

    assert str(rig.folder / "z80") in answer.text.splitlines()
    assert "ctx: z80" in answer.text.splitlines()


async def test_only_what_speaks_to_the_bot_is_taken(rig: Rig) -> None:
    group = await start_with_group(rig)

    await rig.say("say: among ourselves", chat=group)
    first = await rig.ending(await rig.say(mention(rig, "say: mentioned"), chat=group))
    await rig.ending(await rig.say("say: replied", to=first, chat=group))
    await rig.ending(await rig.say("/demo say: an engine", chat=group))
    await rig.ending(await rig.say("/z80 say: a project", chat=group))

    assert rig.rows("SELECT prompt FROM runs ORDER BY id") == [
        ("say: mentioned",),
        ("say: replied",),
        ("say: an engine",),
        ("say: a project",),
    ]


async def test_trigger_all_takes_every_message_until_it_is_taken_back(rig: Rig) -> None:
    group = await start_with_group(rig)

    await rig.reply(await rig.say("/trigger all", chat=group), "Every message here is for me.")
    await rig.ending(await rig.say("say: for everybody", chat=group))
    await rig.reply(await rig.say("/trigger mention", chat=group), "Only messages that mention")
    await rig.say("say: among ourselves", chat=group)
    await rig.ending(await rig.say(mention(rig, "say: mentioned"), chat=group))

    assert [row[0] for row in rig.rows("SELECT prompt FROM runs ORDER BY id")] == [
        "say: for everybody",
        "say: mentioned",
    ]


async def test_who_decided_is_named_in_a_group(rig: Rig) -> None:
    group = await start_with_group(rig)
    prompt = await rig.say(mention(rig, "ask question"), chat=group)
    card = await rig.reply(prompt, "demo asks")

    pressed = await rig.api.person(BOB).press(card, "Blue")
    await pressed.answered()

    await rig.ending(prompt)
    await rig.until(lambda _: card.text.endswith(f"Blue by {BOB}"), chat=group)


async def test_topic_is_made_bound_and_answered_in(rig: Rig) -> None:
    group = await start_with_group(rig, forum=True)

    made = await rig.reply(await rig.say("/topic z80 @feat/name", chat=group))
    assert "z80 @ feat/name" in made.text
    topic = next(iter(group.topics.values()))
    assert topic.name == "z80 @ feat/name"
    prompt = await rig.say(mention(rig, "run pwd"), chat=group, topic=topic)
    answer = await rig.ending(prompt)

    assert answer.topic is topic
    assert str(rig.folder / "z80/.worktrees/feat/name") in answer.text.splitlines()


async def test_first_message_of_a_topic_is_no_reply_to_what_opened_it(rig: Rig) -> None:
    group = await start_with_group(rig, forum=True)
    await rig.reply(await rig.say("/topic z80 @feat/name", chat=group))
    topic = next(iter(group.topics.values()))
    # The bot opened the topic: what is written in it replies to the bot in name only.
    await rig.say("say: among ourselves", chat=group, topic=topic)
    await rig.ending(await rig.say(mention(rig, "say: mentioned"), chat=group, topic=topic))

    assert [row[0] for row in rig.rows("SELECT prompt FROM runs")] == ["say: mentioned"]


async def test_topic_where_there_are_none_is_refused(rig: Rig) -> None:
    group = await start_with_group(rig)
    rig.api.expect_rejection("the chat is not a forum")

    refused = await rig.reply(await rig.say("/topic z80 @feat/name", chat=group))

    assert "use a group with topics" in refused.text


async def test_binding_of_a_topic_does_not_reach_its_chat(rig: Rig) -> None:
    group = await start_with_group(rig, forum=True)
    topic = await rig.ada.open_topic(group, "work")
    await rig.reply(await rig.say("/ctx set z80 @feat/x", chat=group, topic=topic))

    outside = await rig.ending(await rig.say(mention(rig, "run pwd"), chat=group))
    inside = await rig.ending(await rig.say(mention(rig, "run pwd"), chat=group, topic=topic))

    assert "ctx: z80" in outside.text.splitlines()
    assert "ctx: z80 @ feat/x" in inside.text.splitlines()


async def test_deleted_topic_ends_its_binding_and_its_answer_goes_to_the_chat(rig: Rig) -> None:
    rig.api.expect_rejection("message thread not found", "to edit not found", "to delete not found")
    group = await start_with_group(rig, forum=True)
    topic = await rig.ada.open_topic(group, "work")
    await rig.reply(await rig.say("/ctx set z80 @feat/x", chat=group, topic=topic))
    prompt = await rig.say(mention(rig, "think 2s then say: late"), chat=group, topic=topic)
    await rig.progress(prompt, "working")

    await rig.ada.delete_topic(group, topic)

    answer = await rig.sees_text("done · demo", "late", chat=group)
    assert answer.topic is None
    await rig.sees_text("A topic is gone", chat=group)
    bound = "SELECT project FROM scopes WHERE topic_id IS NOT NULL AND project IS NOT NULL"
    assert rig.rows(bound) == []


async def test_group_and_private_chat_are_two_conversations(rig: Rig) -> None:
    group = await start_with_group(rig)
    file = rig.home / "takopi.toml"
    file.write_text('session_mode = "chat"\n' + file.read_text(encoding="utf-8"))
    await rig.until_logged("config.changed")
    await rig.ending(await rig.say(mention(rig, "remember the number 42"), chat=group))

    answer = await rig.answer("what do you remember")

    assert "You have not asked me to remember anything." in answer.text
