from __future__ import annotations

import pytest

from takopi.core.ids import Scope
from takopi.drafts.machine import (
    DraftPress,
    DraftVerb,
    State,
    appended,
    buttons,
    judge,
    reverted,
    with_version,
)
from takopi.drafts.view import draft_card, sent_card, trim_middle
from takopi.present.units import length
from takopi.store.drafts import Draft, DraftId, Job, JobId, NewJob

SCOPE = Scope("telegram", 7)


def draft(*versions: str) -> Draft:
    made = Draft(DraftId(3), SCOPE)
    for version in versions:
        made = with_version(made, version)
    return made


def failed(text: str = "broken") -> Job:
    return Job(JobId(1), NewJob("text", text), state="failed", why="It was late.")


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ((), ()),
        (("a",), ("run", "reset")),
        (("a", "b"), ("run", "revert", "reset")),
        (("a", "b", "c"), ("run", "revert", "reset")),
    ],
)
def test_only_buttons_that_have_an_effect_are_shown(
    versions: tuple[str, ...], expected: tuple[DraftVerb, ...]
) -> None:
    assert buttons(State(draft(*versions))) == expected


def test_input_that_failed_can_be_tried_again_appended_or_given_up() -> None:
    assert buttons(State(draft("a"), (failed(),))) == ("retry", "append", "reset")


def test_revert_goes_back_to_the_first_and_past_it_nothing_is_left() -> None:
    back = reverted(draft("a", "b", "c"))
    assert back is not None
    assert back.versions == ("a", "b")
    back = reverted(back)
    assert back is not None
    assert back.versions == ("a",)
    assert reverted(back) is None


def test_input_is_appended_below_what_there_is() -> None:
    assert appended(draft("a"), "b") == "a\n\nb"
    assert appended(draft(), "b") == "b"


def test_press_counts_once_for_the_step_it_was_shown_for() -> None:
    state = State(draft("a", "b"))
    assert judge(state, DraftPress("revert", 3, 2)) == "yes"
    assert judge(state, DraftPress("revert", 3, 1)) == "outdated"
    assert judge(state, DraftPress("revert", 2, 2)) == "outdated"
    assert judge(None, DraftPress("revert", 3, 2)) == "outdated"
    waiting = Job(JobId(1), NewJob("run", step=2))
    assert judge(State(state.draft, (waiting,)), DraftPress("revert", 3, 2)) == "decided"


def test_press_of_a_button_that_is_not_shown_has_no_effect() -> None:
    assert judge(State(draft("a")), DraftPress("retry", 3, 1)) == "decided"
    assert judge(State(draft("a"), (failed(),)), DraftPress("revert", 3, 1)) == "decided"


def test_revert_counts_for_the_first_version_too_but_not_for_none() -> None:
    assert judge(State(draft("a")), DraftPress("revert", 3, 1)) == "yes"
    assert judge(State(draft()), DraftPress("revert", 3, 0)) == "decided"


@pytest.mark.parametrize("text", ["x" * 5000, "🐙" * 3000, "a\n" * 4000])
def test_long_text_is_cut_in_the_middle_and_fits(text: str) -> None:
    shown = trim_middle(text, 1000)
    assert length(shown) <= 1000
    assert "more characters" in shown
    assert shown[0] == text[0]
    shown.encode()


def test_card_always_fits_into_a_message() -> None:
    state = State(draft("🐙\t" * 4000), (failed("f" * 4000),))
    card = draft_card(state, place="ctx: z80 @ main", max_units=4000)
    assert length(card.text.text) <= 4000
    assert length(sent_card(state.draft, "Sent.", max_units=4000).text.text) <= 4000
