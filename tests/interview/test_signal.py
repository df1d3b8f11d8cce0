from __future__ import annotations

import json
from typing import Any

import pytest

from takopi.interview.signal import read_signal


def signal(count: int = 3, **changes: Any) -> dict[str, Any]:
    options = [{"label": "Web", "value": "web"}, {"label": "App", "value": "app"}]
    questions = [{"question": f"Number {n}?", "options": options} for n in range(count)]
    return {"interactive": True, "goal": "g", "description": "d", "questions": questions} | changes


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(signal()),
        json.dumps(signal(), separators=(",", ":")),
        json.dumps(signal(), indent=2),
        f"```json\n{json.dumps(signal())}\n```",
        f"\n```\n{json.dumps(signal(), indent=2)}\n```\n",
    ],
    ids=["a space after the colon", "no space", "lines", "fenced", "fenced, without a language"],
)
def test_answer_that_is_nothing_but_the_signal_is_one(text: str) -> None:
    batch = read_signal(text, task="t")
    assert batch is not None
    assert [question.question for question in batch.questions] == [
        "Number 0?", "Number 1?", "Number 2?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        f"Here you are: {json.dumps(signal())}",
        f"{json.dumps(signal())}\nThat is all.",
        f"```\n{json.dumps(signal())}\n```\nThat is all.",
        json.dumps(signal())[:-1],
        json.dumps(signal(interactive=False)),
        json.dumps(signal(interactive="true")),
        json.dumps(signal(questions=[])),
        json.dumps(signal(questions=[{"question": "  "}])),
        json.dumps([signal()]),
        json.dumps({"tool_calls": [signal()]}),
        "[" * 100_000,
        "",
    ],
)
def test_any_other_answer_is_to_be_shown(text: str) -> None:
    assert read_signal(text, task="t") is None


def test_seven_questions_are_taken_and_an_eighth_is_not() -> None:
    batch = read_signal(json.dumps(signal(8)), task="t")
    assert batch is not None
    assert len(batch.questions) == 7
