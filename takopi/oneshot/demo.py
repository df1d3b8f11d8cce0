"""Answers short questions by a script instead of a model: the same question, the same answer.

It knows what a form with questions looks like and fills that in, so that a plan can be made without
a key. Everything else is answered with the question itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_ANSWERED = re.compile(r"^Q: (.+) → (.+)$", re.MULTILINE)
_TASK = re.compile(r"^Task: (.+)$", re.MULTILINE)

_SIZE = "How big should the change be?"
_CARE = "What matters most?"
_LIMITS = "You chose {size!r}: what must not change?"


@dataclass(frozen=True, slots=True)
class Demo:
    """Asks twice, the second time about what was answered the first time, and then knows enough."""

    async def complete(self, system: str, user: str) -> str:  # ruff: ignore[no-self-use] a Backend
        """The scripted answer."""
        if '"questions"' in system and (task := _TASK.search(user)):
            answers = dict(_ANSWERED.findall(user))
            return json.dumps(_questions(task[1], answers))
        return user


def _questions(task: str, answers: dict[str, str]) -> dict[str, object]:
    if not answers:
        size = _question(_SIZE, ["As small as possible", "As it needs to be", "A rewrite"])
        care = _question(_CARE, ["Speed", "Safety", "Simplicity"], typed=True)
        return {"goal": task, "description": task, "questions": [size, care], "done": False}
    if len(answers) == 2:
        follow_up = _LIMITS.format(size=answers.get(_SIZE, "nothing"))
        limits = _question(follow_up, ["The API", "The tests", "Nothing"], typed=True)
        return {"questions": [limits], "done": False}
    return {"questions": [], "done": True}


def _question(text: str, labels: list[str], *, typed: bool = False) -> dict[str, object]:
    options = [{"label": label, "value": label.lower().replace(" ", "-")} for label in labels]
    return {"question": text, "options": options, "allowFreeText": typed}
