"""A draft from the side of who makes it: what is said, and the card that shows it."""

from __future__ import annotations

from tests.botapi.chats import Chat, Message
from tests.e2e.rig import Rig


async def draft(rig: Rig, *inputs: str) -> Message:
    """Switch drafting on, and say so many things; the card, once they are in."""
    await rig.start()
    await rig.reply(await rig.say("/draft on"), "put together")
    for said in inputs:
        await rig.say(said)
    return await card_with(rig, text(*inputs))


def text(*inputs: str) -> str:
    return "\n".join(f"* {said}" for said in inputs)


async def card_with(rig: Rig, shown: str, *, chat: Chat | None = None) -> Message:
    """The card that shows this text and nothing that goes on."""
    return await rig.sees(
        lambda m: m.text.split("\n\n")[0] == shown and "Taking in" not in m.text, chat=chat
    )


def versions(rig: Rig) -> list[str]:
    return [row[0] for row in rig.rows("SELECT text FROM draft_versions ORDER BY number")]
