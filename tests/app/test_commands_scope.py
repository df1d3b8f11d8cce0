from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from takopi.app.commands.topic import TOPIC_S
from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.ids import Scope
from takopi.store.scopes import Choices
from tests.app.recording import (
    DEMO,
    GROUP,
    SILENT,
    Rig,
    config_with,
    open_rig,
    token,
)
from tests.app.scope_talk import FORUM, TOPIC, pick, project, refusal


@pytest.mark.parametrize(
    ("typed", "context"),
    [
        ("/ctx set z80", Context("z80")),
        ("/ctx set Z80 @feat/x", Context("z80", "feat/x")),
        ("/ctx SET /web @ fix", Context("Web", "fix")),
        ("/ctx set web@fix", Context("Web", "fix")),
    ],
)
async def test_ctx_set_binds_the_chat(rig: Rig, typed: str, context: Context) -> None:
    (said,) = await rig.type(typed)

    assert "is bound to" in said.text
    assert (await rig.choices()).context == context


async def test_ctx_set_leaves_other_choices_alone(rig: Rig) -> None:
    chosen = Choices(engine=DEMO, model="m", trigger_mode="all", thread=token("abc"))
    await rig.choose(chosen)
    await rig.type("/ctx set z80")

    assert await rig.choices() == replace(chosen, context=Context("z80"))


async def test_ctx_clear_unbinds_the_topic_and_not_its_chat(rig: Rig) -> None:
    await rig.choose(Choices(context=Context("z80")), scope=TOPIC)
    await rig.choose(Choices(context=Context("Web")), scope=FORUM)
    await rig.type("/ctx clear", scope=TOPIC)

    assert await rig.choices(TOPIC) == Choices()
    assert (await rig.choices(FORUM)).context == Context("Web")


@pytest.mark.parametrize(
    ("typed", "what", "way_out"),
    [
        ("/ctx set z81", "there is no project z81", "did you mean z80?"),
        ("/ctx set z80 @-x", "@-x cannot be a branch", "name another"),
        ("/ctx set z80 feat", "that names no project", "/ctx set <project> @branch"),
        ("/ctx set @feat", "that names no project", "/ctx set <project> @branch"),
        ("/ctx bind z80", "/ctx cannot do that: bind z80", "/ctx set <project> @branch"),
        ("/ctx clear z80", "/ctx cannot do that", "/ctx clear"),
    ],
)
async def test_ctx_refuses_what_it_cannot_do(rig: Rig, typed: str, what: str, way_out: str) -> None:
    error = await refusal(rig, typed)

    assert what in error.what
    assert way_out in error.way_out


@pytest.mark.parametrize(
    ("own", "chat", "said"),
    [
        (Context("z80", "x"), None, "This topic is bound to z80 @ x."),
        (None, Context("Web"), "This topic works on what its chat is bound to: Web."),
        (None, None, "This topic has no project and works in "),
        (Context("gone"), None, "bound to the project gone, which is not configured"),
    ],
)
async def test_ctx_shows_what_holds(
    rig: Rig, own: Context | None, chat: Context | None, said: str
) -> None:
    await rig.choose(Choices(context=own), scope=TOPIC)
    await rig.choose(Choices(context=chat), scope=FORUM)
    (card,) = await rig.type("/ctx", scope=TOPIC)

    assert said in card.text
    assert card.labels == ["z80", "Web", *(["Unbind"] if own else [])]


async def test_ctx_shows_the_default_project(rig: Rig) -> None:
    rig.config = replace(rig.config, default_project="Web")
    (card,) = await rig.type("/ctx")

    assert "bound to nothing and works on Web" in card.text


async def test_project_can_be_picked_and_the_card_says_so(rig: Rig) -> None:
    (card,) = await rig.type("/ctx set")
    assert await pick(rig, card, "Web") == SILENT

    assert (await rig.choices()).context == Context("Web")
    assert rig.card(card.ref).text.text == "This chat is bound to Web."
    assert rig.card(card.ref).buttons == ()


async def test_second_pick_on_a_card_changes_nothing_and_is_told(rig: Rig) -> None:
    (card,) = await rig.type("/ctx")
    await pick(rig, card, "Web")
    assert await pick(rig, card, "z80") == "This was decided already."

    assert (await rig.choices()).context == Context("Web")
    assert rig.transport.cleared == [card.ref]
    assert len(rig.transport.edits) == 1


async def test_binding_can_be_undone_by_a_button(rig: Rig) -> None:
    await rig.choose(Choices(context=Context("z80")))
    (card,) = await rig.type("/ctx")
    await pick(rig, card, "Unbind")

    assert await rig.choices() == Choices()


async def test_pick_of_a_project_that_is_gone_is_told(rig: Rig) -> None:
    (card,) = await rig.type("/ctx")
    rig.config = config_with()
    assert await pick(rig, card, "z80") == "This choice is no longer there."

    assert await rig.choices() == Choices()
    assert rig.transport.cleared == [card.ref]


async def test_pick_counts_once_even_after_a_restart(tmp_path: Path) -> None:
    config = config_with(project(tmp_path, "z80"), project(tmp_path, "Web"))
    async with open_rig(tmp_path, config) as before:
        (card,) = await before.type("/ctx")
        await pick(before, card, "Web")
    async with open_rig(tmp_path, config) as rig:
        assert await pick(rig, card, "z80") == "This was decided already."
        assert (await rig.choices()).context == Context("Web")


async def test_picker_from_before_a_restart_still_works(tmp_path: Path) -> None:
    config = config_with(project(tmp_path, "z80"))
    async with open_rig(tmp_path, config) as before:
        (card,) = await before.type("/ctx")
    async with open_rig(tmp_path, config) as rig:
        await pick(rig, card, "z80")
        assert (await rig.choices()).context == Context("z80")


async def test_pick_that_no_card_offered_does_nothing(rig: Rig) -> None:
    (card,) = await rig.type("/ctx")
    forged = card.data("z80").replace(str(card.message.reply_to), "1")
    assert await rig.press(card, forged) == "This was decided already."

    assert await rig.choices() == Choices()


async def test_picker_of_many_projects_with_long_names_can_be_sent(tmp_path: Path) -> None:
    projects = [project(tmp_path, f"{n:03}-{'x' * 200}") for n in range(50)]
    async with open_rig(tmp_path, config_with(*projects)) as rig:
        (card,) = await rig.type("/ctx")
        data = card.message.card.buttons[19][0].data
        await rig.press(card, data)

        assert len(card.labels) == 20
        assert all(len(label) <= 60 for label in card.labels)
        assert (await rig.choices()).context == Context(projects[19].alias)


async def test_topic_is_made_and_bound_and_both_places_are_told(rig: Rig) -> None:
    said = await rig.type("/topic z80 @feat/x", scope=FORUM)

    assert rig.transport.topics == ["z80 @ feat/x"]
    made = Scope("telegram", GROUP, 71)
    assert (await rig.choices(made)).context == Context("z80", "feat/x")
    assert [each.scope for each in said] == [made, FORUM]
    assert [each.text for each in said] == [
        "This topic is bound to z80 @ feat/x. Send a message to start a run.",
        "The topic z80 @ feat/x is there.",
    ]


async def test_topic_typed_in_a_topic_makes_one_of_the_same_chat(rig: Rig) -> None:
    await rig.type("/topic web", scope=TOPIC)

    assert rig.transport.topics == ["Web"]
    assert await rig.choices(TOPIC) == Choices()


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        ("/topic", "that names no project"),
        ("/topic @x", "that names no project"),
        ("/topic nope", "there is no project nope"),
        ("/topic z80 @a..b", "cannot be a branch"),
    ],
)
async def test_topic_refuses_what_cannot_be_bound(rig: Rig, typed: str, what: str) -> None:
    assert what in (await refusal(rig, typed, scope=FORUM)).what
    assert rig.transport.topics == []


async def test_topic_that_the_chat_does_not_want_is_refused(rig: Rig) -> None:
    rig.transport.topic_error = Refused("the topic was not made", way_out="use a group with topics")
    assert (await refusal(rig, "/topic z80")).way_out == "use a group with topics"


async def test_topic_is_not_waited_for_longer_than_its_deadline(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with open_rig(tmp_path, config_with(project(tmp_path, "z80"))) as rig:
        rig.transport.is_stuck = True
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def typed() -> None:
                error = await refusal(rig, "/topic z80", scope=FORUM)
                assert "not made in time" in error.what
                assert "/ctx set" in error.way_out

            del typed
            while "stuck" not in rig.transport.log:
                await rig.transport.changed.wait()
            mock_clock.jump(TOPIC_S)
