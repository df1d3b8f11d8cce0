"""/plan against the whole daemon: the cases of the specification, in its own words."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.botapi.chats import Message
from tests.e2e.rig import ADA, WITHIN_S, Rig
from tests.e2e.test_groups import BOB, GROUP, start_with_group

TASK = "add JWT authentication"


def session_file(rig: Rig) -> Path:
    return rig.home / "sessions" / f"{ADA}-interactive.json"


def session(rig: Rig) -> dict[str, Any]:
    return json.loads(session_file(rig).read_text(encoding="utf-8"))


def data(message: Message) -> list[str]:
    return [message.button(label)["callback_data"] for label in message.labels]


async def card(rig: Rig, number: int, *, after: Message | None = None) -> Message:
    """The card of a question that can still be answered."""
    return await rig.sees(
        lambda m: (
            f"\nQ{number} of " in m.text and bool(m.buttons) and (after is None or m.id > after.id)
        )
    )


async def summary(rig: Rig, *, after: Message | None = None) -> Message:
    return await rig.sees(
        lambda m: "Plan Ready" in m.text and bool(m.buttons) and (after is None or m.id > after.id)
    )


async def begin(rig: Rig, text: str = f"/plan {TASK}") -> Message:
    await rig.start()
    await rig.say(text)
    return await card(rig, 1)


async def answer_all(rig: Rig) -> Message:
    """Through both batches of the demo to the summary."""
    await rig.press(await begin(rig), "A rewrite")
    await rig.press(await card(rig, 2), "Safety")
    await rig.press(await card(rig, 3), "The tests")
    return await summary(rig)


async def test_tc01_plan_starts_the_questions(rig: Rig) -> None:
    first = await begin(rig)
    assert first.text == (
        f"📋 Planning: {TASK}\n━━━━━━━━━━━━━━━━━━━━━━\nQ1 of 2 ▓▓▓▓▓░░░░░ 50%\n\n"
        "How big should the change be?"
    )
    assert data(first) == ["iq:a:0:0", "iq:a:0:1", "iq:a:0:2", "iq:back", "iq:cancel"]
    kept = session(rig)
    assert (kept["state"], kept["currentQuestionIndex"]) == ("COLLECTING", 0)
    assert (kept["task"], kept["chatId"], kept["answers"]) == (TASK, ADA, [None, None])


async def test_tc02_tapping_a_button_advances_to_the_next_question(rig: Rig) -> None:
    first = await begin(rig)
    await rig.press(first, "As it needs to be")
    assert "Q2 of 2" in (await card(rig, 2)).text
    kept = session(rig)
    assert (kept["answers"][0], kept["currentQuestionIndex"]) == ("as-it-needs-to-be", 1)
    await rig.until(lambda _: not first.buttons)
    await rig.until(lambda _: first.text == "How big should the change be? → As it needs to be")


async def test_tc03_free_text_is_taken_where_it_is_allowed(rig: Rig) -> None:
    await rig.press(await begin(rig), "A rewrite")
    second = await card(rig, 2)
    assert second.button("✍️ Type your own")["callback_data"] == "iq:ft"
    await rig.say("custom answer")
    assert "You chose 'A rewrite'" in (await card(rig, 3)).text
    assert session(rig)["answers"] == ["a-rewrite", "custom answer", None]


async def test_tc04_text_is_refused_where_only_buttons_count(rig: Rig) -> None:
    await begin(rig)
    before = session(rig)
    await rig.say("something")
    await rig.sees_text("Please use the buttons to answer ☝️")
    assert session(rig) == before


async def test_tc05_back_returns_to_the_previous_question(rig: Rig) -> None:
    await rig.press(await begin(rig), "A rewrite")
    await rig.press(await card(rig, 2), "Speed")
    third = await card(rig, 3)
    await rig.press(third, "← Back")
    await card(rig, 2, after=third)
    kept = session(rig)
    assert (kept["currentQuestionIndex"], kept["answers"][2]) == (1, None)
    # The answer of the question that is left is cleared, and those before it stay.
    again = await card(rig, 2, after=third)
    await rig.press(again, "← Back")
    await card(rig, 1, after=again)
    kept = session(rig)
    assert kept["currentQuestionIndex"] == 0
    assert kept["answers"] == ["a-rewrite", None, None]


async def test_tc06_the_edit_menu_lists_all_questions(rig: Rig) -> None:
    ready = await answer_all(rig)
    await rig.press(ready, "✏️ Edit Answers")
    menu = await rig.sees(lambda m: "iq:eq:0" in data(m))
    assert data(menu) == ["iq:eq:0", "iq:eq:1", "iq:eq:2", "iq:back_summary", "iq:cancel"]
    await rig.press(menu, "Q2: What matters most?")
    await rig.press(await card(rig, 2, after=menu), "Simplicity")
    again = await summary(rig, after=menu)
    assert "What matters most? → Simplicity" in again.text
    assert session(rig)["answers"] == ["a-rewrite", "simplicity", "the-tests"]


async def test_tc07_confirm_saves_the_plan_and_starts_one_run(rig: Rig) -> None:
    ready = await answer_all(rig)
    assert data(ready) == ["iq:confirm", "iq:edit"]
    path = ".claude/todos/add-jwt-authentication/add-jwt-authentication.md"
    assert f"📁 Saved to: {path}" in ready.text
    kept = session(rig)
    await rig.press(ready, "✅ Confirm & Start")
    await rig.sees_text("🚀 Starting...")
    await rig.ending(ready)
    brief = (rig.cwd / path).read_text(encoding="utf-8")
    assert brief.startswith(f"# Plan: {TASK}\n\n**Created:** {kept['createdAt']}\n")
    assert f"**Session:** {kept['sessionId']}\n" in brief
    ((prompt,),) = rig.rows("SELECT prompt FROM runs")
    for question, answer in zip(
        kept["questions"], ("A rewrite", "Safety", "The tests"), strict=True
    ):
        assert f"Q: {question['question']}\nA: {answer}\n" in f"{prompt}\n"
        assert f"**Q: {question['question']}**\nA: {answer}\n" in brief
    await rig.until_so(lambda: not session_file(rig).exists())


async def test_second_tap_on_confirm_starts_nothing(rig: Rig) -> None:
    ready = await answer_all(rig)
    one = await rig.ada.press_data(ready, "iq:confirm")
    two = await rig.ada.press_data(ready, "iq:confirm")
    await one.answered(within_s=WITHIN_S)
    await two.answered(within_s=WITHIN_S)
    await rig.ending(ready)
    assert rig.rows("SELECT count(*) FROM runs") == [(1,)]


async def test_tc08_a_session_goes_on_after_a_kill_at_every_step(rig: Rig) -> None:
    async def kill() -> None:
        await rig.stop(signal.SIGKILL)
        await rig.start()

    first = await begin(rig)
    await kill()
    await rig.press(first, "A rewrite")
    second = await card(rig, 2)
    await kill()
    await rig.press(second, "Safety")
    third = await card(rig, 3)
    await kill()
    await rig.press(third, "Nothing")
    ready = await summary(rig)
    await kill()
    await rig.press(ready, "✅ Confirm & Start")
    await rig.ending(ready)
    assert rig.rows("SELECT count(*) FROM runs") == [(1,)]


async def test_tc08_a_card_that_was_never_sent_is_sent_after_the_next_start(rig: Rig) -> None:
    first = await begin(rig)
    await rig.until_so(
        lambda: rig.rows("SELECT 1 FROM outbox WHERE message_id = ?", first.id) != []
    )
    await rig.stop(signal.SIGKILL)
    # As if takopi had died between the file and the card.
    kept = session(rig) | {"currentQuestionIndex": 1, "answers": ["a-rewrite", None]}
    session_file(rig).write_text(json.dumps(kept | {"revision": 7}), encoding="utf-8")
    await rig.start()
    await rig.press(await card(rig, 2, after=first), "Speed")
    await card(rig, 3)
    late = await rig.ada.press_data(first, "iq:a:0:2")
    assert (await late.answered(within_s=WITHIN_S)).text == "This was decided already."


async def test_tc10_cancel_clears_the_session(rig: Rig) -> None:
    await rig.press(await begin(rig), "✖ Cancel")
    await rig.sees_text("❌ Planning cancelled.")
    await rig.until_so(lambda: not session_file(rig).exists())
    assert "hello" in (await rig.answer("hello")).text


async def test_tc09_two_people_of_a_group_have_interviews_of_their_own(rig: Rig) -> None:
    group = await start_with_group(rig)
    bob = rig.api.person(BOB)
    folder = rig.home / "sessions"
    files = {who: folder / f"{GROUP}-0-{who}-interactive.json" for who in (ADA, BOB)}

    async def question(task: str, number: int) -> Message:
        return await rig.sees(
            lambda m: (
                f"Planning: {task}" in m.text and f"Q{number} of" in m.text and bool(m.buttons)
            ),
            chat=group,
        )

    await rig.say("/plan of Ada", chat=group)
    first = await question("of Ada", 1)
    await bob.send(group, "/plan of Bob")
    other = await question("of Bob", 1)
    foreign = await bob.press(first, "A rewrite")
    said = await foreign.answered(within_s=WITHIN_S)
    assert said.text == "These questions are for somebody else."
    await rig.press(first, "A rewrite")
    await rig.press(await question("of Ada", 2), "Safety")
    await question("of Ada", 3)
    kept = {who: json.loads(file.read_text(encoding="utf-8")) for who, file in files.items()}
    assert kept[ADA]["answers"] == ["a-rewrite", "safety", None]
    assert (kept[BOB]["answers"], kept[BOB]["currentQuestionIndex"]) == ([None, None], 0)
    assert other.buttons


async def test_model_that_cannot_be_asked_ends_the_first_batch_with_a_message(rig: Rig) -> None:
    rig.configure('[oneshot]\nbackend = "api"')
    await rig.start()
    await rig.say(f"/plan {TASK}")
    await rig.sees_text("there is no API key")
    await rig.until_so(lambda: not session_file(rig).exists())


async def test_plan_keeps_its_project_and_branch(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(f'[projects.z80]\npath = "{repo}"')
    await rig.press(await begin(rig, "/plan /z80 @feat/x add auth"), "A rewrite")
    await rig.press(await card(rig, 2), "Safety")
    await rig.press(await card(rig, 3), "Nothing")
    ready = await summary(rig)
    await rig.press(ready, "✅ Confirm & Start")
    await rig.ending(ready)
    (brief,) = (repo / ".worktrees").rglob(".claude/todos/add-auth/add-auth.md")
    assert "**Branch:** feat/x\n" in brief.read_text(encoding="utf-8")
    assert rig.rows("SELECT project, branch FROM runs") == [("z80", "feat/x")]


@pytest.mark.parametrize("text", ["/plan", "/plan   ", "/plan /demo"])
async def test_tc12_plan_without_a_task_shows_the_usage(rig: Rig, text: str) -> None:
    await rig.start()
    await rig.say(text)
    await rig.sees_text("Usage: /plan <task description>")


async def test_damaged_file_is_set_aside_and_told(rig: Rig) -> None:
    session_file(rig).parent.mkdir(mode=0o700)
    session_file(rig).write_text("{", encoding="utf-8")
    await rig.start()
    await rig.sees_text(f"{ADA}-interactive.json.corrupt")
    aside = session_file(rig).with_name(f"{ADA}-interactive.json.corrupt")
    assert aside.read_text(encoding="utf-8") == "{"
    assert not session_file(rig).exists()


async def test_second_plan_asks_whether_to_go_on_or_start_over(rig: Rig) -> None:
    first = await begin(rig)
    await rig.say("/plan something else")
    offer = await rig.sees_text("This plan is not finished yet.")
    assert data(offer) == ["iq:continue", "iq:over"]
    await rig.press(offer, "Start over")
    assert "Planning: something else" in (await card(rig, 1, after=first)).text


async def test_interview_that_nobody_goes_on_with_expires(rig: Rig) -> None:
    rig.configure("interview.ttl_s = 2")
    await begin(rig)
    await rig.sees_text("Planning has expired")
    await rig.until_so(lambda: not session_file(rig).exists())


@pytest.mark.parametrize(
    "text",
    [
        "/z80 @feat/x /plan add auth",
        "@feat/x /plan /z80 add auth",
        "/plan @feat/x /z80 add auth",
        "/demo /plan@{bot} /z80 @feat/x add auth",
    ],
)
async def test_directives_stand_in_any_order_and_also_in_front_of_plan(rig: Rig, text: str) -> None:
    rig.configure(f'[projects.z80]\npath = "{rig.project("z80")}"')
    await begin(rig, text.format(bot=rig.api.bot.username))
    order = session(rig)["order"]
    assert order["task"] == "add auth"
    assert order["context"] == {"project": "z80", "branch": "feat/x"}


async def test_plan_of_another_bot_is_none_of_ours(rig: Rig) -> None:
    group = await start_with_group(rig)
    await rig.say("/z80 /plan@another_bot add auth", chat=group)
    await rig.until_settled(1)
    assert not list((rig.home / "sessions").glob("*-interactive.json"))


async def test_two_directives_of_a_kind_are_refused_around_plan_too(rig: Rig) -> None:
    rig.configure(f'[projects.z80]\npath = "{rig.project("z80")}"')
    await rig.start()
    await rig.say("@one /plan @two add auth")
    await rig.sees_text("@one and @two name 2 branches")
    assert not session_file(rig).exists()


async def test_topics_of_a_group_have_interviews_of_their_own(rig: Rig) -> None:
    group = await start_with_group(rig, forum=True)
    group.admins.add(ADA)
    one, two = [await rig.ada.open_topic(group, name) for name in ("one", "two")]
    for topic in (one, two):
        await rig.say(f"/plan of {topic.name}", chat=group, topic=topic)
    first = await rig.sees(lambda m: "of one" in m.text and "Q1 of" in m.text, chat=group)
    other = await rig.sees(lambda m: "of two" in m.text and "Q1 of" in m.text, chat=group)
    assert (first.topic, other.topic) == (one, two)

    await rig.press(first, "A rewrite")
    following = await rig.sees(lambda m: "of one" in m.text and "Q2 of" in m.text, chat=group)
    assert following.topic is one
    folder = rig.home / "sessions"
    kept = {
        topic.name: json.loads((folder / f"{GROUP}-{topic.id}-{ADA}-interactive.json").read_text())
        for topic in (one, two)
    }
    assert kept["one"]["answers"] == ["a-rewrite", None]
    assert kept["two"]["answers"] == [None, None]
