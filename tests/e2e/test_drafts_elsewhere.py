"""Drafts by the API, on the page, and in chats and topics that do not stay as they were."""

from __future__ import annotations

import trio

from takopi.cli.demo_page import open_page
from takopi.drafts.machine import PRESS, DraftPress
from takopi.drafts.master import SYSTEM
from tests.drafts.claude_stand_in import StandIn
from tests.e2e.drafting import card_with, draft, text, versions
from tests.e2e.rig import WITHIN_S, Rig
from tests.e2e.test_both import ADDRESS, BOTH
from tests.e2e.test_drafts_topics import group_with_topics
from tests.model.script import Fail, Rule, Say
from tests.model.server import serve_model

DEMO = 'drafts.backend = "demo"\n'


def by_api(rig: Rig, base_url: str) -> None:
    key = rig.folder / "key"
    key.touch(0o600)
    key.write_text("sk-of-the-tests\n")
    rig.configure(
        f'drafts.backend = "api"\noneshot.base_url = "{base_url}"\noneshot.api_key_file = "{key}"\n'
    )


async def test_api_is_asked_with_the_system_prompt_and_its_answer_is_the_version(rig: Rig) -> None:
    script = [Rule("New input:\none$", Say("* one")), Rule("New input:\ntwo$", Say("* one\n* two"))]
    async with serve_model(script) as model:
        by_api(rig, model.base_url)
        await draft(rig, "one", "two")
    first, second = model.conversations
    assert first.system == second.system == SYSTEM
    assert second.latest is not None
    assert second.latest.text == "Previous state:\n* one\n\nNew input:\ntwo"
    assert first.tools == ()


async def test_input_that_the_api_refuses_is_kept_and_tried_again(rig: Rig) -> None:
    script = [
        Rule("New input:\none$", Say("* one")),
        Rule("New input:\ntwo$", Fail(400, "scripted"), times=1),
        Rule("New input:\ntwo$", Say("* one\n* two")),
    ]
    async with serve_model(script) as model:
        by_api(rig, model.base_url)
        card = await draft(rig, "one")
        await rig.say("two")
        await rig.until(lambda _: card.labels == ("Retry", "Append as is", "Reset"))
        assert versions(rig) == [text("one")]
        await rig.press(card, "Retry")
        await rig.until(lambda _: card.text == text("one", "two"))


async def test_page_has_drafts_with_the_same_buttons(rig: Rig) -> None:
    rig.configure(f"{BOTH}{DEMO}")
    await rig.start()
    await rig.until_so(lambda: ADDRESS.search(rig.log) is not None)
    found = ADDRESS.search(rig.log)
    assert found is not None
    with trio.fail_after(WITHIN_S):
        async with open_page(found[0], tell=lambda _line: None) as page:
            await page.say("/draft on")
            await page.sees("drafting", lambda m: "put together" in m.text)
            await page.say("one")
            card = await page.sees("one version", lambda m: m.labels == ("Run", "Reset"))
            await page.say("two")
            card = await page.sees("two versions", lambda m: "Revert" in m.labels)
            assert card.text == "- one\n- two"
            await page.press(card, "Revert")
            back = await page.sees("the first", lambda m: m.text == "- one" and bool(m.labels))
            assert (back.id, back.labels) == (card.id, ("Run", "Reset"))
            await page.press(back, "Run")
            sent = await page.sees("what was sent", lambda m: m.text.endswith("Run 1: demo"))
            assert (sent.id, sent.labels) == (card.id, ())
            await page.say("three")
            fresh = await page.sees("a new draft", lambda m: m.text == "- three")
            assert fresh.id != card.id
    assert rig.rows("SELECT transport, prompt FROM runs") == [("web", "- one")]


async def test_revert_past_the_first_is_a_reset(rig: Rig) -> None:
    rig.configure(DEMO)
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    await rig.say("one")
    await rig.say("two")
    card = await card_with(rig, "- one\n- two")
    await rig.press(card, "Revert")
    await rig.until(lambda _: card.labels == ("Run", "Reset"))
    # No button says so: it is what somebody with a slow client may still press.
    shown = PRESS.decode(card.button("Run")["callback_data"])
    assert shown is not None
    past = PRESS.encode(DraftPress("revert", shown.draft, shown.step))
    await (await rig.ada.press_data(card, past)).answered()
    await rig.until(lambda chat: card not in chat.messages)
    assert versions(rig) == []
    await rig.say("three")
    assert (await card_with(rig, "- three")).labels == ("Run", "Reset")


async def test_topic_that_is_deleted_clears_its_draft(rig: Rig) -> None:
    group, topic, _ = await group_with_topics(rig, StandIn(rig.folder / "master"))
    await rig.say("one", chat=group, topic=topic)
    await rig.sees(lambda m: m.labels == ("Run", "Reset"), chat=group)
    await rig.say("wait two", chat=group, topic=topic)
    await rig.until_so(lambda: "Taking in" in group.transcript())
    rig.api.expect_rejection("message to edit not found")
    rig.api.expect_rejection("message thread not found")
    rig.api.expect_rejection("message to delete not found")
    await rig.ada.delete_topic(group, topic)
    (rig.folder / "master" / "go").touch()
    await rig.sees_text("A topic is gone", chat=group)
    await rig.until_so(lambda: not rig.rows("SELECT id FROM drafts"))
    assert rig.rows("SELECT id FROM draft_jobs") == []
    assert rig.rows("SELECT * FROM scopes WHERE drafting = 1") == []
    await rig.until(lambda chat: not any(m.labels for m in chat.bot_messages), chat=group)
