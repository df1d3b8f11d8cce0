"""The checklist of a plan in the chat: toggles, pages, previews, typed commands, who may press."""

from __future__ import annotations

from takopi.turns.plan import (
    Chat,
    Create,
    Edit,
    Execute,
    Invoke,
    Memo,
    Read,
    Research,
    Swap,
)
from takopi.turns.review import decode
from tests.botapi.chats import Message
from tests.e2e.rig import ADA, WITHIN_S, Rig
from tests.e2e.test_groups import BOB, GROUP, start_with_group
from tests.e2e.turns import begin, done, file_of, review, sessions, show, write_plan

HELLO = Create(path="hello.txt", content="Hello.\n")
SHOW = Execute(command="cat hello.txt", description="Show it.", env={"LANG": "C"})
MANY = tuple(Create(path=f"f{n}.txt", content=f"{n}\n") for n in range(1, 31))


async def labelled(rig: Rig, card: Message, label: str) -> str:
    """The button of the card that begins so, once it is there."""
    await rig.until(lambda _: any(each.startswith(label) for each in card.labels))
    return next(each for each in card.labels if each.startswith(label))


async def tap(rig: Rig, card: Message, label: str) -> str:
    return (await rig.press(card, await labelled(rig, card, label))).text


async def test_only_what_is_checked_is_carried_out(rig: Rig) -> None:
    memos = (Memo("+", "Use pnpm."), Memo("+", "Use make."))
    card = await show(rig, HELLO, Create(path="b.txt", content="b\n"), SHOW, memos=memos)
    await tap(rig, card, "Modify")
    await tap(rig, card, "✓ 2. Memo")
    await tap(rig, card, "✓ 4. CREATE")
    await rig.until(lambda _: "3 of 5 checked" in card.text)
    assert "[ ] 4. CREATE: b.txt" in card.text
    await tap(rig, card, "Confirm (3)")
    await done(rig, "3 Total / 2 Approved / 1 Skipped")
    assert (rig.cwd / "hello.txt").exists()
    assert not (rig.cwd / "b.txt").exists()
    assert (rig.cwd / ".teddy/memos.yaml").read_text() == "- Use pnpm.\n"


async def test_thirty_actions_are_chosen_over_pages(rig: Rig) -> None:
    card = await show(rig, *MANY)
    await tap(rig, card, "Modify")
    await tap(rig, card, "✓ 1. CREATE")
    for page in (2, 3, 4):
        await tap(rig, card, f"Page {page} →")
        await rig.until(lambda _, page=page: f"page {page} of 4" in card.text)
    await tap(rig, card, "✓ 30. CREATE")
    await rig.until(lambda _: "28 of 30 checked" in card.text)
    await tap(rig, card, "← Page 3")
    await tap(rig, card, "✓ 17. CREATE")
    await tap(rig, card, "Confirm (27)")
    await done(rig, "30 Total / 27 Approved / 3 Skipped")
    left = {f"f{n}.txt" for n in range(1, 31) if not (rig.cwd / f"f{n}.txt").exists()}
    assert left == {"f1.txt", "f17.txt", "f30.txt"}


async def test_select_all_selects_what_is_missing_and_else_nothing(rig: Rig) -> None:
    card = await show(rig, HELLO, SHOW)
    await tap(rig, card, "Modify")
    await tap(rig, card, "✓ 1.")
    await tap(rig, card, "Select all")
    await rig.until(lambda _: "2 of 2 checked" in card.text)
    await tap(rig, card, "Unselect all")
    assert await tap(rig, card, "Confirm (0)") == "Nothing is checked."
    await tap(rig, card, "Back")
    await labelled(rig, card, "Approve all")
    assert not (rig.cwd / "hello.txt").exists()


async def test_second_tap_on_a_toggle_does_not_take_it_back(rig: Rig) -> None:
    card = await show(rig, HELLO, SHOW)
    await tap(rig, card, "Modify")
    data = card.button(await labelled(rig, card, "✓ 1."))["callback_data"]
    taps = [await rig.ada.press_data(card, data) for _ in range(2)]
    for each in taps:
        await each.answered(within_s=WITHIN_S)
    ((state,),) = rig.rows("SELECT state FROM reviews")
    assert decode(state).actions == (1,)
    await rig.until(lambda _: "1 of 2 checked" in card.text)


async def test_confirm_of_a_selection_that_changed_meanwhile_is_refused(rig: Rig) -> None:
    card = await show(rig, HELLO, SHOW)
    await tap(rig, card, "Modify")
    old = card.button(await labelled(rig, card, "Confirm (2)"))["callback_data"]
    await tap(rig, card, "✓ 1.")
    await labelled(rig, card, "Confirm (1)")
    answered = await (await rig.ada.press_data(card, old)).answered(within_s=WITHIN_S)
    assert (answered.text, answered.alert) == ("The selection has changed: look at it again.", True)
    assert not (sessions(rig)[0] / "01/execution.jsonl").exists()


async def test_each_kind_of_action_has_a_preview(rig: Rig) -> None:
    session = await begin(rig)
    (rig.cwd / "known.txt").write_text("one\ntwo\nthree\n")
    (session / "01/turn.context").write_text("known.txt\n")
    write_plan(
        session,
        HELLO,
        Edit(path="known.txt", swaps=(Swap("two", "2"),), description="A digit."),
        SHOW,
        Research(queries=("what is two?",)),
        Read(path="known.txt"),
        Chat(text="That is all."),
        Invoke(agent="developer", text="Go on."),
        memos=(Memo("+", "Digits.", "Short."),),
    )
    await rig.say("/session execute")
    card = await review(rig)
    await tap(rig, card, "Modify")
    expected = {
        1: ["[+] Digits. # Short."],
        2: ["File Path: hello.txt", "Hello."],
        3: ["Description: A digit.", "-two\n+2"],
        4: ["cat hello.txt", "LANG=C", "Description: Show it."],
        5: ["what is two?"],
        6: ["Resource: known.txt", "one\ntwo\nthree"],
        7: ["That is all."],
        8: ["Agent: developer", "Go on."],
    }
    for number, parts in expected.items():
        await tap(rig, card, f"Preview {number}")
        await rig.until(
            lambda _, number=number, parts=parts: (
                card.text.startswith(f"[✓] {number}. ") and all(part in card.text for part in parts)
            )
        )
        await tap(rig, card, "Back to the list")


async def test_long_preview_is_cut_and_comes_whole_as_a_file(rig: Rig) -> None:
    content = "".join(f"line {n}\n" for n in range(2000))
    card = await show(rig, Create(path="src/long.py", content=content))
    await tap(rig, card, "Modify")
    await tap(rig, card, "Preview 1")
    await tap(rig, card, "As a file")
    sent = await rig.sees(lambda m: "document" in m.fields)
    assert file_of(rig, sent) == ("long.py", content)
    assert "line 1999" not in card.text
    assert await tap(rig, card, "As a file") == "It was sent before: look above."


async def test_command_that_was_typed_is_carried_out_and_noted(rig: Rig) -> None:
    card = await show(rig, HELLO, SHOW)
    text = (sessions(rig)[0] / "01/plan.md").read_text()
    await tap(rig, card, "Modify")
    await tap(rig, card, "Preview 2")
    await tap(rig, card, "Edit")
    await rig.until(lambda _: card.labels == ("Keep as it is",))
    await rig.say("cat hello.txt hello.txt")
    await rig.until(lambda _: "2. EXECUTE: cat hello.txt hello.txt *modified" in card.text)
    await tap(rig, card, "Back to the list")
    await rig.until(lambda _: "cat hello.txt hello.txt *modified" in card.text)
    await tap(rig, card, "Confirm (2)")
    await done(rig, "Hello.\nHello.", "*modified")
    report = (sessions(rig)[0] / "01/report.md").read_text()
    assert "*modified" in report
    assert (sessions(rig)[0] / "01/plan.md").read_text() == text
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]


async def test_reply_to_a_run_is_no_typed_command(rig: Rig) -> None:
    card = await show(rig, HELLO, SHOW)
    answer = await rig.answer("say: one")
    await tap(rig, card, "Modify")
    await tap(rig, card, "Preview 2")
    await tap(rig, card, "Edit")
    await rig.until(lambda _: card.labels == ("Keep as it is",))
    await rig.answer("say: two", to=answer)
    assert "modified" not in card.text
    await rig.say("true", to=card)
    await rig.until(lambda _: "2. EXECUTE: true *modified" in card.text)


async def test_only_admins_may_press_and_each_in_their_own_chat(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(
        f'allowed_user_ids = [{ADA}, {BOB}]\n[projects.z80]\npath = "{repo}"\nchat_id = {GROUP}'
    )
    bob = rig.api.person(BOB, "Bob")
    group = rig.api.supergroup(GROUP)
    group.admins.add(ADA)
    await rig.start()
    await bob.send(group, "/session new greet")
    await rig.sees_text("has begun", chat=group)
    await bob.send(group, "/session plan Hello there")
    card = await review(rig, chat=group)
    for label in card.labels:
        pressed = await (await bob.press(card, label)).answered(within_s=WITHIN_S)
        assert (pressed.text, pressed.alert) == ("Only admins of this chat may do that.", True)
    assert not (repo / "demo").exists()
    assert list(repo.glob(".teddy/*/01/report.md")) == []
    elsewhere = await rig.reply(await rig.say("/session"), "Use")
    data = card.button("Approve all")["callback_data"]
    foreign = await (await rig.ada.press_data(elsewhere, data)).answered(within_s=WITHIN_S)
    assert foreign.text == "This button belongs to another chat."
    await rig.press(card, "Approve all")
    await done(rig, "SUCCESS", chat=group)
    assert (repo / "demo/hello-1.txt").exists()


async def test_text_of_somebody_else_is_not_what_a_card_waits_for(rig: Rig) -> None:
    group = await start_with_group(rig)
    group.admins.add(ADA)
    bob = rig.api.person(BOB)
    await rig.say("/session new greet", chat=group)
    await rig.sees_text("has begun", chat=group)
    await rig.say("/session plan Hello there", chat=group)
    card = await review(rig, chat=group)
    await rig.press(card, "Skip")
    await rig.until(lambda _: card.labels == ("Keep this plan",), chat=group)
    await rig.ending(await bob.send(group, "say: of Bob", reply_to=card))
    assert card.labels == ("Keep this plan",)
    await rig.say("Of Ada", chat=group, to=card)
    await review(rig, chat=group, after=card)
    assert rig.rows("SELECT prompt FROM runs") == [("say: of Bob",)]


async def test_directives_choose_the_folder_of_a_session(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(f'[projects.z80]\npath = "{repo}"\n')
    await rig.start()
    await rig.reply(await rig.say("/z80 @feat /session new greet"), "has begun")
    await rig.say("/session plan /z80 @feat Hello")
    card = await review(rig)
    assert card.text.endswith("ctx: z80 @ feat")
    await rig.press(card, "Approve all")
    await done(rig, "SUCCESS")
    assert (repo / ".worktrees/feat/demo/hello-1.txt").exists()
    assert not (repo / ".teddy").exists()
    await rig.reply(await rig.say("/session status"), "there is no session here yet")
