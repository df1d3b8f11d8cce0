from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from takopi.interview.machine import (
    FIRST,
    TOO_LATE,
    Again,
    Batch,
    Chosen,
    Edit,
    Event,
    Pressed,
    Typed,
    Unstarted,
    apply,
)
from takopi.interview.plan_file import brief, bundled_prompt
from takopi.interview.session import Question, decode, encode
from takopi.interview.view import card_of
from tests.interview.given import ORDER, asking, fresh, question


def asked(text: str, labels: list[str], typed: bool) -> Question:
    return question(text, *labels, typed=typed or not labels)


QUESTIONS = st.lists(
    st.builds(
        asked,
        st.text("abc?", min_size=1, max_size=9),
        st.lists(st.sampled_from(["A", "B", "C", "D"]), unique=True, max_size=4),
        st.booleans(),
    ),
    max_size=4,
).map(tuple)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Chosen, st.integers(0, 5), st.integers(0, 4)),
    st.builds(Typed, st.text("xyz ", max_size=5)),
    st.builds(Edit, st.integers(0, 5)),
    st.builds(Batch, QUESTIONS, st.just("goal"), st.just("description")),
    st.builds(
        Pressed,
        st.sampled_from([
            "back", "back_summary", "confirm", "edit", "cancel", "ft", "continue", "over",
        ]),
    ),
    st.just(Again(ORDER)),
    st.just(Unstarted()),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=40), st.integers(1, 3))
def test_any_events_in_any_order_keep_the_session_whole(
    events: list[Event], max_rounds: int
) -> None:
    session = fresh()
    calls = 0
    for event in events:
        before = session
        step = apply(session, event, max_rounds=max_rounds)
        session = step.session
        if step.effect is None:
            assert session == before
        if step.effect in {"cancel", "restart"}:
            return
        if step.effect == "execute":
            assert before.state == "CONFIRMING"
            assert None not in session.answers
        if step.effect == "ask":
            # Nobody asks while the answer of another call is still to come.
            assert before.shown != "checking"
            calls += 1
        assert calls <= max_rounds
        assert session.round <= max_rounds
        if session.shown in {"summary", "menu"}:
            assert None not in session.answers
        kept = decode(encode(session))
        assert (kept.questions, kept.answers) == (session.questions, session.answers)
        card_of(session, max_units=4096)
        text, prompt = brief(session, branch="main"), bundled_prompt(session)
        for pair in session.pairs():
            assert f"**Q: {pair.question}**\nA: {pair.answer}" in text
            assert f"Q: {pair.question}\nA: {pair.answer}" in prompt


def test_confirm_counts_once() -> None:
    session = apply(fresh(), Batch(), max_rounds=3).session
    first = apply(session, Pressed("confirm"), max_rounds=3)
    assert first.effect == "execute"
    second = apply(first.session, Pressed("confirm"), max_rounds=3)
    assert (second.effect, second.note) == (None, TOO_LATE)


def test_back_on_the_first_question_changes_nothing_and_says_so() -> None:
    session = asking(question("Which?", "A", "B"))
    step = apply(session, Pressed("back"), max_rounds=3)
    assert (step.session, step.note) == (session, FIRST)


def test_back_into_an_earlier_round_does_not_repeat_its_call() -> None:
    session = asking(question("One?", "A"), question("Two?", "A"))
    session = apply(session, Chosen(0, 0), max_rounds=3).session
    step = apply(session, Chosen(1, 0), max_rounds=3)
    assert step.effect == "ask"
    session = apply(step.session, Batch((question("Three?", "A"),)), max_rounds=3).session
    assert session.round == 2
    session = apply(session, Pressed("back"), max_rounds=3).session
    step = apply(session, Chosen(1, 0), max_rounds=3)
    assert (step.effect, step.session.current_question_index) == ("show", 2)


def test_after_the_last_round_the_summary_comes_without_a_call() -> None:
    session = asking(question("One?", "A"))
    step = apply(session, Chosen(0, 0), max_rounds=1)
    assert (step.effect, step.session.state) == ("show", "CONFIRMING")


def test_batch_that_comes_while_another_plan_is_offered_does_not_replace_the_offer() -> None:
    session = apply(fresh(), Again(ORDER), max_rounds=3).session
    step = apply(session, Batch((question("One?", "A"),)), max_rounds=3)
    assert (step.effect, step.session.revision) == ("keep", session.revision)
    step = apply(step.session, Pressed("continue"), max_rounds=3)
    assert step.session.current is not None
