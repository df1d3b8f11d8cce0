"""How a draft reads on its card: its text whole or cut in the middle, what is going on, buttons."""

from __future__ import annotations

from takopi.core.outgoing import Button, Card, Text
from takopi.drafts.machine import (
    PRESS,
    DraftPress,
    DraftVerb,
    State,
    buttons,
    waiting_inputs,
)
from takopi.present.compose import EMPTY, bold, code, plain, pre, prose, stack
from takopi.present.units import length, narrow, widen
from takopi.present.wording import one_line
from takopi.store.drafts import Draft

LABELS: dict[DraftVerb, str] = {
    "run": "Run",
    "revert": "Revert",
    "reset": "Reset",
    "retry": "Retry",
    "append": "Append as is",
}
QUOTE_CHARS = 120
WHY_CHARS = 300
NOTE_UNITS = 1000
"""Room for everything that stands around the text."""

MOVED_ON = "This draft has moved on."
NOT_ADMIN = "Only admins of this chat may do that."
RESET = "This draft was reset."


def draft_card(state: State, *, place: str, max_units: int) -> Card:
    """The draft as it is now; `place` says where it would go."""
    text = stack(
        [
            _shown(state.draft.text, max_units - NOTE_UNITS),
            _note(state),
            code(place) if place else EMPTY,
        ],
        "\n\n",
    )
    row = tuple(_button(verb, state.draft) for verb in buttons(state))
    return Card(text, (row,) if row else ())


def sent_card(draft: Draft, line: str, *, max_units: int) -> Card:
    """The draft after its Run: what was sent where, and nothing to press."""
    return Card(stack([_shown(draft.text, max_units - NOTE_UNITS), bold(line)], "\n\n"))


def trim_middle(text: str, max_units: int) -> str:
    """`text` within so many units; of a longer one the beginning and the end."""
    if length(text) <= max_units:
        return text
    gap = f"\n… {length(text) - max_units} more characters …\n"
    room = max(max_units - len(gap), 2)
    wide = widen(text)
    return narrow(wide[: room // 2]) + gap + narrow(wide[len(wide) - room // 2 :])


def _shown(text: str, max_units: int) -> Text:
    # It is prose: the page breaks its lines where it knows that.
    return pre(trim_middle(text.expandtabs(4), max_units), "markdown") if text else EMPTY


def _note(state: State) -> Text:
    failed, waiting = state.failed, waiting_inputs(state.jobs)
    if failed is not None:
        lines = [
            plain(f"This was not taken in: {one_line(failed.new.text, QUOTE_CHARS)}"),
            prose(one_line(failed.why, WHY_CHARS)),
        ]
        if waiting > 1:
            lines.append(plain(f"{_messages(waiting - 1)} behind it."))
        return stack(lines)
    if waiting:
        return plain(f"Taking in {_messages(waiting)}…")
    if state.jobs:
        return plain("Sending…" if state.jobs[0].new.kind == "run" else "Going back…")
    return EMPTY if state.draft.text else plain("Nothing yet.")


def _messages(count: int) -> str:
    return f"{count} message{'s' * (count != 1)}"


def _button(verb: DraftVerb, draft: Draft) -> Button:
    return Button(LABELS[verb], PRESS.encode(DraftPress(verb, draft.id, draft.step)))
