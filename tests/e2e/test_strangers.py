from __future__ import annotations

from tests.botapi.api import BotApi
from tests.e2e.rig import ADA, WITHIN_S, Rig

GROUP = -1001234567890
OTHER = -1009876543210
MALLORY = 6666


def bot_requests(api: BotApi) -> list[str]:
    return [r.method for r in api.requests if r.method not in {"getUpdates", "getMe"}]


async def configure_group(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(f'allowed_user_ids = [{ADA}]\n[projects.z80]\npath = "{repo}"\nchat_id = {GROUP}')
    await rig.start()
    # The command menu is the last thing that is said without being asked.
    await rig.api.wait_for_request(lambda r: r.method == "setMyCommands")


async def nothing_came_of_it(rig: Rig, before: int) -> None:
    """Everything was confirmed, Ada is served, and nothing else was sent or stored."""
    await rig.until_confirmed()
    requests = len(bot_requests(rig.api))
    assert requests == before
    prompt = await rig.say("say: for Ada alone")
    await rig.ending(prompt)
    assert rig.rows("SELECT chat_id, update_id FROM inbox") == [(ADA, rig.api.updates.next_id - 1)]
    assert rig.rows("SELECT prompt FROM runs") == [("say: for Ada alone",)]
    assert {row[0] for row in rig.rows("SELECT chat_id FROM messages")} == {ADA}
    for chat in rig.api.world.chats.values():
        assert chat is rig.chat or not chat.bot_messages


async def test_s1_strangers_have_no_effect(rig: Rig) -> None:
    await configure_group(rig)
    before = len(bot_requests(rig.api))
    mallory = rig.api.person(MALLORY, "Mallory")
    group = rig.api.supergroup(GROUP)
    other = rig.api.supergroup(OTHER)
    bot = f"@{rig.api.bot.username}"

    await mallory.send(mallory.chat, "run rm -rf /")
    await mallory.send(mallory.chat, "/status")
    await mallory.send(group, f"{bot} run pwd")
    await mallory.send(other, f"{bot} run pwd")
    await rig.ada.send(other, f"{bot} run pwd")
    await rig.ada.send(group, f"{bot} run pwd", as_chat=group)
    await rig.ada.send(group, f"{bot} run pwd", as_chat=rig.api.channel(-1005))
    rig.api.post(rig.api.channel(-1005), f"{bot} run pwd")

    await nothing_came_of_it(rig, before)
    assert str(MALLORY) in rig.log
    assert "rm -rf" not in rig.log


async def test_s1_edited_message_of_a_stranger_has_no_effect(rig: Rig) -> None:
    await configure_group(rig)
    before = len(bot_requests(rig.api))
    mallory = rig.api.person(MALLORY, "Mallory")
    message = await mallory.send(mallory.chat, "hello")
    await mallory.edit(message, "run pwd")

    await nothing_came_of_it(rig, before)


async def test_s1_press_of_a_stranger_has_no_effect(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("hang")
    progress = await rig.progress(prompt, "demo --resume")
    mallory = rig.api.person(MALLORY, "Mallory")
    answers = len(rig.api.sent("answerCallbackQuery"))
    before = rig.rows("SELECT update_id FROM inbox")

    await mallory.press(progress, "Cancel")
    await rig.until_confirmed()

    assert rig.rows("SELECT update_id FROM inbox") == before
    assert rig.rows("SELECT state FROM runs") == [("running",)]
    assert len(rig.api.sent("answerCallbackQuery")) == answers


async def test_s1_press_with_forged_data_is_answered_and_nothing_more(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("ask approval to run touch stolen")
    card = await rig.reply(prompt, "wants to use run")
    await rig.progress(prompt, "waiting for you")
    shown = card.versions[-1]

    for data in (
        "rn:explode:1",
        "rn:cancel:01",
        "rn:cancel:1:2",
        "ak:1:1:0",
        "ak:1:1:7:allow",
        "ak:1:1:0:everything",
        "ak:1:1:0:0",
        "ak:1:2:0:allow",
        "iq:1",
        "nonsense",
        "::::",
    ):
        await (await rig.ada.press_data(card, data)).answered(within_s=WITHIN_S)

    assert card.versions[-1] is shown
    assert card.labels
    assert rig.rows("SELECT state FROM runs") == [("running",)]
    assert not (rig.cwd / "stolen").exists()
    assert [m for m in rig.chat.bot_messages if not m.silent] == [card]


async def test_s1_press_for_what_is_not_there_has_no_effect_on_what_is(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("ask approval to run touch stolen")
    await rig.reply(prompt, "wants to use run")
    progress = await rig.progress(prompt, "waiting for you")

    for data in (
        "rn:cancel:99999",
        "rn:retry:1",
        "rn:resume:1",
        "rn:show:99999",
        "ak:99999:1:0:allow",
        "in:run:99999",
        "in:run:1",
        "wt:archive:000000000000:000000000000",
        "pk:cancel:1:99999",
        "pk:ctx:1:000000000000",
    ):
        await (await rig.ada.press_data(progress, data)).answered(within_s=WITHIN_S)

    assert rig.rows("SELECT state FROM runs") == [("running",)]
    assert not (rig.cwd / "stolen").exists()


async def test_s1_edit_of_a_message_that_ran_starts_nothing(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("say: once")
    answer = await rig.ending(prompt)

    await rig.ada.edit(prompt, "say: twice")
    await rig.until_settled(2)

    assert len(rig.rows("SELECT id FROM runs")) == 1
    assert rig.chat.bot_messages == [answer]


async def test_s1_person_who_was_removed_from_the_list_is_a_stranger(rig: Rig) -> None:
    await configure_group(rig)
    group = rig.api.supergroup(GROUP)
    asked = await rig.say(f"@{rig.api.bot.username} say: inside", chat=group)
    await rig.ending(asked)
    rig.api.person(2002, "Bob")
    rig.configure(
        "allowed_user_ids = [2002]\n"
        f'[projects.z80]\npath = "{rig.folder / "z80"}"\nchat_id = {GROUP}'
    )
    await rig.until_logged("config.changed")

    await rig.say(f"@{rig.api.bot.username} say: outside", chat=group)
    await rig.until_confirmed()

    assert len(rig.rows("SELECT id FROM inbox")) == 1
