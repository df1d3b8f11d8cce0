"""Drafts that several people share, and who of them may press."""

from __future__ import annotations

from tests.botapi.chats import Chat, Topic
from tests.drafts.claude_stand_in import StandIn
from tests.e2e.drafting import text, versions
from tests.e2e.rig import ADA, Rig
from tests.e2e.test_groups import BOB, GROUP


async def group_with_topics(rig: Rig, master: StandIn) -> tuple[Chat, Topic, Topic]:
    repo = rig.project("z80")
    rig.configure(
        f'claude.command = "{master.path}"\nallowed_user_ids = [{ADA}, {BOB}]\n'
        f'[projects.z80]\npath = "{repo}"\nchat_id = {GROUP}'
    )
    rig.api.person(BOB, "Bob")
    group = rig.api.supergroup(GROUP, forum=True)
    group.admins.add(ADA)
    topics = [await rig.ada.open_topic(group, name) for name in ("drafts", "other")]
    await rig.start()
    await rig.say("/draft on", chat=group, topic=topics[0])
    await rig.sees_text("put together", chat=group)
    return group, topics[0], topics[1]


async def test_all_of_a_topic_share_one_draft_and_other_topics_are_untouched(
    rig: Rig, master: StandIn
) -> None:
    group, topic, other = await group_with_topics(rig, master)
    await rig.say("one", chat=group, topic=topic)
    await rig.say("among ourselves", chat=group, topic=other)
    await rig.api.person(BOB).send(group, "two", topic=topic)
    card = await rig.sees(lambda m: m.text.startswith(text("one", "two")), chat=group)
    assert card.topic is topic
    assert len(master.calls) == 2


async def test_draft_goes_on_in_the_group_that_its_group_became(rig: Rig, master: StandIn) -> None:
    small = -500
    rooms = {"small": small, "team": GROUP}
    rig.configure(
        f'claude.command = "{master.path}"\nallowed_user_ids = [{ADA}]\n'
        + "".join(
            f'[projects.{name}]\npath = "{rig.project(name)}"\nchat_id = {chat_id}\n'
            for name, chat_id in rooms.items()
        )
    )
    group = rig.api.group(small)
    await rig.start()
    await rig.say("/draft on", chat=group)
    await rig.sees_text("put together", chat=group)
    await rig.say("one", chat=group)
    await rig.sees(lambda m: "Run" in m.labels, chat=group)
    await rig.say("wait two", chat=group)
    await rig.until_so(lambda: len(master.calls) == 2)
    team = rig.api.migrate(group, GROUP)
    team.admins.add(ADA)
    master.go()
    card = await rig.sees(lambda m: m.text.startswith(text("one", "wait two")), chat=team)
    await rig.until(lambda _: card.labels == ("Run", "Revert", "Reset"), chat=team)
    await rig.press(card, "Revert")
    await rig.until(lambda _: card.text.startswith(text("one")) and not card.labels[2:], chat=team)


async def test_only_admins_may_press(rig: Rig, master: StandIn) -> None:
    group, topic, _ = await group_with_topics(rig, master)
    await rig.say("one", chat=group, topic=topic)
    card = await rig.sees(lambda m: "Run" in m.labels, chat=group)
    for label in ("Run", "Reset"):
        pressed = await rig.api.person(BOB).press(card, label)
        assert (await pressed.answered()).text == "Only admins of this chat may do that."
    assert versions(rig) == [text("one")]
    await rig.press(card, "Reset")
    await rig.until(lambda chat: card not in chat.messages, chat=group)


async def test_admin_is_asked_for_once_a_minute(rig: Rig, master: StandIn) -> None:
    group, topic, _ = await group_with_topics(rig, master)
    await rig.say("one", chat=group, topic=topic)
    card = await rig.sees(lambda m: "Run" in m.labels, chat=group)
    for _ in range(3):
        await (await rig.api.person(BOB).press(card, "Run")).answered()
    assert len(rig.api.sent("getChatMember")) == 1


async def test_admin_of_the_config_may_press(rig: Rig, master: StandIn) -> None:
    group, topic, _ = await group_with_topics(rig, master)
    group.admins.clear()
    await rig.stop()
    config = (rig.home / "takopi.toml").read_text()
    (rig.home / "takopi.toml").write_text(f"admin_user_ids = [{BOB}]\n{config}")
    await rig.start()
    await rig.say("one", chat=group, topic=topic)
    card = await rig.sees(lambda m: "Run" in m.labels, chat=group)
    await (await rig.api.person(BOB).press(card, "Reset")).answered()
    await rig.until(lambda chat: card not in chat.messages, chat=group)
