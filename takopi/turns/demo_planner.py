"""Plans by a script instead of a model, so that the whole loop runs without one."""

from __future__ import annotations

import re

from takopi.turns.plan import Chat, Create, Execute, Plan, Read
from takopi.turns.render import render

_FILE = re.compile(r"^### \[(demo/hello-\d+\.txt)\]", re.MULTILINE)


def plan(system: str, user: str) -> str:
    """The same question, the same plan: a file with the person's words, then a look at it."""
    agent = re.search(r'<agent name="(\w+)"', system)
    number = 1 + len(set(_FILE.findall(user)))
    path = f"demo/hello-{number}.txt"
    words = user.rpartition("## User Request\n")[2].strip() or "Hello."
    return render(
        Plan(
            title=f"Say hello, number {number}",
            status="Green 🟢",
            plan_type="Demo",
            agent=(agent[1] if agent else "pathfinder").title(),
            rationale="The demo planner writes down what it was told, and shows it.",
            actions=(
                Create(path=path, content=f"{words}\n", description="What was asked."),
                Execute(command=f"cat {path}", description="Show it.", expected="The words."),
                Read(path=path, description="Know it in the next turn."),
                Chat(text="Tell me more, and I will write that down as well."),
            ),
        )
    )
