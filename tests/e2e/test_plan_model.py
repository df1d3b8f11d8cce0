"""/plan with a model behind it: the real SDK on loopback, and a real process in place of claude."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

from tests.botapi.chats import Message
from tests.e2e.rig import Rig
from tests.e2e.test_plan import TASK, card, session, session_file, summary
from tests.e2e.test_plan_signal import SIGNAL
from tests.model.script import Fail, Hang, Rule, Say
from tests.model.server import Model, serve_model

DONE = Say('{"questions": [], "done": true}')
BAD = Say("I would rather talk about it.")

Way: TypeAlias = Literal["api", "cli"]
Reply: TypeAlias = Say | Fail | Hang

# Answers with the next line of `replies.jsonl`, and keeps every prompt beside it.
CLAUDE = """\
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
prompt = sys.stdin.read()
with open(here + "/prompts.jsonl", "a+") as file:
    file.seek(0)
    number = len(file.readlines())
    file.write(json.dumps(prompt) + "\\n")
with open(here + "/replies.jsonl") as file:
    reply = file.readlines()[number]
if reply == "\\n":
    time.sleep(600)
sys.stdout.write(reply)
"""


@dataclass(frozen=True)
class Asked:
    """What the model was asked, whichever way."""

    folder: Path
    model: Model | None = None

    @property
    def prompts(self) -> list[str]:
        if self.model is not None:
            latest = [conversation.latest for conversation in self.model.conversations]
            return [turn.text for turn in latest if turn is not None]
        lines = (self.folder / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@asynccontextmanager
async def planning(
    rig: Rig, way: Way, *replies: Reply, config: str = ""
) -> AsyncGenerator[Asked, None]:
    """A takopi that listens, and whose model says these things, one after the other."""
    folder = rig.folder / "model"
    folder.mkdir()
    if way == "cli":
        configure_claude(rig, folder, replies, config)
        await rig.start()
        yield Asked(folder)
        return
    # The SDK asks again by itself after some errors, and gets the same one.
    script = [Rule("", reply, times=None if isinstance(reply, Fail) else 1) for reply in replies]
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_text("canary-key")
    async with serve_model(script) as model:
        rig.configure(
            f'oneshot.backend = "api"\noneshot.base_url = "{model.base_url}"\n'
            f'oneshot.api_key_file = "{key}"\n{config}'
        )
        await rig.start()
        yield Asked(folder, model)


def configure_claude(rig: Rig, folder: Path, replies: Sequence[Reply], config: str) -> None:
    program = folder / "claude"
    program.write_text(f"#!{sys.executable}\n{CLAUDE}", encoding="utf-8")
    program.chmod(0o755)
    lines = "".join(f"{claude_line(reply)}\n" for reply in replies)
    (folder / "replies.jsonl").write_text(lines, encoding="utf-8")
    rig.configure(f'oneshot.backend = "cli"\nclaude.command = "{program}"\n{config}')


def claude_line(reply: Reply) -> str:
    """How claude prints it; nothing, where it never does."""
    match reply:
        case Hang():
            return ""
        case Fail(status, message):
            words, code, failed = f"API Error: {status} {message}", status, True
        case Say(text):
            words, code, failed = text, None, False
    return json.dumps({
        "type": "result", "is_error": failed, "result": words,
        "stop_reason": "end_turn", "api_error_status": code,
    })  # fmt: skip


def batch(*questions: str) -> Say:
    options = [{"label": "Yes", "value": "y"}, {"label": "No", "value": "n"}]
    asked = [{"question": question, "options": options} for question in questions]
    return Say(json.dumps({"goal": "g", "description": "d", "questions": asked, "done": False}))


async def plan(rig: Rig) -> None:
    await rig.say(f"/plan {TASK}")


async def ask_back(rig: Rig) -> None:
    """A run asks one question, so that the first call to the model is one for more of them."""
    await rig.say(f"signal {json.dumps(SIGNAL)}")
    await rig.press(await card(rig, 1), "App")


both = pytest.mark.parametrize("way", ["api", "cli"])


@both
async def test_second_batch_is_asked_for_with_the_answers_of_the_first(rig: Rig, way: Way) -> None:
    async with planning(rig, way, batch("One?", "Two?"), batch("Three?"), DONE) as asked:
        await plan(rig)
        await rig.press(await card(rig, 1), "Yes")
        await rig.press(await card(rig, 2), "No")
        await rig.press(await card(rig, 3), "Yes")
        await summary(rig)
        first, second, third = asked.prompts
    # The card that says so is gone once there is something to ask.
    checked = [m for m in rig.chat.everything if "Checking for follow-up questions..." in m.text]
    assert checked
    assert not [m for m in checked if m in rig.chat.messages]
    assert first.startswith(f"Task: {TASK}\nGenerate 2\N{EN DASH}4 clarifying questions.")
    said = "Answers gathered so far:\nQ: One? → Yes\nQ: Two? → No\n\nDo you need more"
    assert said in second
    assert "Q: Two? → No\nQ: Three? → Yes\n" in third


@both
@pytest.mark.parametrize("rounds", [1, 2, 3])
async def test_model_that_knows_enough_ends_the_questions(rig: Rig, way: Way, rounds: int) -> None:
    questions = [f"Number {number}?" for number in range(1, rounds)]
    async with planning(rig, way, *map(batch, questions), DONE) as asked:
        await plan(rig)
        for number in range(1, rounds):
            await rig.press(await card(rig, number), "Yes")
        ready = await summary(rig)
        assert len(asked.prompts) == rounds
    for number, question in enumerate(questions, 1):
        assert f"Q{number}: {question} → Yes" in ready.text


@both
async def test_after_three_rounds_nobody_is_asked_for_a_fourth(rig: Rig, way: Way) -> None:
    async with planning(rig, way, *map(batch, ("One?", "Two?", "Three?"))) as asked:
        await plan(rig)
        for number in (1, 2, 3):
            await rig.press(await card(rig, number), "Yes")
        await summary(rig)
        assert len(asked.prompts) == 3


@both
async def test_answer_that_is_no_json_is_asked_for_once_more(rig: Rig, way: Way) -> None:
    async with planning(rig, way, BAD, batch("One?")) as asked:
        await plan(rig)
        await card(rig, 1)
        assert BAD.text in asked.prompts[1]
        assert session(rig)["round"] == 1


FAULTS = pytest.mark.parametrize(
    ("replies", "why", "timeout_s"),
    [
        ((BAD, BAD), "JSON", 60),
        ((Hang(),), "the model did not answer within 3 s", 3),
        ((Fail(401, "invalid x-api-key"),), "invalid x-api-key", 60),
        ((Fail(529, "Overloaded"),), "Overloaded", 60),
    ],
    ids=["bad JSON twice", "silence", "401", "529"],
)


@both
@FAULTS
async def test_model_that_fails_at_first_ends_the_plan_and_says_why(
    rig: Rig, way: Way, replies: tuple[Reply, ...], why: str, timeout_s: int
) -> None:
    async with planning(rig, way, *replies, config=f"oneshot.timeout_s = {timeout_s}"):
        await plan(rig)
        await rig.sees_text(why)
        await rig.until_so(lambda: not session_file(rig).exists())
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]


@both
@FAULTS
async def test_model_that_fails_later_leaves_the_answers_there_are(
    rig: Rig, way: Way, replies: tuple[Reply, ...], why: str, timeout_s: int
) -> None:
    async with planning(rig, way, *replies, config=f"oneshot.timeout_s = {timeout_s}"):
        await ask_back(rig)
        told = await rig.sees_text("There are no follow-up questions: ", why)
        ready: Message = await summary(rig, after=told)
    assert "Q1: Which login is broken? → App" in ready.text
    assert session(rig)["state"] == "CONFIRMING"
