from __future__ import annotations

import signal

import pytest

from tests.botapi.chats import Message
from tests.botapi.faults import Held
from tests.e2e.rig import Rig

APPROVAL = "ask approval to run touch made"


async def ask(rig: Rig, text: str, *, to: Message | None = None) -> tuple[Message, Message]:
    """Send a prompt that needs a person; the prompt, and the card that asks."""
    prompt = await rig.say(text, to=to)
    return prompt, await rig.sees(
        lambda m: m.reply_to is prompt and not m.silent and bool(m.labels or "asks" in m.text)
    )


async def test_approval_shows_what_is_to_be_done(rig: Rig) -> None:
    await rig.start()

    prompt, card = await ask(rig, APPROVAL)

    assert card.text.splitlines()[:2] == ["demo wants to use run", "touch made"]
    assert card.text.splitlines()[-1].startswith("demo --resume ")
    assert card.buttons == (
        ("Allow once",),
        ("Allow for this thread",),
        ("Deny", "Deny with a reason"),
    )
    await rig.progress(prompt, "waiting for you · demo")
    assert not (rig.cwd / "made").exists()


async def test_allow_once_lets_it_happen_and_the_card_says_so(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)

    await rig.press(card, "Allow once")

    await rig.ending(prompt)
    assert (rig.cwd / "made").exists()
    await rig.until(lambda _: card.text.endswith("allowed once"))
    assert card.labels == ()


async def test_allow_once_asks_again_the_next_time(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)
    await rig.press(card, "Allow once")
    answer = await rig.ending(prompt)

    _, again = await ask(rig, APPROVAL, to=answer)

    assert "demo wants to use run" in again.text


async def test_allow_for_this_thread_asks_no_more(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)
    await rig.press(card, "Allow for this thread")
    answer = await rig.ending(prompt)
    (rig.cwd / "made").unlink()

    await rig.answer(APPROVAL, to=answer)

    assert (rig.cwd / "made").exists()
    await rig.until(lambda _: card.text.endswith("allowed for this thread"))


async def test_deny_is_told_to_the_engine(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)

    await rig.press(card, "Deny")

    assert "because you said no" in (await rig.ending(prompt)).text
    assert not (rig.cwd / "made").exists()
    await rig.until(lambda _: card.text.endswith("denied"))


async def test_reason_of_a_denial_is_typed_as_a_reply(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)

    await rig.press(card, "Deny with a reason")
    await rig.until(lambda _: "Reply to this message with the reason." in card.text)
    await rig.say("use another name", to=card)

    assert "because you said no: use another name" in (await rig.ending(prompt)).text
    await rig.until(lambda _: card.text.endswith("denied: use another name"))
    assert len(rig.rows("SELECT id FROM runs")) == 1


async def test_two_presses_decide_once(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)
    data = {label: card.button(label)["callback_data"] for label in card.labels}

    presses = [
        await rig.ada.press_data(card, data[label]) for label in ("Deny", "Allow once", "Deny")
    ]
    answers = [await press.answered() for press in presses]

    assert "because you said no" in (await rig.ending(prompt)).text
    assert not (rig.cwd / "made").exists()
    assert [answer.text for answer in answers[1:]] == ["This was decided already."] * 2


async def test_single_choice_is_answered_by_its_button(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, "ask question")
    assert card.labels == ("Blue", "Green", "Red")

    await rig.press(card, "Green")

    assert "Which colour should it be? You said: Green" in (await rig.ending(prompt)).text
    await rig.until(lambda _: card.text.endswith("Green") and not card.labels)


async def test_several_choices_are_collected_until_done(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, "ask several")
    assert card.labels == ("Docs", "Tests", "Examples", "Done")

    await rig.press(card, "Docs")
    await rig.until(lambda _: "✓ Docs" in card.labels)
    await rig.press(card, "Examples")
    await rig.until(lambda _: "✓ Examples" in card.labels)
    await rig.press(card, "✓ Docs")
    await rig.until(lambda _: "Docs" in card.labels)
    await rig.press(card, "Tests")
    await rig.until(lambda _: "✓ Tests" in card.labels)
    await rig.press(card, "Done")

    assert "You said: Examples, Tests" in (await rig.ending(prompt)).text


async def test_two_questions_are_asked_one_after_the_other_on_one_card(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, "ask two")
    assert card.text.startswith("demo asks (1 of 2): Colour")

    await rig.press(card, "Red")
    await rig.until(lambda _: card.text.startswith("demo asks (2 of 2): Parts"))
    await rig.press(card, "Tests")
    await rig.until(lambda _: "✓ Tests" in card.labels)
    await rig.press(card, "Done")

    answer = await rig.ending(prompt)
    assert "Which colour should it be? You said: Red" in answer.text
    assert "Which parts should it have? You said: Tests" in answer.text


@pytest.mark.parametrize("word", ["ask text", "ask question"])
async def test_question_is_answered_by_a_typed_reply(rig: Rig, word: str) -> None:
    await rig.start()
    prompt, card = await ask(rig, word)

    await rig.say("Octavia, please", to=card)

    assert "You said: Octavia, please" in (await rig.ending(prompt)).text
    await rig.until(lambda _: card.text.endswith("Octavia, please"))
    assert len(rig.rows("SELECT id FROM runs")) == 1


async def test_reply_to_a_question_that_has_just_arrived_waits_until_it_is_known(rig: Rig) -> None:
    await rig.start()
    prompt = await rig.say("think 1s, ask text")
    await rig.progress(prompt)
    held = Held()
    rig.api.fail(held, method="sendMessage", applied=True)
    card = await rig.reply(prompt, "demo asks")

    await rig.say("Octavia, please", to=card)
    await rig.until_confirmed()
    held.until.set()

    assert "You said: Octavia, please" in (await rig.ending(prompt)).text


async def test_plan_is_approved(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, "propose plan")
    assert card.text.startswith("demo proposes a plan")
    assert card.labels == ("Approve", "Revise")

    await rig.press(card, "Approve")

    assert "The plan was approved, and I carried it out." in (await rig.ending(prompt)).text
    await rig.until(lambda _: card.text.endswith("approved") and not card.labels)


async def test_plan_is_revised_by_a_reply_and_asked_again(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, "propose plan")

    await rig.press(card, "Revise")
    await rig.until(lambda _: "Reply to this message with what should change." in card.text)
    await rig.say("be brief", to=card)
    again = await rig.sees(lambda m: "Changes you asked for" in m.text)

    assert "be brief" in again.text
    assert "Approve" in again.labels
    await rig.until(lambda _: card.text.endswith("to be revised: be brief"))
    await rig.press(again, "Approve")
    assert "approved after 1 revision" in (await rig.ending(prompt)).text


async def test_ask_that_nobody_answers_is_denied_and_says_so(rig: Rig) -> None:
    rig.configure("[limits]\nask_s = 1")
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)

    answer = await rig.ending(prompt)

    assert not (rig.cwd / "made").exists()
    assert "because you said no" not in answer.text or "nobody" in answer.text
    await rig.until(lambda _: card.text.endswith("denied: nobody answered") and not card.labels)


async def test_question_that_the_engine_takes_back_is_no_longer_needed(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, "ask briefly 1s")

    assert "I took my question back." in (await rig.ending(prompt)).text
    await rig.until(lambda _: card.text.endswith("no longer needed") and not card.labels)


async def test_ask_of_a_cancelled_run_is_no_longer_needed(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)

    await rig.press(await rig.progress(prompt, "waiting for you"), "Cancel")

    await rig.ending(prompt, "cancelled")
    await rig.until(lambda _: card.text.endswith("no longer needed") and not card.labels)


async def test_ask_that_was_open_at_a_crash_expires_with_its_run(rig: Rig) -> None:
    await rig.start()
    prompt, card = await ask(rig, APPROVAL)
    data = card.button("Allow once")["callback_data"]
    sent = "SELECT state FROM outbox WHERE kind = 'question'"
    await rig.until_so(lambda: rig.rows(sent) == [("sent",)])
    await rig.stop(signal.SIGKILL)

    await rig.start()

    await rig.ending(prompt, "interrupted")
    await rig.until(lambda _: card.text.endswith("expired with its run") and not card.labels)
    late = await (await rig.ada.press_data(card, data)).answered()
    assert late.text
    assert not (rig.cwd / "made").exists()


async def test_ask_that_was_on_its_way_at_a_crash_is_not_asked_again(rig: Rig) -> None:
    await rig.start()
    prompt, first = await ask(rig, f"ask question, {APPROVAL}")
    # The chat has the second card, and takopi will never know.
    rig.api.fail(Held(), method="sendMessage")
    await rig.press(first, "Blue")
    card = await rig.reply(prompt, "wants to use run")
    await rig.stop(signal.SIGKILL)

    await rig.start()

    await rig.ending(prompt, "interrupted")
    late = await rig.press(card, "Allow once")
    assert late.text == "This was decided already."
    await rig.until(lambda _: not card.labels)
    assert [m for m in rig.chat.bot_messages if "wants to use run" in m.text] == [card]
    assert not (rig.cwd / "made").exists()


async def test_waiting_for_a_person_is_not_silence(rig: Rig) -> None:
    rig.configure("[limits]\nidle_s = 1\nask_s = 3")
    await rig.start()
    prompt, _ = await ask(rig, APPROVAL)

    await rig.ending(prompt)

    assert not any("has said nothing" in m.text for m in rig.chat.everything)
