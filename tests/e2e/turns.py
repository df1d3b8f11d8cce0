"""Sessions as the tests have them: a plan by the demo's planner, or one of the test's own."""

from __future__ import annotations

from pathlib import Path

from takopi.turns.plan import Action, Memo, Plan
from takopi.turns.render import render
from tests.botapi.chats import Chat, Message
from tests.e2e.rig import Rig

TIER_ONE = ("Approve all", "Review", "Modify", "Skip", "Quit")


def sessions(rig: Rig) -> list[Path]:
    """The folders of the sessions where takopi was started."""
    return sorted((rig.cwd / ".teddy").glob("[0-9]*-*"))


def turns(rig: Rig) -> list[str]:
    """The turns of the only session."""
    (session,) = sessions(rig)
    return sorted(folder.name for folder in session.iterdir() if folder.name.isdecimal())


async def review(rig: Rig, *, after: Message | None = None, chat: Chat | None = None) -> Message:
    """The card of a plan that waits for a decision."""
    return await rig.sees(
        lambda m: m.labels == TIER_ONE and (after is None or m.id > after.id), chat=chat
    )


async def begin(rig: Rig) -> Path:
    """A session whose first turn has no plan."""
    await rig.start()
    await rig.reply(await rig.say("/session new greet"), "has begun")
    (session,) = sessions(rig)
    return session


async def plan(rig: Rig, text: str = "Hello there") -> Message:
    """A session with a plan of the demo's."""
    await begin(rig)
    await rig.say(f"/session plan {text}")
    return await review(rig)


def write_plan(session: Path, *actions: Action, memos: tuple[Memo, ...] = ()) -> str:
    """Put a plan into the first turn; returns its text."""
    text = render(Plan(title="Of the test", rationale="Why.", memos=memos, actions=actions))
    (session / "01/plan.md").write_text(text, encoding="utf-8")
    return text


async def show(rig: Rig, *actions: Action, memos: tuple[Memo, ...] = ()) -> Message:
    """The card of a plan that the test has written."""
    write_plan(await begin(rig), *actions, memos=memos)
    await rig.say("/session execute")
    return await review(rig)


async def done(rig: Rig, *parts: str, chat: Chat | None = None) -> Message:
    """The report of a turn."""
    return await rig.sees(
        lambda m: "Next turn" in m.labels and all(part in m.text for part in parts), chat=chat
    )


def file_of(rig: Rig, message: Message) -> tuple[str, str]:
    """The name and the text of the file that a message brings."""
    document = message.fields["document"]
    return document["file_name"], rig.api.world.files[document["file_id"]].data.decode()
