"""/session against the whole daemon: a plan, a decision on its card, a report."""

from __future__ import annotations

from takopi.turns.plan import Chat, Create, Execute, Memo, Plan
from takopi.turns.render import render
from tests.e2e.rig import WITHIN_S, Rig
from tests.e2e.turns import (
    begin,
    done,
    file_of,
    plan,
    review,
    sessions,
    show,
    turns,
    write_plan,
)
from tests.model.script import Fail, Hang, Rule, Say
from tests.model.server import serve_model

HELLO = Create(path="hello.txt", content="Hello.\n")
BAD = render(Plan(title="Bad", rationale="Why.", actions=(Execute(command="true", cwd="/tmp"),)))
GOOD = render(Plan(title="Good", rationale="Why.", actions=(HELLO,)))


def by_api(rig: Rig, base_url: str) -> None:
    key = rig.folder / "key"
    key.touch(0o600)
    key.write_text("sk-of-the-tests\n")
    rig.configure(
        f'oneshot.backend = "api"\noneshot.base_url = "{base_url}"\n'
        f'oneshot.api_key_file = "{key}"\n'
    )


async def test_approved_plan_is_carried_out_and_reported(rig: Rig) -> None:
    card = await plan(rig)
    (session,) = sessions(rig)
    assert card.text == (
        '▶ Reviewing Plan: "Say hello, number 1"\n\nAction Plan:\n- CREATE: 1 file\n'
        "- EXECUTE: 1 command\n- READ: 1 resource\n- CHAT_WITH_USER: 1 message\n\n"
        f"{session.name}/01"
    )
    assert not (rig.cwd / "demo").exists()
    await rig.press(card, "Approve all")
    report = await done(rig, "SUCCESS", "4 Succeeded / 0 Failed", "Hello there")
    assert (rig.cwd / "demo/hello-1.txt").read_text() == "Hello there\n"
    assert (session / "01/report.md").is_file()
    assert f"{session.name}/01" in report.text
    await rig.until(lambda _: not card.buttons and "Carried out" in card.text)
    await rig.until(lambda chat: not any("Planning…" in m.text for m in chat.bot_messages))


async def test_second_tap_on_approve_carries_nothing_out(rig: Rig) -> None:
    card = await plan(rig)
    data = card.button("Approve all")["callback_data"]
    first = await rig.ada.press_data(card, data)
    second = await rig.ada.press_data(card, data)
    assert not (await first.answered(within_s=WITHIN_S)).text
    assert (await second.answered(within_s=WITHIN_S)).text == "This was decided already."
    await done(rig, "SUCCESS")
    assert turns(rig) == ["01", "02"]
    third = await rig.ada.press_data(card, data)
    assert (await third.answered(within_s=WITHIN_S)).text == "This was decided already."


async def test_card_names_memos_and_counts_actions_of_a_kind(rig: Rig) -> None:
    memos = (Memo("+", "Use pnpm.", "A convention."),)
    other = Create(path="other.txt", content="Other.\n")
    card = await show(rig, HELLO, other, memos=memos)
    assert "memos.yaml:\n[+] ADD: Use pnpm. # A convention." in card.text
    assert "- CREATE: 2 files" in card.text
    await rig.press(card, "Approve all")
    await done(rig, "SUCCESS")
    assert "Use pnpm." in (rig.cwd / ".teddy/memos.yaml").read_text()


async def test_review_sends_the_plan_to_the_letter_and_only_once(rig: Rig) -> None:
    card = await show(rig, HELLO)
    text = (sessions(rig)[0] / "01/plan.md").read_text()
    await rig.press(card, "Review")
    sent = await rig.reply(card, "plan.md")
    assert sent.text == f"plan.md\n\n{text.rstrip()}"
    assert "look above" in (await rig.press(card, "Review")).text


async def test_review_of_a_long_plan_is_a_file(rig: Rig) -> None:
    card = await show(rig, Create(path="long.txt", content="A line.\n" * 1000))
    await rig.press(card, "Review")
    sent = await rig.sees(lambda m: "document" in m.fields)
    assert file_of(rig, sent) == ("plan.md", (sessions(rig)[0] / "01/plan.md").read_text())


async def test_long_report_is_summed_up_and_comes_as_a_file(rig: Rig) -> None:
    words = Chat(text="Nothing else.")
    card = await show(rig, HELLO, Execute(command="seq 3000"), words)
    await rig.press(card, "Approve all")
    report = await done(rig, "1. CREATE: hello.txt: SUCCESS", "2. EXECUTE: seq 3000: SUCCESS")
    assert report.text.startswith("Execution Report: Of the test")
    assert "3 Succeeded / 0 Failed" in report.text
    assert "Nothing else." in report.text
    sent = await rig.sees(lambda m: "document" in m.fields)
    assert file_of(rig, sent) == ("report.md", (sessions(rig)[0] / "01/report.md").read_text())


async def test_plan_that_changed_after_it_was_shown_is_refused_and_shown_anew(rig: Rig) -> None:
    card = await show(rig, HELLO)
    (session,) = sessions(rig)
    write_plan(session, Create(path="other.txt", content="Other.\n"))
    answered = await rig.press(card, "Approve all")
    assert (answered.text, answered.alert) == ("The plan has changed since it was shown.", True)
    fresh = await review(rig, after=card)
    assert not (rig.cwd / "hello.txt").exists()
    assert not (rig.cwd / "other.txt").exists()
    await rig.press(fresh, "Approve all")
    await done(rig, "SUCCESS")
    assert (rig.cwd / "other.txt").exists()


async def test_plan_that_no_longer_fits_is_made_again_and_only_when_it_is_approved(
    rig: Rig,
) -> None:
    card = await plan(rig)
    (rig.cwd / "demo").mkdir()
    (rig.cwd / "demo/hello-1.txt").write_text("Somebody was faster.\n")
    await rig.press(card, "Modify")
    await rig.until(lambda _: "Confirm (4)" in card.labels)
    answered = await rig.press(card, "Confirm (4)")
    assert (answered.text, answered.alert) == (
        "The plan no longer fits the project: another is made.",
        True,
    )
    await rig.sees_text("The plan of turn 01 failed its checks.", "demo/hello-1.txt")
    assert (rig.cwd / "demo/hello-1.txt").read_text() == "Somebody was faster.\n"
    assert not (sessions(rig)[0] / "01/execution.jsonl").exists()


async def test_plan_that_somebody_skipped_elsewhere_makes_room_for_the_next(rig: Rig) -> None:
    card = await plan(rig)
    (session,) = sessions(rig)
    (session / "01/report.md").write_text("# Execution Report: skipped\n")
    assert "has changed" in (await rig.press(card, "Approve all")).text
    waiting = await rig.sees(lambda m: m.labels == ("Next turn",))
    assert waiting.text == f"Turn 02 has no plan yet.\n\n{session.name}/02"
    await rig.press(waiting, "Next turn")
    await rig.until(lambda _: "Reply with what turn 02 shall do." in waiting.text)
    await rig.say("Something")
    assert (await review(rig, after=waiting)).text.endswith(f"{session.name}/02")
    assert not (rig.cwd / "demo").exists()


async def test_quit_writes_nothing_and_leaves_nothing_to_press(rig: Rig) -> None:
    card = await plan(rig)
    (session,) = sessions(rig)
    before = sorted(path.name for path in (session / "01").iterdir())
    await rig.press(card, "Quit")
    await rig.until(lambda _: not card.buttons and "nothing was carried out" in card.text)
    assert sorted(path.name for path in (session / "01").iterdir()) == before
    assert turns(rig) == ["01"]
    assert not (rig.cwd / "demo").exists()
    await rig.say("/session resume")
    assert (await review(rig, after=card)).text.startswith("▶ Reviewing Plan")


async def test_skip_asks_what_is_wanted_instead_and_plans_the_next_turn(rig: Rig) -> None:
    card = await plan(rig)
    await rig.press(card, "Skip")
    await rig.until(lambda _: card.labels == ("Keep this plan",))
    await rig.say("Something else")
    second = await review(rig, after=card)
    (session,) = sessions(rig)
    assert second.text.endswith(f"{session.name}/02")
    assert "SKIPPED" in (session / "01/report.md").read_text()
    assert "Something else" in (session / "02/plan.md").read_text()
    assert not (rig.cwd / "demo").exists()
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]


async def test_plan_that_was_to_be_skipped_can_be_kept(rig: Rig) -> None:
    card = await plan(rig)
    await rig.press(card, "Skip")
    await rig.until(lambda _: card.labels == ("Keep this plan",))
    await rig.press(card, "Keep this plan")
    await rig.until(lambda _: "Approve all" in card.labels)
    await rig.answer("say: a run")
    assert turns(rig) == ["01"]


async def test_next_turn_is_planned_with_what_is_typed_after_the_report(rig: Rig) -> None:
    card = await plan(rig)
    await rig.press(card, "Approve all")
    report = await done(rig, "SUCCESS")
    await rig.press(report, "Next turn")
    await rig.until(lambda _: report.labels == ("Not now",))
    assert "Reply with what the next turn shall do." in report.text
    await rig.say("And more")
    second = await review(rig, after=report)
    assert 'Reviewing Plan: "Say hello, number 2"' in second.text
    assert "And more" in (sessions(rig)[0] / "02/plan.md").read_text()


async def test_resume_asks_what_to_plan_where_there_is_no_plan(rig: Rig) -> None:
    await begin(rig)
    await rig.say("/session resume")
    await rig.sees_text("Reply with what turn 01 shall do.")
    await rig.say("Hello")
    await review(rig)


async def test_status_says_where_the_session_stands(rig: Rig) -> None:
    session = await begin(rig)
    await rig.reply(
        await rig.say("/session status"), f"{session.name}: turn 01", "waits for a plan"
    )
    write_plan(session, HELLO)
    await rig.reply(await rig.say("/session status"), "turn 01", "has a plan that waits")


async def test_what_cannot_be_done_is_answered_with_the_way_out(rig: Rig) -> None:
    await rig.start()
    for words in ("plan Hello", "execute", "resume", "status"):
        said = await rig.say(f"/session {words}")
        await rig.reply(said, "there is no session here yet", "begin one: /session new <name>")
    await rig.reply(await rig.say("/session"), "Use /session new <name>")
    await rig.reply(await rig.say("/session dance"), "cannot do that: dance", "use /session")
    await rig.reply(await rig.say("/session plan"), "/session plan cannot be said like this")
    await rig.reply(await rig.say("/session new A b"), "cannot name a session")
    await rig.reply(await rig.say("/session new one"), "has begun")
    await rig.reply(
        await rig.say("/session execute"), "turn 01 has no plan", "/session plan <text>"
    )
    await rig.reply(await rig.say("/session new one"), "there is a session")


async def test_plan_that_fails_its_checks_is_made_again(rig: Rig) -> None:
    script = [Rule("failed validation", Say(GOOD)), Rule("Hello", Say(BAD))]
    async with serve_model(script) as model:
        by_api(rig, model.base_url)
        card = await plan(rig, "Hello")
    told = await rig.sees_text("The plan of turn 01 failed its checks.", "A corrected one")
    assert "EXECUTE" in told.text
    assert '"Good"' in card.text
    assert turns(rig) == ["01", "02"]
    assert "VALIDATION FAILED" in (sessions(rig)[0] / "01/report.md").read_text()


async def test_plans_that_fail_again_and_again_are_given_up(rig: Rig) -> None:
    async with serve_model([Rule("", Say(BAD))]) as model:
        by_api(rig, model.base_url)
        await begin(rig)
        await rig.say("/session plan Hello")
        failed = await rig.sees(lambda m: "Try again" in m.labels)
        assert "4 plans in a row failed their checks" in failed.text
        assert len(model.conversations) == 4
        await rig.press(failed, "Quit")
        await rig.until(lambda _: not failed.buttons)
    assert turns(rig) == ["01", "02", "03", "04", "05"]


async def test_model_that_cannot_be_reached_is_asked_again_by_a_press(rig: Rig) -> None:
    script = [Rule("Hello", Fail(400, "scripted"), times=1), Rule("Hello", Say(GOOD))]
    async with serve_model(script) as model:
        by_api(rig, model.base_url)
        await begin(rig)
        await rig.say("/session plan Hello")
        failed = await rig.sees(lambda m: "Try again" in m.labels)
        assert failed.text.startswith("There is no plan.")
        await rig.press(failed, "Try again")
        await review(rig, after=failed)


async def test_one_plan_at_a_time_is_made_in_a_folder_and_the_chat_goes_on(rig: Rig) -> None:
    async with serve_model([Rule("", Hang())]) as model:
        by_api(rig, model.base_url)
        await begin(rig)
        await rig.say("/session plan Hello")
        planning = await rig.sees_text("Planning…", "Hello")
        for words in ("plan Again", "execute", "resume", "new other"):
            await rig.reply(await rig.say(f"/session {words}"), "turn 01 of", "is being planned")
        await rig.reply(await rig.say("/session status"), "is being planned")
        await rig.answer("say: meanwhile")
        await rig.press(planning, "Cancel")
        await rig.sees_text("Planning was cancelled.")
    await rig.reply(await rig.say("/session status"), "waits for a plan")
