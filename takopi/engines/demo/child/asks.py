"""Words that need a person: approvals, questions and plans, and what is made of the answers."""

from __future__ import annotations

from takopi.engines.demo.child.texts import PLAN
from takopi.engines.demo.child.turn import Turn
from takopi.engines.demo.child.where import folder_name
from takopi.engines.demo.child.wire import items, strings
from takopi.engines.demo.child.words import Step, seconds

MAX_REVISIONS = 3
"""How often a plan is revised before it is given up: nobody may be there to approve it."""

COLOUR: dict[str, object] = {
    "text": "Which colour should it be?",
    "header": "Colour",
    "choices": [
        {"label": "Blue", "description": "like the sea"},
        {"label": "Green", "description": "like the algae"},
        {"label": "Red", "description": "like a startled octopus"},
    ],
}
PARTS: dict[str, object] = {
    "text": "Which parts should it have?",
    "header": "Parts",
    "choices": [{"label": "Docs"}, {"label": "Tests"}, {"label": "Examples"}],
    "several": True,
}
NAME: dict[str, object] = {"text": "What should it be called?", "header": "Name", "choices": []}

QUESTIONS: dict[str, list[dict[str, object]]] = {
    "ask question": [COLOUR],
    "ask several": [PARTS],
    "ask two": [COLOUR, PARTS],
    "ask text": [NAME],
    "ask briefly": [COLOUR],
}


class Decision:
    """What a person decided, as far as it can be understood."""

    __slots__ = ("allowed", "for_thread", "reason", "replies")

    def __init__(self, line: dict[str, object]) -> None:
        self.allowed = line.get("verdict") in {"allow", "allow_thread"}
        self.for_thread = line.get("verdict") == "allow_thread"
        self.reason = str(line.get("reason") or "")
        self.replies = [", ".join(strings(reply)) for reply in items(line.get("replies"))]


def may(turn: Turn, tool: str, *, target: str, preview: str) -> tuple[bool, str]:
    """Whether a person allows it, and the reason if not; asked only after `ask approval`."""
    if not turn.must_ask:
        return True, ""
    turn.must_ask = False
    if tool in turn.memory.allowed:
        turn.do("note", f"{tool} is allowed in this thread")
        return True, ""
    decision = _ask(
        turn, kind="approval", tool=tool, target=target, preview=preview, for_thread=True
    )
    if decision.for_thread:
        turn.memory.allow(tool)
    return decision.allowed, decision.reason


def ask_questions(turn: Turn, step: Step) -> None:
    """Ask, and repeat the answers."""
    questions = QUESTIONS[step.name]
    decision = _ask(turn, kind="question", questions=questions)
    if not decision.allowed:
        turn.say(f"You did not answer: {decision.reason or 'no reason was given'}")
        return
    replies = [*decision.replies, *[""] * len(questions)]
    for question, reply in zip(questions, replies, strict=False):
        turn.say(f"{question['text']} You said: {reply or 'nothing'}")


def ask_briefly(turn: Turn, step: Step) -> None:
    """Ask, and take the question back when the time is over."""
    ask_id = turn.next_ask_id()
    turn.wire.say("ask", id=ask_id, kind="question", questions=QUESTIONS[step.name])
    if (line := turn.wire.hear("answer", seconds=seconds(step.args[0]))) is None:
        turn.wire.say("withdraw", id=ask_id)
        turn.say("I took my question back.")
    else:
        turn.say(f"You said: {', '.join(Decision(line).replies) or 'nothing'}")


def propose_plan(turn: Turn, _step: Step) -> None:
    """Show a plan until it is approved, with every reason worked in; then carry it out."""
    reasons: list[str] = []
    while True:
        plan = PLAN.format(folder=folder_name())
        if reasons:
            asked_for = "\n".join(f"- {reason}" for reason in reasons)
            plan += f"\n## Changes you asked for\n\n{asked_for}\n"
        decision = _ask(turn, kind="approval", tool="plan", plan=plan)
        if decision.allowed:
            break
        reasons.append(decision.reason or "make it better")
        if len(reasons) > MAX_REVISIONS:
            turn.say(f"The plan was not approved, last because: {reasons[-1]}")
            return
        turn.do("note", f"Revise the plan: {reasons[-1]}")
    for title in ("Look around", "Say hello", "Check the greeting"):
        turn.do("tool", title)
    after = f" after {len(reasons)} revision{'s' * (len(reasons) > 1)}" if reasons else ""
    turn.say(f"The plan was approved{after}, and I carried it out.")


def _ask(turn: Turn, **fields: object) -> Decision:
    ask_id = turn.next_ask_id()
    turn.wire.say("ask", id=ask_id, **fields)
    while True:
        line = turn.wire.hear("answer")
        if line is not None and line.get("id") == ask_id:
            return Decision(line)
