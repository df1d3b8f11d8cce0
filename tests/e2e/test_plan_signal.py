"""An engine that asks back: its questions become a plan, and whatever else it says is shown."""

from __future__ import annotations

import json

import pytest

from takopi.interview.signal import INSTRUCTION
from tests.e2e.rig import Rig
from tests.e2e.test_plan import card, data, session, session_file, summary

SIGNAL = {
    "interactive": True,
    "goal": "fix-auth",
    "description": "fix-the-auth-bug",
    "questions": [
        {
            "id": "q1",
            "question": "Which login is broken?",
            "options": [{"label": "Web", "value": "web"}, {"label": "App", "value": "app"}],
            "allowFreeText": False,
        }
    ],
}


async def test_tc11_an_answer_of_nothing_but_questions_starts_an_interview(rig: Rig) -> None:
    await rig.start()
    await rig.say(f"signal {json.dumps(SIGNAL)}")
    first = await rig.sees_text("Which login is broken?")
    assert "done · " not in rig.transcript
    assert data(first) == ["iq:a:0:0", "iq:a:0:1", "iq:back", "iq:cancel"]
    kept = session(rig)
    assert (kept["goal"], kept["order"]["engine"]) == ("fix-auth", "demo")
    ((thread,),) = rig.rows("SELECT thread FROM runs")
    assert kept["order"]["thread"] == thread


async def test_run_is_told_how_it_may_ask_back(rig: Rig) -> None:
    await rig.start()
    told = await rig.answer("show system")
    for words in (INSTRUCTION.splitlines()[0], INSTRUCTION.splitlines()[-1]):
        assert words in told.text


async def test_confirmed_interview_of_a_run_goes_on_in_its_thread_and_asks_no_more(
    rig: Rig,
) -> None:
    rig.configure("interview.max_rounds = 1")
    await rig.start()
    await rig.say(f"signal {json.dumps(SIGNAL)}")
    await rig.press(await card(rig, 1), "App")
    ready = await summary(rig)
    await rig.press(ready, "✅ Confirm & Start")
    # The demo answers the same prompt with the same signal: it is shown this time.
    assert '"interactive": true' in (await rig.ending(ready)).text
    assert rig.rows("SELECT count(DISTINCT thread), count(*) FROM runs") == [(1, 2)]


@pytest.mark.parametrize(
    "text",
    [
        f"tool call ask {json.dumps(SIGNAL)}",
        f"say: Here you are: {json.dumps(SIGNAL)}",
        f"say: {json.dumps(SIGNAL)[:-1]}",
    ],
    ids=["inside a tool call", "prose around it", "no JSON"],
)
async def test_tc11_an_answer_that_is_more_than_questions_is_shown(rig: Rig, text: str) -> None:
    await rig.start()
    answer = await rig.answer(text)
    assert "Which login is broken?" in answer.text
    assert not session_file(rig).exists()


async def test_tc11_questions_that_a_tool_printed_are_no_answer(rig: Rig) -> None:
    await rig.start()
    (rig.cwd / "signal.json").write_text(json.dumps(SIGNAL), encoding="utf-8")
    await rig.answer("run cat signal.json")
    assert not session_file(rig).exists()
