from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from takopi.config.schema import EngineSettings
from takopi.core.ids import EngineId
from takopi.store import ledger
from takopi.store.ledger import NewRun
from takopi.store.scopes import Choices
from tests.app.recording import (
    CHAT,
    DEMO,
    SILENT,
    Rig,
    config_with,
    open_rig,
    token,
)
from tests.app.scope_talk import FORUM, TOPIC, pick, refusal


async def test_agent_is_chosen_by_name(rig: Rig) -> None:
    (said,) = await rig.type("/agent /Demo")

    assert said.text == "demo answers in this chat from now on."
    assert (await rig.choices()).engine == DEMO


async def test_agent_clear_goes_back_to_the_default(rig: Rig) -> None:
    await rig.choose(Choices(engine=DEMO))
    (said,) = await rig.type("/agent clear")

    assert said.text == "The default engine answers in this chat from now on: demo."
    assert await rig.choices() == Choices()


@pytest.mark.parametrize(
    ("typed", "what", "way_out"),
    [
        ("/agent clod", "there is no engine clod", "use one of claude, codex"),
        ("/agent codex", "codex is not installed", "install it: `npm"),
        ("/agent demo please", "that names no engine", "/agent <engine>"),
    ],
)
async def test_agent_refuses_what_cannot_answer(
    rig: Rig, typed: str, what: str, way_out: str
) -> None:
    error = await refusal(rig, typed)

    assert what in error.what
    assert way_out in error.way_out


async def test_agent_offers_what_is_installed(rig: Rig) -> None:
    (card,) = await rig.type("/agent")
    assert "demo answers in this chat." in card.text
    assert card.labels == ["demo"]

    assert await pick(rig, card, "demo") == SILENT
    assert (await rig.choices()).engine == DEMO
    assert rig.card(card.ref).text.text == "demo answers in this chat from now on."
    assert await pick(rig, card, "demo") == "This was decided already."


async def test_agent_can_be_changed_although_the_chosen_one_is_gone(rig: Rig) -> None:
    await rig.choose(Choices(engine=EngineId("gone"), model="m", thread=token("abc")))
    (card,) = await rig.type("/agent")
    assert "has chosen the engine gone, which is not here" in card.text
    assert card.labels == ["demo", "The default"]

    await pick(rig, card, "The default")
    assert await rig.choices() == Choices(thread=token("abc"))


async def test_pick_of_an_engine_that_is_unknown_is_told(rig: Rig) -> None:
    (card,) = await rig.type("/agent")
    forged = card.data("demo")[:-12] + "0" * 12
    assert await rig.press(card, forged) == "This choice is no longer there."

    assert await rig.choices() == Choices()


async def test_change_of_agent_forgets_the_model_and_the_thread_of_the_other(rig: Rig) -> None:
    other = EngineId("codex")
    await rig.choose(Choices(engine=other, model="o9", thread=replace(token("abc"), engine=other)))
    await rig.type("/agent demo")

    assert await rig.choices() == Choices(engine=DEMO)


async def test_same_agent_again_keeps_the_model_and_the_thread(rig: Rig) -> None:
    await rig.choose(Choices(model="m", thread=token("abc")))
    await rig.type("/agent demo")

    assert await rig.choices() == Choices(engine=DEMO, model="m", thread=token("abc"))


async def test_model_is_chosen_and_cleared_by_name(rig: Rig) -> None:
    (said,) = await rig.type("/model big/one:2")
    assert said.text == "demo uses big/one:2 in this chat from now on."
    assert (await rig.choices()).model == "big/one:2"

    (said,) = await rig.type("/model Clear")
    assert said.text == "demo uses the model of its own settings in this chat."
    assert await rig.choices() == Choices()


@pytest.mark.parametrize("name", ["--dangerous", "two words", "line\nbreak", "x" * 201])
async def test_model_refuses_what_is_no_name(rig: Rig, name: str) -> None:
    error = await refusal(rig, f"/model {name}")

    assert error.what == "that cannot be the name of a model"
    assert "/model <name>" in error.way_out


async def test_model_of_no_engine_is_refused(rig: Rig) -> None:
    await rig.choose(Choices(engine=EngineId("gone")))
    assert "/agent" in (await refusal(rig, "/model m")).way_out


async def use_model(rig: Rig, model: str, *, engine: EngineId = DEMO) -> None:
    new = NewRun(CHAT, "x", engine, model=model)
    await rig.db.write(lambda conn: ledger.add(conn, new, now_ms=1))


async def test_model_offers_the_configured_one_and_those_that_were_used(tmp_path: Path) -> None:
    config = config_with(engines={"demo": EngineSettings(model="configured")})
    async with open_rig(tmp_path, config) as rig:
        for name in ("old", "configured", "y" * 150):
            await use_model(rig, name)
        await use_model(rig, "of another", engine=EngineId("codex"))
        await rig.choose(Choices(model="old"))
        (card,) = await rig.type("/model")

        assert card.text.startswith("demo uses old in this chat.")
        assert [label.rstrip("y…") for label in card.labels] == [
            *("configured", "", "old", "The engine's own"),
        ]
        assert await rig.press(card, card.message.card.buttons[1][0].data) == SILENT
        assert (await rig.choices()).model == "y" * 150
        assert await pick(rig, card, "old") == "This was decided already."
        assert (await rig.choices()).model == "y" * 150


async def test_model_can_be_cleared_by_a_button(rig: Rig) -> None:
    await rig.choose(Choices(model="old"))
    (card,) = await rig.type("/model")
    await pick(rig, card, "The engine's own")

    assert await rig.choices() == Choices()


async def test_pick_of_a_model_that_is_forgotten_is_told(rig: Rig) -> None:
    await use_model(rig, "old")
    (card,) = await rig.type("/model")
    await rig.db.write(lambda conn: conn.execute("DELETE FROM runs"))
    assert await pick(rig, card, "old") == "This choice is no longer there."

    assert await rig.choices() == Choices()


@pytest.mark.parametrize(("word", "said"), [("ALL", "Every message"), ("mention", "Only messages")])
async def test_trigger_is_chosen_by_name(rig: Rig, word: str, said: str) -> None:
    (card,) = await rig.type(f"/trigger {word}", scope=TOPIC)

    assert card.text.startswith(said)
    assert (await rig.choices(TOPIC)).trigger_mode == word.lower()


async def test_trigger_is_refused_in_a_private_chat(rig: Rig) -> None:
    assert "private chat" in (await refusal(rig, "/trigger all")).what


async def test_trigger_refuses_other_words(rig: Rig) -> None:
    error = await refusal(rig, "/trigger sometimes", scope=FORUM)

    assert error.what == "/trigger knows no sometimes"
    assert "/trigger mention" in error.way_out


async def test_trigger_shows_what_a_topic_has_from_its_chat_and_can_be_picked(rig: Rig) -> None:
    await rig.choose(Choices(trigger_mode="all"), scope=FORUM)
    (card,) = await rig.type("/trigger", scope=TOPIC)
    assert card.text == "Every message here is for me."

    assert await pick(rig, card, "Only those to me") == SILENT
    assert (await rig.choices(TOPIC)).trigger_mode == "mention"
    assert await pick(rig, card, "All messages") == "This was decided already."
    assert (await rig.choices(TOPIC)).trigger_mode == "mention"


async def test_message_after_a_change_of_agent_does_not_wait_for_the_other_engine(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path, config_with(session_mode="chat")) as rig:
        rig.install("codex", "exec /bin/sleep 600")
        await rig.type("/agent codex")
        first = await rig.start("say: nothing")
        await rig.type("/agent demo")
        second = await rig.ended(await rig.start("say: hello"))

        assert (await rig.run(first)).state == "running"
        assert (second.engine, second.answer) == (DEMO, "hello")
