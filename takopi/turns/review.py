"""How a plan is decided on in a chat: one press changes a review once, or leaves it and says why.

Pure: `apply(review, press)` gives the review after it and what is to be done. What approves or ends
something counts only for what was shown: a button names the step that its card was made for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec.structs import replace

from takopi.turns.buttons import ReviewPress, Verb
from takopi.turns.machine import Choice, everything
from takopi.turns.plan import Action, Execute, Plan, Research
from takopi.turns.revise import can_be_kept, with_words, words_of

Stage = Literal["planning", "review", "executing", "interrupted", "done", "failed"]
Task = Literal["new", "begin", "skip", "fix", "plan"]
Shown = Literal["summary", "list", "item"]
Waits = Literal["edit", "skip", "next"]
Effect = Literal[
    "show", "execute", "quit", "plan_file", "item_file", "fail", "goon", "retry", "stop"
]

PAGE_ITEMS = 8
"""As many rows of buttons as a phone shows below a message."""

TOO_LATE = "This was decided already."
MOVED_ON = "The selection has changed: look at it again."
NOTHING = "Nothing is checked."
NOT_KEPT = "This cannot stand in a plan: change it differently."
EMPTY = "There is nothing in it."


class Review(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a session, and what people have decided of it so far.

    `task` is how far the planning has come, `message` what is planned. `digest` names the plan
    that is shown. `card` counts the cards; `step` changes with everything that an approval is
    about. `words` are the texts that a person typed for an action. `waits` says what `user_id` is
    asked to type.
    """

    stage: Stage
    session: str
    turn: str
    place: str = ""
    task: Task = "plan"
    message: str = ""
    digest: str = ""
    step: int = 0
    card: int = 0
    shown: Shown = "summary"
    page: int = 0
    item: int = 0
    memos: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()
    words: dict[int, str] = {}
    waits: Waits | None = None
    user_id: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What a press came to. Without an effect the review is as it was; `note` is for the person."""

    review: Review
    effect: Effect | None = None
    note: str = ""


def encode(review: Review) -> bytes:
    """The review as the store keeps it."""
    return msgspec.msgpack.encode(review)


def decode(state: bytes) -> Review:
    """The review that the store has kept."""
    return msgspec.msgpack.decode(state, type=Review)


def opened(review: Review, plan: Plan, digest: str) -> Review:
    """The review of a plan that is to be decided on, with everything checked.

    What was chosen of the same plan before stays.
    """
    if review.digest == digest:
        return replace(review, stage="review", shown="summary", waits=None, user_id=None)
    full = everything(plan)
    return Review(
        stage="review",
        session=review.session,
        turn=review.turn,
        place=review.place,
        message=review.message,
        digest=digest,
        step=review.step,
        card=review.card,
        memos=tuple(sorted(full.memos)),
        actions=tuple(sorted(full.actions)),
        note=review.note,
    )


def choice_of(review: Review, plan: Plan) -> Choice:
    """What is checked, and what was changed."""
    return Choice(
        memos=frozenset(review.memos),
        actions=frozenset(review.actions),
        edits={
            index: with_words(plan.actions[index], (text,)) for index, text in review.words.items()
        },
    )


def approval(review: Review, plan: Plan, what: Verb) -> Choice:
    """What is carried out: everything, or what is checked; in each case as it was changed."""
    choice = choice_of(review, plan)
    if what != "approve":
        return choice
    full = everything(plan)
    return Choice(memos=full.memos, actions=full.actions, edits=choice.edits)


def can_be_typed(action: Action) -> bool:
    """Whether a person may type another text for an action in the chat."""
    return isinstance(action, Execute | Research) and len(words_of(action)) == 1


def count_items(plan: Plan) -> int:
    """Memos and actions, which are numbered together."""
    return len(plan.memos) + len(plan.actions)


def last_page(plan: Plan) -> int:
    """The number of the last page of the checklist; the first is 0."""
    return max(count_items(plan) - 1, 0) // PAGE_ITEMS


def apply(review: Review, press: ReviewPress, *, plan: Plan | None, user_id: int) -> Step:
    """The review after a press; `plan` is what it is about, where it can be read."""
    match review.stage, press.what:
        case "planning", "stop":
            return Step(review, "stop")
        case "failed", "retry":
            return _if_current(review, press, Step(review, "retry"))
        case (("failed" | "review" | "interrupted" | "done"), "quit"):
            return _if_current(review, press, Step(review, "quit"))
        case "interrupted", ("fail" | "goon"):
            return _if_current(review, press, Step(review, press.what))
        case "done", ("next" | "keep"):
            return _if_current(review, press, _wait(review, press, user_id))
        case "review", _ if plan is not None:
            return _review(review, press, plan=plan, user_id=user_id)
        case _:
            return Step(review, note=TOO_LATE)


def typed(review: Review, text: str, *, plan: Plan | None) -> Step:
    """The review after the text that it waits for; what is planned next is with the caller."""
    if review.waits != "edit" or plan is None:
        return Step(replace(review, waits=None, user_id=None, message=text), "show")
    index = review.item - len(plan.memos)
    proposed = plan.actions[index]
    action = with_words(proposed, (text.strip(),))
    if not can_be_kept(action):
        return Step(review, note=NOT_KEPT)
    words = {key: value for key, value in review.words.items() if key != index}
    if action != proposed:
        words[index] = text.strip()
    return Step(_changed(replace(review, words=words, waits=None, user_id=None)), "show")


def _review(review: Review, press: ReviewPress, *, plan: Plan, user_id: int) -> Step:
    match press.what:
        case "approve" | "confirm":
            if press.what == "confirm" and not review.memos and not review.actions:
                return Step(review, note=NOTHING)
            return _if_current(review, press, Step(_quiet(review), "execute"))
        case "review":
            return Step(review, "plan_file")
        case "modify" | "list":
            return _show(review, shown="list", page=min(review.page, last_page(plan)))
        case "back":
            return _show(review, shown="summary")
        case "page" if 0 <= press.item <= last_page(plan):
            return _show(review, shown="list", page=press.item)
        case "all" | "none":
            full = everything(plan) if press.what == "all" else Choice()
            return _choose(review, tuple(sorted(full.memos)), tuple(sorted(full.actions)))
        case "skip" | "keep":
            return _if_current(review, press, _wait(review, press, user_id))
        case _ if 0 <= press.item < count_items(plan):
            return _item(review, press, plan=plan, user_id=user_id)
        case _:
            return Step(review, note=TOO_LATE)


def _item(review: Review, press: ReviewPress, *, plan: Plan, user_id: int) -> Step:
    item, index = press.item, press.item - len(plan.memos)
    match press.what:
        case "check" | "uncheck" if index < 0:
            return _choose(
                review, _with(review.memos, item, is_checked=press.what == "check"), review.actions
            )
        case "check" | "uncheck":
            return _choose(
                review, review.memos, _with(review.actions, index, is_checked=press.what == "check")
            )
        case "preview":
            return _show(review, shown="item", item=item, page=item // PAGE_ITEMS)
        case "file":
            return Step(replace(review, item=item), "item_file")
        case "edit" if index >= 0 and can_be_typed(plan.actions[index]):
            waiting = replace(review, shown="item", item=item, waits="edit", user_id=user_id)
            return Step(waiting, "show")
        case _:
            return Step(review, note=TOO_LATE)


def _wait(review: Review, press: ReviewPress, user_id: int) -> Step:
    if press.what == "keep":
        return Step(_quiet(review), "show")
    waits: Waits = "skip" if press.what == "skip" else "next"
    return Step(replace(review, waits=waits, user_id=user_id), "show")


def _choose(review: Review, memos: tuple[int, ...], actions: tuple[int, ...]) -> Step:
    if (memos, actions) == (review.memos, review.actions):
        # The second tap on a button asks for what is so already.
        return Step(review, "show")
    return Step(_changed(replace(_quiet(review), memos=memos, actions=actions)), "show")


def _if_current(review: Review, press: ReviewPress, step: Step) -> Step:
    return step if press.step == review.step else Step(review, "show", MOVED_ON)


def _show(review: Review, **changes: object) -> Step:
    return Step(replace(_quiet(review), **changes), "show")


def _quiet(review: Review) -> Review:
    return replace(review, waits=None, user_id=None)


def _changed(review: Review) -> Review:
    return replace(review, step=review.step + 1, note="")


def _with(checked: tuple[int, ...], index: int, *, is_checked: bool) -> tuple[int, ...]:
    left = set(checked) - {index}
    return tuple(sorted(left | {index} if is_checked else left))
