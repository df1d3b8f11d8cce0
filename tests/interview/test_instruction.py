from __future__ import annotations

from takopi.interview.signal import INSTRUCTION

ASKED_FOR = """\
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


def test_instruction_is_the_one_that_was_asked_for_byte_for_byte() -> None:
    assert ASKED_FOR == INSTRUCTION
