"""An answer that is nothing but questions, found by reading it as JSON and never by its words."""

from __future__ import annotations

import re

import msgspec

from takopi.interview.machine import Batch
from takopi.interview.questions import AskedQuestion, slugs, usable

MAX_QUESTIONS = 7

INSTRUCTION = """\
INTERACTIVE MODE INSTRUCTIONS:
If the user's request is complex, ambiguous, or requires clarifying information before
you can execute it well, you MUST respond with ONLY the following JSON (no other text):
{
  "interactive": true,
  "goal": "short-slug-for-goal",
  "description": "short-slug-for-description",
  "questions": [
    {
      "id": "q1",
      "question": "The question text",
      "options": [{"label": "Option A", "value": "a"}, {"label": "Option B", "value": "b"}],
      "allowFreeText": false
    }
  ]
}
Generate 3\N{EN DASH}7 focused questions. Each question should have 2\N{EN DASH}4 options.
Only use allowFreeText=true when the answer truly needs custom input.
If the task is clear enough to execute directly, respond normally without this JSON."""

_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)


class Signal(msgspec.Struct, frozen=True):
    """What the instruction asks for."""

    interactive: bool
    questions: tuple[AskedQuestion, ...]
    goal: str = ""
    description: str = ""


def read_signal(answer: str, *, task: str) -> Batch | None:
    """The questions that an answer consists of; None for every answer that is to be shown."""
    text = answer.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1].strip()
    if not text.startswith("{"):
        return None
    try:
        signal = msgspec.json.decode(text, type=Signal)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    questions = usable(signal.questions, most=MAX_QUESTIONS)
    if not signal.interactive or not questions:
        return None
    return Batch(questions, *slugs(signal.goal, signal.description, task=task))
