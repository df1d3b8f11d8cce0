"""The cards of a run: what it does, how it ended, what it asks; each fits into one message.

Buttons come from the caller, who knows what a press means.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

from takopi.core.errors import ConfigInvalid, TakopiError
from takopi.core.events import Ask, Question, Usage
from takopi.core.outgoing import Button, Card, Text
from takopi.present.compose import EMPTY, Piece, bold, code, join, plain, pre, prose, stack
from takopi.present.markdown import render
from takopi.present.numbers import cost, count, duration
from takopi.present.progress import Progress
from takopi.present.split import parts, split
from takopi.present.units import length
from takopi.present.wording import one_line

Rows: TypeAlias = Sequence[Sequence[Button]]
FinalStatus: TypeAlias = Literal["done", "error", "cancelled", "interrupted"]

DECISION_UNITS = 200
"""How much may be said under a card once it is decided; an ask leaves this much room."""

NOTICE_UNITS = 2000
"""More than this nobody reads in a notice, whatever git or a plugin has to say."""

NOTE_CHARS = 300

_NO_ANSWER = "The engine gave no answer."
_NO_PLAN = "The plan is empty."


def progress_card(
    progress: Progress,
    *,
    engine: str,
    state: str,
    max_units: int,
    elapsed_s: float | None = None,
    place: int | None = None,
    notes: Sequence[str] = (),
    footer: Text = EMPTY,
    buttons: Rows = (),
) -> Card:
    """A run that has not ended: `working · claude · 12s · step 3`, its last actions, the footer.

    `place` is where a queued run stands. Where room is short the oldest lines go first; the
    header and the footer stay whole.
    """
    header = _line(
        state,
        engine,
        "" if elapsed_s is None else duration(elapsed_s),
        "" if place is None else f"place {place}",
        f"step {progress.steps}" if progress.steps else "",
    )
    lines, noted = progress.lines(), _notes(notes)
    text = stack([header, stack(lines), noted, footer], "\n\n")
    while length(text.text) > max_units and (lines or noted.text):
        lines, noted = lines[1:], noted if lines else EMPTY
        text = stack([header, stack(lines), noted, footer], "\n\n")
    return _card(fit(text, max_units), buttons)


def final_parts(
    status: FinalStatus,
    answer: str,
    *,
    engine: str,
    max_units: int,
    elapsed_s: float | None = None,
    error: str | None = None,
    model: str | None = None,
    usage: Usage | None = None,
    footer: Text = EMPTY,
) -> tuple[Text, ...]:
    """A run that has ended, as messages: the status, the answer, what it took, the footer."""
    header = _line(status, engine, "" if elapsed_s is None else duration(elapsed_s))
    said = render(answer)
    if not said.text and status == "done":
        said = plain(_NO_ANSWER)
    body = stack([header, prose(error or ""), said], "\n\n")
    return parts(body, footer, max_units, tail=plain(spent_line(model, usage or Usage())))


def spent_line(model: str | None, usage: Usage) -> str:
    """`claude-sonnet-4 · 1.2k in · 340 out · $0.04`: what the engine told of it."""
    return _line(
        one_line(model or "", NOTE_CHARS),
        "" if usage.input_tokens is None else f"{count(usage.input_tokens)} in",
        "" if usage.output_tokens is None else f"{count(usage.output_tokens)} out",
        "" if usage.cost_usd is None else cost(usage.cost_usd),
    )


def ask_card(
    ask: Ask,
    *,
    engine: str,
    max_units: int,
    question: int = 0,
    selected: Collection[str] = (),
    notes: Sequence[str] = (),
    footer: Text = EMPTY,
    buttons: Rows = (),
) -> tuple[Card, ...]:
    """What an engine needs from a person, in full; the buttons are on the last card.

    It is one card unless the plan or the preview is longer than a message. Of several questions
    `question` is the one to be shown, and `selected` has the labels that were chosen so far.
    """
    if ask.kind == "question" and ask.questions:
        body = _question(ask.questions, question, engine=engine, selected=selected)
    elif ask.plan is not None:
        body = stack([bold(f"{engine} proposes a plan"), render(ask.plan or _NO_PLAN)], "\n\n")
    else:
        body = _approval(ask, engine=engine)
    room = max_units - DECISION_UNITS - len("\n\n")
    texts = parts(body, footer, room, tail=_notes(notes))
    return (*(Card(text) for text in texts[:-1]), _card(texts[-1], buttons))


def decided(card: Card, line: str) -> Card:
    """The card as it stays: who decided and what below it, and nothing left to press."""
    # A character has two units at most.
    said = one_line(line, DECISION_UNITS // 2)
    return Card(stack([card.text, bold(said)], "\n\n"))


def notice(text: str, *, buttons: Rows = ()) -> Card:
    """Something worth knowing; `backticks` in it stand around code."""
    return _card(fit(prose(text.strip()), NOTICE_UNITS), buttons)


def refusal(error: TakopiError, *, buttons: Rows = ()) -> Card:
    """What cannot be done: one sentence, and under it the way out."""
    if isinstance(error, ConfigInvalid):
        text = _problems(error)
    else:
        text = stack([prose(error.what), prose(error.way_out)])
    return _card(fit(text, NOTICE_UNITS), buttons)


def fit(text: Text, max_units: int) -> Text:
    """The first message of a text, with an ellipsis where the rest is left out."""
    if length(text.text) <= max_units:
        return text
    first = split(text, max_units - len("\n…"))[0]
    return join([first, "…"], "\n")


def _line(*facts: str) -> str:
    return " · ".join(filter(None, facts))


def _notes(notes: Sequence[str]) -> Text:
    return stack(prose(one_line(note, NOTE_CHARS)) for note in notes)


def _card(text: Text, buttons: Rows) -> Card:
    return Card(text, tuple(tuple(row) for row in buttons if row))


def _approval(ask: Ask, *, engine: str) -> Text:
    shown = " ".join(ask.preview.split())
    target = ask.target.removesuffix("…").strip()
    # A command is its own preview.
    is_repeated = bool(target) and shown.startswith(target)
    return stack([
        bold(f"{engine} wants to use {ask.tool or 'a tool'}"),
        "" if is_repeated else code(ask.target),
        pre(ask.preview.rstrip()),
    ])


def _question(
    questions: Sequence[Question], index: int, *, engine: str, selected: Collection[str]
) -> Text:
    asked = questions[index]
    place = f" ({index + 1} of {len(questions)})" if len(questions) > 1 else ""
    choices = [
        _choice(choice.label, choice.description, is_selected=choice.label in selected)
        for choice in asked.choices
    ]
    if not asked.choices:
        how = "Reply with your answer."
    elif asked.several:
        how = "Choose one or more, or reply with your own answer."
    else:
        how = "Choose one, or reply with your own answer."
    about = f": {one_line(asked.header, NOTE_CHARS)}" if asked.header.strip() else ""
    return stack(
        [stack([bold(f"{engine} asks{place}{about}"), render(asked.text)]), stack(choices), how],
        "\n\n",
    )


def _choice(label: str, description: str, *, is_selected: bool) -> Piece:
    sign = "✓ " if is_selected else "• "
    more = f": {' '.join(description.split())}" if description.strip() else ""
    return join([sign, bold(" ".join(label.split())), more])


def _problems(error: ConfigInvalid) -> Text:
    lines = [
        stack([
            prose(f"{problem.key}: {problem.what}" if problem.key else problem.what),
            prose(problem.way_out),
        ])
        for problem in error.problems
    ]
    if len(lines) == 1:
        return lines[0]
    return stack([f"The config has {len(lines)} problems.", *lines], "\n\n")
