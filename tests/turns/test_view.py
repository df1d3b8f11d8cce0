"""How a plan reads in a chat, whatever is in it, and what a press makes of a review."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takopi.core.outgoing import Card
from takopi.present.units import length
from takopi.turns.buttons import REVIEW, ReviewPress, Verb
from takopi.turns.grammar import Malformed, parse
from takopi.turns.journal import Past
from takopi.turns.machine import everything
from takopi.turns.outcome import Outcome
from takopi.turns.plan import Chat, Create, Edit, Execute, Memo, Plan, Read, Research, Swap
from takopi.turns.preview import preview
from takopi.turns.render import render
from takopi.turns.review import (
    MOVED_ON,
    NOTHING,
    PAGE_ITEMS,
    TOO_LATE,
    Review,
    apply,
    approval,
    choice_of,
    decode,
    encode,
    opened,
    typed,
)
from takopi.turns.view import (
    PREVIEW_UNITS,
    Face,
    done_card,
    interrupted_card,
    invalid_card,
    planning_card,
    review_card,
    whole,
)
from tests.turns.plans import plans

ADA = 1001
ROOM = 4000
RUN = Execute(command="make", cwd="src", env={"A": "b"})
PLAN = Plan(
    title="Two things",
    rationale="Why.",
    memos=(Memo("+", "Use pnpm."),),
    actions=(Create(path="a/b.txt", content="Hello.\n"), RUN),
)


def new(plan: Plan = PLAN) -> Review:
    return opened(Review(stage="planning", session="20260101-x", turn="01"), plan, "digest")


def after(review: Review, *presses: tuple[Verb, int], plan: Plan = PLAN) -> Review:
    for what, item in presses:
        step = apply(review, _press(review, what, item), plan=plan, user_id=ADA)
        assert step.effect == "show", what
        review = step.review
    return review


def _press(review: Review, what: Verb, item: int = 0) -> ReviewPress:
    return ReviewPress(7, review.step, what, item)


def draw(review: Review, plan: Plan = PLAN, root: Path = Path("/nowhere")) -> Card:
    shown = None
    if review.shown == "item":
        shown = preview(root, plan, choice_of(review, plan), item=review.item)
    return review_card(Face(7, review, ROOM), plan, preview=shown)


def presses(card: Card) -> list[ReviewPress]:
    found = [REVIEW.decode(button.data) for row in card.buttons for button in row]
    assert all(press is not None for press in found)
    return [press for press in found if press is not None]


def test_summary_reads_as_the_terminal_says_it() -> None:
    assert draw(new()).text.text == (
        '▶ Reviewing Plan: "Two things"\n\nmemos.yaml:\n[+] ADD: Use pnpm.\n\n'
        "Action Plan:\n- CREATE: 1 file\n- EXECUTE: 1 command\n\n20260101-x/01"
    )


def test_changed_action_is_tagged_wherever_the_plan_is_shown() -> None:
    waiting = after(new(), ("modify", 0), ("preview", 2), ("edit", 2))
    step = typed(waiting, " make all ", plan=PLAN)
    assert "3. EXECUTE: make all *modified" in draw(step.review).text.text
    listed = after(step.review, ("list", 0))
    assert "[✓] 3. EXECUTE: make all *modified" in draw(listed).text.text
    assert "*modified: 3" in draw(after(listed, ("back", 0))).text.text
    assert choice_of(listed, PLAN).edits == {
        1: Execute(command="make all", cwd="src", env={"A": "b"})
    }


def test_text_that_is_the_proposed_one_is_no_change() -> None:
    waiting = after(new(), ("preview", 2), ("edit", 2))
    changed = typed(waiting, "make all", plan=PLAN).review
    again = after(changed, ("edit", 2))
    assert typed(again, "make", plan=PLAN).review.words == {}


def test_only_the_text_of_a_command_or_one_question_can_be_typed() -> None:
    actions = (
        Create(path="a", content="a\n"),
        RUN,
        Research(queries=("one",)),
        Research(queries=("one", "two")),
        Read(path="a"),
        Chat(text="Hello."),
    )
    plan = Plan(title="All", rationale="Why.", actions=actions)
    review = new(plan)
    can = [
        apply(review, _press(review, "edit", item), plan=plan, user_id=ADA).effect == "show"
        for item in range(len(actions))
    ]
    assert can == [False, True, True, False, False, False]


def test_preview_of_a_command_shows_where_and_with_what_it_runs() -> None:
    text = draw(after(new(), ("preview", 2))).text.text
    assert "cwd: src" in text
    assert "A=b" in text
    assert "make" in text


HIDDEN = "\u202e\u2066\u200b"


@pytest.mark.parametrize(
    "plan",
    [
        Plan(title=HIDDEN, rationale="Why.", actions=(Execute(command=f"a\n{HIDDEN}b"),)),
        Plan(title="Key", rationale="Why.", actions=(Execute(command="a", description=HIDDEN),)),
        Plan(title="File", rationale="Why.", actions=(Create(path=HIDDEN, content=HIDDEN),)),
        Plan(title="Memo", rationale="Why.", memos=(Memo("+", HIDDEN),), actions=(RUN,)),
    ],
    ids=["command", "key", "file", "memo"],
)
def test_nothing_on_a_card_can_hide_or_reorder_what_is_approved(plan: Plan) -> None:
    for shown in [("modify", 0), ("preview", 0), ("back", 0)]:
        card = draw(after(new(plan), shown, plan=plan), plan)  # pyright: ignore[reportArgumentType] all are verbs
        assert not set(HIDDEN) & set(card.text.text)
    first = draw(after(new(plan), ("preview", 0), plan=plan), plan)
    assert "\\u202e\\u2066\\u200b" in first.text.text


def test_long_description_hides_nothing_of_how_a_command_runs() -> None:
    run = Execute(
        command="make test",
        description="Runs the tests. " * 40,
        cwd="sub",
        env={"LD_PRELOAD": "/tmp/x.so"},
        timeout_s=7,
    )
    plan = Plan(title="Runs", rationale="Why.", actions=(run,))
    card = draw(after(new(plan), ("preview", 0), plan=plan), plan)
    assert "cwd: sub\nenv:\n  - LD_PRELOAD=/tmp/x.so\nTimeout: 7\n" in card.text.text
    assert "Cut here: the whole comes as a file." in card.text.text
    assert "file" in {press.what for press in presses(card)}


def test_file_of_an_item_whose_keys_were_cut_has_them_whole() -> None:
    env = {f"NAME_{n}": "value" for n in range(100)}
    plan = Plan(title="Runs", rationale="Why.", actions=(Execute(command="make", env=env),))
    shown = preview(Path("/nowhere"), plan, everything(plan), item=0)
    assert "NAME_99=value" not in draw(after(new(plan), ("preview", 0), plan=plan), plan).text.text
    assert "NAME_99=value" in whole(shown)
    assert whole(shown).endswith("\n\nmake")


def test_preview_of_an_edit_sees_what_earlier_actions_do(tmp_path: Path) -> None:
    plan = Plan(
        title="Edits",
        rationale="Why.",
        actions=(
            Create(path="a.txt", content="one\ntwo\n"),
            Edit(path="a.txt", swaps=(Swap("two", "2"),)),
        ),
    )
    assert "-two\n+2" in preview(tmp_path, plan, everything(plan), item=1).text


def test_preview_of_a_link_that_leads_out_shows_nothing_of_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret words")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(secret)
    plan = Plan(title="Reads", rationale="Why.", actions=(Read(path="link"),))
    assert "secret words" not in preview(root, plan, everything(plan), item=0).text


@pytest.mark.parametrize("count", [1, PAGE_ITEMS, PAGE_ITEMS + 1, 30, 100])
def test_every_item_is_on_one_page_and_every_page_can_be_reached(count: int) -> None:
    actions = tuple(Create(path=f"f{n}", content="x\n") for n in range(count))
    plan = Plan(title="Many", rationale="Why.", actions=actions)
    review = after(new(plan), ("modify", 0), plan=plan)
    seen: list[int] = []
    while True:
        card = draw(review, plan)
        seen += [press.item for press in presses(card) if press.what == "uncheck"]
        on = [p for p in presses(card) if p.what == "page" and p.item > review.page]
        if not on:
            break
        review = after(review, ("page", on[0].item), plan=plan)
    assert seen == list(range(count))


def test_select_all_selects_while_anything_is_missing_and_else_unselects() -> None:
    review = after(new(), ("modify", 0), ("uncheck", 0))
    assert "all" in {press.what for press in presses(draw(review))}
    review = after(review, ("all", 0))
    assert (review.memos, review.actions) == ((0,), (0, 1))
    assert "none" in {press.what for press in presses(draw(review))}
    review = after(review, ("none", 0))
    assert (review.memos, review.actions) == ((), ())
    step = apply(review, _press(review, "confirm"), plan=PLAN, user_id=ADA)
    assert (step.effect, step.note) == (None, NOTHING)


def test_same_toggle_twice_is_once() -> None:
    once = after(new(), ("uncheck", 1))
    assert after(once, ("uncheck", 1)) == once


@pytest.mark.parametrize("what", ["approve", "confirm", "skip", "quit"])
def test_decision_counts_only_for_what_was_shown(what: Verb) -> None:
    review = new()
    old = _press(review, what)
    changed = after(review, ("uncheck", 1))
    step = apply(changed, old, plan=PLAN, user_id=ADA)
    assert (step.review, step.effect, step.note) == (changed, "show", MOVED_ON)


def test_approve_all_carries_out_everything_as_it_was_changed() -> None:
    review = typed(after(new(), ("uncheck", 1), ("edit", 2)), "make all", plan=PLAN).review
    assert approval(review, PLAN, "confirm").actions == frozenset({1})
    choice = approval(review, PLAN, "approve")
    assert (choice.memos, choice.actions) == (frozenset({0}), frozenset({0, 1}))
    assert choice.edits == {1: Execute(command="make all", cwd="src", env={"A": "b"})}


@pytest.mark.parametrize("stage", ["planning", "executing", "interrupted", "done", "failed"])
def test_button_of_another_stage_does_nothing(stage: str) -> None:
    review = decode(encode(new()))
    review = Review(stage=stage, session="s", turn="01", step=review.step)  # pyright: ignore[reportArgumentType] any of them
    step = apply(review, _press(review, "approve"), plan=PLAN, user_id=ADA)
    assert (step.effect, step.note) == (None, TOO_LATE)


@given(st.data())
def test_forged_press_never_fails_and_leaves_a_review_that_can_be_shown(
    data: st.DataObject,
) -> None:
    review = new()
    verbs = st.sampled_from(Verb.__args__)
    for _ in range(data.draw(st.integers(0, 8))):
        press = ReviewPress(
            7,
            data.draw(st.integers(-1, 3)),
            data.draw(verbs),
            data.draw(st.integers(-5, 10)),
        )
        review = apply(review, press, plan=PLAN, user_id=ADA).review
        assert decode(encode(review)) == review
        assert draw(review).buttons


@given(plans)
def test_every_card_of_any_plan_fits_into_a_message(plan: Plan) -> None:
    parsed = parse(render(plan))
    assert not isinstance(parsed, Malformed)
    review = new(plan)
    shown = [("modify", 0), ("preview", 0), ("preview", len(plan.memos) + len(plan.actions) - 1)]
    for what, item in shown:
        card = draw(after(review, (what, item), plan=plan), plan)  # pyright: ignore[reportArgumentType] both are verbs
        assert length(card.text.text) <= ROOM
        assert all(len(b.data.encode()) <= 64 for row in card.buttons for b in row)


def test_long_content_is_cut_and_offered_as_a_file() -> None:
    plan = Plan(
        title="L" * 5000, rationale="W", actions=(Create(path="p" * 900, content="x🐙" * 9000),)
    )
    card = draw(after(new(plan), ("preview", 0), plan=plan), plan)
    assert length(card.text.text) <= ROOM
    assert "file" in {press.what for press in presses(card)}
    assert PREVIEW_UNITS < ROOM


def test_interrupted_turn_says_what_ran_what_may_have_and_what_did_not() -> None:
    actions = tuple(Execute(command=f"echo {n}") for n in range(4))
    plan = Plan(title="Four", rationale="Why.", actions=actions)
    past = Past(
        plan=plan,
        choice=choice_of(after(new(plan), ("uncheck", 3), plan=plan), plan),
        started="",
        ended={0: Outcome(status="SUCCESS")},
        unsure=1,
    )
    text = interrupted_card(Face(7, new(plan), ROOM), past).text.text
    assert "echo 0: ran, SUCCESS" in text
    assert "echo 1: may have run, and is not run again" in text
    assert "echo 2: did not run" in text
    assert "echo 3: was not approved" in text


def test_what_may_be_begun_again_is_said_to_be() -> None:
    plan = Plan(title="Reads", rationale="Why.", actions=(Read(path="a"),))
    past = Past(plan=plan, choice=everything(plan), started="", unsure=0)
    text = interrupted_card(Face(7, new(plan), ROOM), past).text.text
    assert "READ: a: may have run, and Continue runs it again" in text


def test_long_texts_of_every_other_card_fit_as_well() -> None:
    face = Face(7, Review(stage="planning", session="s", turn="01", message="m" * 9000), ROOM)
    plan = Plan(title="t" * 900, rationale="W", actions=(Chat(text="word " * 3000),))
    past = Past(
        plan=plan, choice=everything(plan), started="", ended={0: Outcome(status="SUCCESS")}
    )
    cards = [
        planning_card(face),
        invalid_card(face, ["e" * 900] * 90, again=True),
        done_card(face, past, "# Execution Report: x\n\n" + "word " * 3000),
    ]
    assert all(length(card.text.text) <= ROOM for card in cards)
