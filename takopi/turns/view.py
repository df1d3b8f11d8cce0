"""How a turn reads in a chat: each card is made from what is known alone, and fits one message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from takopi.core.errors import TakopiError
from takopi.core.outgoing import Attachment, Button, Card, Outgoing, Text
from takopi.engines.wording import visible
from takopi.present.cards import fit
from takopi.present.compose import EMPTY, bold, code, join, plain, pre, prose, stack
from takopi.present.markdown import render
from takopi.present.units import length
from takopi.present.wording import one_line
from takopi.turns.buttons import REVIEW, ReviewPress, Verb
from takopi.turns.journal import Past
from takopi.turns.machine import final_actions
from takopi.turns.plan import Action, Chat, Conclude, Memo, Plan, amounts, subject
from takopi.turns.preview import Preview
from takopi.turns.review import (
    PAGE_ITEMS,
    Review,
    can_be_typed,
    choice_of,
    count_items,
    last_page,
)

TITLE_CHARS = 200
LINE_CHARS = 120
ERROR_CHARS = 300
PREVIEW_UNITS = 3000
KEYS_UNITS = 500
"""What is longer is cut on its card, and comes whole as a file."""

SHORT_UNITS = 3000
"""A plan up to this length is read in the chat, a longer one as a file."""

REPORT_UNITS = 1500
"""A report up to this length is the answer itself, a longer one is summed up."""

ASK_NEXT = "Reply with what the next turn shall do."
MEMOS, ERRORS = 10, 20
"""So many lines of a kind stand on one card."""

_COMMAND = re.compile(r"takopi session (?:new NAME|plan -m …|new|plan|execute|resume|status)")
_HARMLESS = {"READ", "PRUNE", "CHAT_WITH_USER", "INVOKE", "CONCLUDE"}
"""Kinds of actions that leave nothing behind."""


@dataclass(frozen=True, slots=True)
class Face:
    """What a card is made of: the review under its number, and as much as one message holds."""

    id: int
    review: Review
    max_units: int

    def button(self, label: str, what: Verb, item: int = 0) -> Button:
        """A button of the card as it is now."""
        return Button(label, REVIEW.encode(ReviewPress(self.id, self.review.step, what, item)))

    def card(self, text: Text, buttons: Iterable[Sequence[Button]] = ()) -> Card:
        """The text with what can be pressed below it."""
        return Card(fit(text, self.max_units), tuple(tuple(row) for row in buttons if row))

    @property
    def where(self) -> Text:
        """Which turn of which session this is, and in which project."""
        name = f"{self.review.session}/{self.review.turn}"
        return stack([code(name), code(self.review.place) if self.review.place else EMPTY])


def planning_card(face: Face) -> Card:
    """A plan is being made."""
    text = stack([bold("Planning…"), face.where, plain(_said(face.review))])
    return face.card(text, [[face.button("Cancel", "stop")]])


def failed_card(face: Face, why: str) -> Card:
    """No plan came of it."""
    text = stack([stack([bold("There is no plan."), prose(why)]), face.where], "\n\n")
    return face.card(text, [[face.button("Try again", "retry"), face.button("Quit", "quit")]])


def review_card(face: Face, plan: Plan, *, preview: Preview | None = None) -> Card:
    """A plan that is to be decided on: in a few lines, as a checklist, or one item of it."""
    match face.review.shown:
        case "item" if preview is not None:
            return _item(face, plan, preview)
        case "list":
            return _checklist(face, plan)
        case _:
            return _summary(face, plan)


def summary(plan: Plan) -> Text:
    """A plan in a few lines: its memos, and how many actions of which kind."""
    memos = [plain(_clear(memo_line(memo), LINE_CHARS)) for memo in plan.memos[:MEMOS]]
    if len(plan.memos) > MEMOS:
        memos.append(plain(f"… {len(plan.memos) - MEMOS} more"))
    actions = [plain(f"- {kind}: {amount}") for kind, amount in amounts(plan)]
    return stack(
        [
            bold(f'▶ Reviewing Plan: "{_clear(plan.title, TITLE_CHARS)}"'),
            stack([bold("memos.yaml:"), *memos]) if memos else EMPTY,
            stack([bold("Action Plan:"), *actions]),
        ],
        "\n\n",
    )


def executing_card(face: Face, plan: Plan, *, index: int | None = None) -> Card:
    """A plan that is being carried out; `index` is the action that has begun."""
    now = EMPTY
    if index is not None:
        action = final_actions(choice_of(face.review, plan), plan)[index]
        now = plain(f"{index + 1} of {len(plan.actions)} · {action_line(action)}")
    head = bold(f'▶ Executing Plan: "{_clear(plan.title, TITLE_CHARS)}"')
    return face.card(stack([head, now, face.where], "\n\n"))


def interrupted_card(face: Face, past: Past) -> Card:
    """A turn that a crash has stopped: what ran, what may have run, and what did not."""
    lines = [
        plain(f"- {action_line(action)}: {_fate(past, index)}")
        for index, action in enumerate(final_actions(past.choice, past.plan))
    ]
    head = bold(f"Turn {face.review.turn} was interrupted while it was carried out.")
    room = face.max_units - length(head.text) - length(face.where.text) - len("\n\n") * 2
    buttons = [
        [face.button("Report as failed", "fail")],
        [face.button("Continue", "goon"), face.button("Quit", "quit")],
    ]
    return face.card(stack([head, fit(stack(lines), room), face.where], "\n\n"), buttons)


def done_card(face: Face, past: Past, report: str) -> Card:
    """A turn that is reported: the report itself, or what it comes to, and what can be next."""
    text = render(report)
    if length(text.text) > REPORT_UNITS:
        text = _outcome(past, report)
    asked = bold(ASK_NEXT) if face.review.waits == "next" else EMPTY
    room = face.max_units - length(face.where.text) - len(ASK_NEXT) - len("\n\n") * 2
    return face.card(stack([fit(text, room), asked, face.where], "\n\n"), next_buttons(face))


def is_long(report: str) -> bool:
    """Whether a report is a file of its own."""
    return length(render(report).text) > REPORT_UNITS


def next_buttons(face: Face) -> list[list[Button]]:
    """What can be next after a report."""
    if face.review.waits == "next":
        return [[face.button("Not now", "keep")]]
    return [[face.button("Next turn", "next")]]


def ask_card(face: Face) -> Card:
    """A turn that waits for what it is to be planned with."""
    if face.review.waits != "next":
        text = plain(f"Turn {face.review.turn} has no plan yet.")
    else:
        text = bold(f"Reply with what turn {face.review.turn} shall do.")
    return face.card(stack([text, face.where], "\n\n"), next_buttons(face))


def invalid_card(face: Face, errors: Sequence[str], *, again: bool) -> Card:
    """A plan that failed its checks, and whether another is on its way."""
    lines = [plain(f"- {_clear(error, ERROR_CHARS)}") for error in errors[:ERRORS]]
    if len(errors) > ERRORS:
        lines.append(plain(f"… {len(errors) - ERRORS} more"))
    head = bold(f"The plan of turn {face.review.turn} failed its checks.")
    foot = "A corrected one is being made." if again else ""
    room = face.max_units - length(head.text) - len(foot) - len("\n\n") * 2
    return face.card(stack([head, fit(stack(lines), room), plain(foot)], "\n\n"))


def memo_line(memo: Memo) -> str:
    """What becomes of a memo, and why."""
    word = "ADD" if memo.sign == "+" else "REMOVE"
    return f"[{memo.sign}] {word}: {memo.text}" + (f" # {memo.why}" if memo.why else "")


def action_line(action: Action) -> str:
    """What an action does, and to what."""
    return _clear(f"{action.kind}: {subject(action)}", LINE_CHARS)


def _summary(face: Face, plan: Plan) -> Card:
    review = face.review
    if review.waits == "skip":
        asked = bold("Reply with what you want instead: the next turn is planned with it.")
        text = stack([summary(plan), asked, face.where], "\n\n")
        return face.card(text, [[face.button("Keep this plan", "keep")]])
    changed = [index + 1 + len(plan.memos) for index in sorted(review.words)]
    numbers = ", ".join(map(str, changed))
    tag = plain(f"*modified: {numbers}") if changed else EMPTY
    buttons = [
        [face.button("Approve all", "approve")],
        [face.button("Review", "review"), face.button("Modify", "modify")],
        [face.button("Skip", "skip"), face.button("Quit", "quit")],
    ]
    return face.card(stack([summary(plan), tag, prose(review.note), face.where], "\n\n"), buttons)


def _checklist(face: Face, plan: Plan) -> Card:
    review = face.review
    first = review.page * PAGE_ITEMS
    lines: list[Text] = []
    rows: list[list[Button]] = []
    for item in range(first, min(first + PAGE_ITEMS, count_items(plan))):
        if item in {first, len(plan.memos)}:
            lines.append(bold("Memos" if item < len(plan.memos) else "Action Plan"))
        checked, line, tag = _entry(review, plan, item)
        lines.append(plain(f"[{'✓' if checked else ' '}] {item + 1}. {line}{tag}"))
        # A phone shows little of a label: what the item is about stands above.
        label = f"{'✓' if checked else '☐'} {item + 1}. {_kind(plan, item)}"
        toggle = face.button(label, "uncheck" if checked else "check", item)
        rows.append([toggle, face.button(f"Preview {item + 1}", "preview", item)])
    chosen, pages = len(review.memos) + len(review.actions), last_page(plan) + 1
    head = f"{chosen} of {count_items(plan)} checked"
    if pages > 1:
        head += f" · page {review.page + 1} of {pages}"
    title = bold(f'▶ Modify Plan: "{_clear(plan.title, TITLE_CHARS)}"')
    text = stack([stack([title, plain(head)]), stack(lines), face.where], "\n\n")
    return face.card(text, [*rows, *_list_buttons(face, chosen, plan=plan)])


def _list_buttons(face: Face, chosen: int, *, plan: Plan) -> list[list[Button]]:
    page, last = face.review.page, last_page(plan)
    back = [face.button(f"← Page {page}", "page", page - 1)] if page > 0 else []
    on = [face.button(f"Page {page + 2} →", "page", page + 1)] if page < last else []
    if chosen == count_items(plan):
        select = face.button("Unselect all", "none")
    else:
        select = face.button("Select all", "all")
    confirm = face.button(f"Confirm ({chosen})", "confirm")
    return [[*back, *on], [select, face.button("Back", "back")], [confirm]]


def _item(face: Face, plan: Plan, preview: Preview) -> Card:
    checked, line, tag = _entry(face.review, plan, face.review.item)
    number = face.review.item + 1
    head = bold(f"[{'✓' if checked else ' '}] {number}. {one_line(line, LINE_CHARS)}{tag}")
    keys, body = plain(preview.keys), pre(preview.text.rstrip() or "(empty)", preview.language)
    is_cut = length(keys.text) > KEYS_UNITS or length(body.text) > PREVIEW_UNITS
    cut = plain("Cut here: the whole comes as a file.") if is_cut else EMPTY
    is_asked = face.review.waits == "edit"
    asked = bold("Reply with what shall be there instead.") if is_asked else EMPTY
    keys, body = fit(keys, KEYS_UNITS), fit(body, PREVIEW_UNITS)
    text = stack([head, keys, body, cut, asked, face.where], "\n\n")
    return face.card(text, _item_buttons(face, plan, is_checked=checked, is_cut=is_cut))


def _item_buttons(face: Face, plan: Plan, *, is_checked: bool, is_cut: bool) -> list[list[Button]]:
    item = face.review.item
    if face.review.waits == "edit":
        return [[face.button("Keep as it is", "keep", item)]]
    verb: Verb = "uncheck" if is_checked else "check"
    row = [face.button("Uncheck" if is_checked else "Check", verb, item)]
    index = item - len(plan.memos)
    if index >= 0 and can_be_typed(plan.actions[index]):
        row.append(face.button("Edit", "edit", item))
    if is_cut:
        row.append(face.button("As a file", "file", item))
    return [row, [face.button("Back to the list", "list")]]


def whole(preview: Preview) -> str:
    """The text of an item that is cut on its card, with its keys where those are cut as well."""
    if length(preview.keys) <= KEYS_UNITS:
        return preview.text
    return f"{preview.keys}\n\n{preview.text}"


def _entry(review: Review, plan: Plan, item: int) -> tuple[bool, str, str]:
    """Whether an item is checked, what it says, and whether a person has changed it."""
    index = item - len(plan.memos)
    if index < 0:
        return item in review.memos, _clear(memo_line(plan.memos[item]), LINE_CHARS), ""
    action = final_actions(choice_of(review, plan), plan)[index]
    tag = " *modified" if index in review.words else ""
    return index in review.actions, action_line(action), tag


def _kind(plan: Plan, item: int) -> str:
    index = item - len(plan.memos)
    return "Memo" if index < 0 else plan.actions[index].kind


def _outcome(past: Past, report: str) -> Text:
    """What a long report comes to."""
    head = report.partition("\n## ")[0].splitlines()
    kept = [one for one in head if one.startswith(("# ", "- **Overall", "- **Act", "- **Outc"))]
    lines = [
        plain(f"{index + 1}. {action_line(action)}: {_status(past, index)}")
        for index, action in enumerate(final_actions(past.choice, past.plan))
    ]
    words = [
        render(action.text)
        for index, action in enumerate(final_actions(past.choice, past.plan))
        if isinstance(action, Chat | Conclude) and index in past.ended
    ]
    return stack([render("\n".join(kept)), stack(lines), *words], "\n\n")


def _status(past: Past, index: int) -> str:
    outcome = past.ended.get(index)
    if outcome is None:
        return "SKIPPED"
    return outcome.status + (f" ({one_line(outcome.reason, 80)})" if outcome.reason else "")


def _fate(past: Past, index: int) -> str:
    if index in past.ended:
        return f"ran, {_status(past, index)}"
    if index not in past.choice.actions:
        return "was not approved"
    if index != past.unsure:
        return "did not run"
    if past.plan.actions[index].kind in _HARMLESS:
        return "may have run, and Continue runs it again"
    return "may have run, and is not run again"


def _clear(text: str, max_chars: int) -> str:
    """One line in which nothing hides or reorders the rest."""
    return one_line(visible(one_line(text, max_chars)), max_chars)


def _said(review: Review) -> str:
    return one_line(review.message, TITLE_CHARS)


def file_message(text: str, name: str, language: str, *, reply_to: int) -> Outgoing:
    """A text as it stands: in the chat where it is short, else as a file."""
    shown = stack([bold(name), pre(text.rstrip("\n"), language)], "\n\n")
    if length(shown.text) <= SHORT_UNITS:
        return Outgoing(Card(shown), reply_to=reply_to)
    file = Attachment(name, text.encode("utf-8", "replace"))
    return Outgoing(Card(bold(name)), attachment=file, reply_to=reply_to)


def in_chat(error: TakopiError) -> TakopiError:
    """The error with a way out that can be typed in a chat: most name a command of the terminal."""
    way_out = _COMMAND.sub(_typed, error.way_out)
    return error if way_out == error.way_out else TakopiError(error.what, way_out=way_out)


def _typed(found: re.Match[str]) -> str:
    words = found[0].removeprefix("takopi ").replace(" NAME", " <name>").replace(" -m …", " <text>")
    return f"`/{words}`"


def with_line(card: Card, line: str) -> Card:
    """A card that is over: what came of it below, and nothing left to press."""
    return Card(join([card.text, bold(line)], "\n\n"))
