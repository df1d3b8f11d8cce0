"""What a transport reports reaches the sessions whose cards it is about."""

from __future__ import annotations

from pathlib import Path

import trio

from takopi.app.notices import Troubles
from takopi.core.ids import Scope
from takopi.core.outgoing import Card
from takopi.present.compose import plain
from takopi.store import upkeep
from tests.app.recording import CHAT, GROUP, SOON_S, Arrived, Rig, open_rig
from tests.turns.test_chat import GOOD

TOPIC, OTHER = Scope("telegram", GROUP, 7), Scope("telegram", GROUP)


async def shown(rig: Rig, *, scope: Scope) -> Arrived:
    """The card of a plan that waits."""
    await rig.type("/session new greet", scope=scope)
    (turn,) = rig.desk.shop.start_cwd.glob(".teddy/*/01")
    (turn / "plan.md").write_text(GOOD, encoding="utf-8")
    await rig.type("/session execute", scope=scope)
    return await another(rig)


async def another(rig: Rig) -> Arrived:
    """The next card of it."""
    with trio.fail_after(SOON_S):
        while True:
            changed = rig.transport.changed
            await rig.flush()
            if found := [each for each in rig.arrived if "Quit" in each.labels]:
                rig.arrived.clear()
                return found[-1]
            await changed.wait()


def hooks_of(rig: Rig, nursery: trio.Nursery) -> Troubles:
    troubles = Troubles()
    troubles.tell(nursery, rig.desk.shop)
    troubles.watch(rig.desk.drafts, rig.desk.turns)
    return troubles


async def test_card_of_a_session_follows_its_chat(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig, trio.open_nursery() as nursery:
        await shown(rig, scope=CHAT)
        await rig.db.write(lambda conn: upkeep.move_chat(conn, CHAT, new=OTHER))
        hooks_of(rig, nursery).hooks().on_chat_moved(CHAT, OTHER)
        assert (await another(rig)).scope == OTHER


async def test_card_of_a_session_leaves_a_topic_that_is_gone(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig, trio.open_nursery() as nursery:
        assert (await shown(rig, scope=TOPIC)).scope == TOPIC
        hooks_of(rig, nursery).hooks().on_topic_gone(TOPIC)
        assert (await another(rig)).scope == OTHER


async def test_card_of_a_session_that_was_deleted_comes_again(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig, trio.open_nursery() as nursery:
        card = await shown(rig, scope=CHAT)
        hooks_of(rig, nursery).hooks().on_edit_lost(card.ref, Card(plain("lost")))
        assert (await another(rig)).ref != card.ref
