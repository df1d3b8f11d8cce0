"""Sessions on the page, after an interview, and in topics."""

from __future__ import annotations

import trio

from takopi.cli.demo_page import open_page
from tests.e2e.rig import ADA, WITHIN_S, Rig
from tests.e2e.test_both import ADDRESS, BOTH
from tests.e2e.test_groups import GROUP
from tests.e2e.test_plan import answer_all
from tests.e2e.turns import TIER_ONE, done, review, sessions


async def test_page_has_sessions_with_the_same_buttons(rig: Rig) -> None:
    rig.configure(BOTH)
    await rig.start()
    await rig.until_so(lambda: ADDRESS.search(rig.log) is not None)
    found = ADDRESS.search(rig.log)
    assert found is not None
    with trio.fail_after(WITHIN_S):
        async with open_page(found[0], tell=lambda _line: None) as page:
            await page.say("/session new greet")
            await page.sees("the session", lambda m: "has begun" in m.text)
            await page.say("/session plan Hello page")
            card = await page.sees("the card", lambda m: m.labels == TIER_ONE)
            await page.press(card, "Modify")
            listed = await page.sees(
                "the list", lambda m: m.id == card.id and "Preview 2" in m.labels
            )
            await page.press(listed, "Preview 2")
            item = await page.sees("an item", lambda m: m.id == card.id and "Edit" in m.labels)
            await page.press(item, "Edit")
            await page.sees("the wait", lambda m: m.id == card.id and "Keep as it is" in m.labels)
            await page.say("cat demo/hello-1.txt demo/hello-1.txt")
            changed = await page.sees(
                "the change", lambda m: m.id == card.id and "*modified" in m.text
            )
            await page.press(changed, "Back to the list")
            ready = await page.sees(
                "the list again", lambda m: m.id == card.id and "Confirm (4)" in m.labels
            )
            await page.press(ready, "Confirm (4)")
            report = await page.sees("the report", lambda m: "Next turn" in m.labels)
    assert "Hello page\nHello page" in report.text
    assert (rig.cwd / "demo/hello-1.txt").read_text() == "Hello page\n"
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]


async def test_card_of_another_chat_is_over_once_the_folder_is_reviewed_here(rig: Rig) -> None:
    rig.configure(BOTH)
    await rig.start()
    await rig.until_so(lambda: ADDRESS.search(rig.log) is not None)
    found = ADDRESS.search(rig.log)
    assert found is not None
    with trio.fail_after(WITHIN_S):
        async with open_page(found[0], tell=lambda _line: None) as page:
            await page.say("/session new greet")
            await page.sees("the session", lambda m: "has begun" in m.text)
            await page.say("/session plan Hello page")
            card = await page.sees("the card", lambda m: m.labels == TIER_ONE)
            await rig.say("/session execute")
            own = await review(rig)
            await page.sees("its end", lambda m: m.id == card.id and not m.labels)
            await rig.press(own, "Approve all")
            await done(rig, "SUCCESS")


async def test_confirmed_interview_becomes_the_first_turn_of_a_session(rig: Rig) -> None:
    rig.configure('interview.on_confirm = "session"')
    ready = await answer_all(rig)
    data = ready.button("✅ Confirm & Start")["callback_data"]
    for _ in range(2):
        await (await rig.ada.press_data(ready, data)).answered(within_s=WITHIN_S)
    await rig.sees_text("🚀 Starting...")
    card = await review(rig)
    (session,) = sessions(rig)
    assert session.name.endswith("-add-jwt-authentication")
    text = (session / "01/plan.md").read_text()
    assert "add JWT authentication" in text
    assert "A: Safety" in text
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]
    await rig.press(card, "Approve all")
    await done(rig, "SUCCESS")


async def test_interview_of_a_taken_name_begins_a_session_of_another(rig: Rig) -> None:
    rig.configure('interview.on_confirm = "session"')
    ready = await answer_all(rig)
    await rig.reply(await rig.say("/session new add-jwt-authentication"), "has begun")
    await rig.press(ready, "✅ Confirm & Start")
    await review(rig)
    assert [session.name.partition("-")[2] for session in sessions(rig)] == [
        "add-jwt-authentication",
        "add-jwt-authentication-2",
    ]


async def test_topic_has_a_session_in_its_own_worktree(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(f'allowed_user_ids = [{ADA}]\n[projects.z80]\npath = "{repo}"\nchat_id = {GROUP}')
    group = rig.api.supergroup(GROUP, forum=True)
    group.admins.add(ADA)
    await rig.start()
    topic = await rig.ada.open_topic(group, "feat")
    await rig.say("/ctx set z80 @feat", chat=group, topic=topic)
    await rig.sees_text("bound to", chat=group)
    await rig.say("/session new greet", chat=group, topic=topic)
    await rig.sees_text("has begun", chat=group)
    await rig.say("/session plan Hello", chat=group, topic=topic)
    card = await review(rig, chat=group)
    assert card.topic is topic
    await rig.press(card, "Skip")
    await rig.until(lambda _: card.labels == ("Keep this plan",), chat=group)
    await rig.say("Another", chat=group, topic=topic, to=card)
    second = await review(rig, chat=group, after=card)
    await rig.press(second, "Approve all")
    report = await done(rig, "SUCCESS", chat=group)
    assert report.topic is topic
    assert (repo / ".worktrees/feat/demo/hello-1.txt").read_text() == "Another\n"
