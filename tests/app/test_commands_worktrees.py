from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from takopi.config.loaded import Project
from takopi.core.context import Context
from takopi.core.errors import Refused
from takopi.core.ids import Scope
from takopi.store.scopes import Choices
from tests.app.recording import CHAT, GROUP, SILENT, Arrived, Rig, config_with, open_rig
from tests.projects.repos import branches, commit_file, make_repo, prepare, project_at, write

LONG = "feature/" + "-".join(["a-name-that-is-longer-than-a-button-can-carry"] * 4)


@pytest.fixture(autouse=True)
def plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """git as it comes, whatever is configured for whoever runs the tests."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_at(make_repo(tmp_path / "repo"))


@pytest.fixture
async def rig(tmp_path: Path, project: Project) -> AsyncGenerator[Rig, None]:
    async with open_rig(tmp_path, config_with(project)) as rig:
        yield rig


def shown(rig: Rig, card: Arrived) -> Arrived:
    """The card as it reads after its last edit."""
    return replace(card, message=replace(card.message, card=rig.card(card.ref)))


async def press(rig: Rig, card: Arrived, label: str) -> None:
    assert await rig.press(card, card.data(label)) == SILENT


async def test_project_without_worktrees_says_how_to_make_one(rig: Rig) -> None:
    (said,) = await rig.type("/worktrees")

    assert said.text.startswith("z80 has no worktrees.")
    assert said.labels == []


async def test_worktrees_are_listed_with_their_buttons(rig: Rig, project: Project) -> None:
    place = await prepare(project, "feat/x")
    commit_file(place, "new.txt", "one\n")
    write(place / "more.txt", "two\n")
    await prepare(project, LONG)
    (card,) = await rig.type("/worktrees Z80")

    assert card.text.startswith("Worktrees of z80\n")
    assert "feat/x · 1 ahead · changed · " in card.text
    assert card.labels[:2] == ["Diff feat/x", "Archive feat/x"]
    assert len(card.labels) == 4
    assert all(len(label) < 40 for label in card.labels)


async def test_unknown_project_is_refused(rig: Rig) -> None:
    with pytest.raises(Refused, match="there is no project z81"):
        await rig.type("/worktrees z81")


async def test_worktrees_without_any_project_is_refused(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        with pytest.raises(Refused, match="there are no projects") as caught:
            await rig.type("/worktrees")
    assert "takopi init" in caught.value.way_out


async def test_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    async with open_rig(tmp_path, config_with(project_at(folder))) as rig:
        with pytest.raises(Refused, match="not a git repository"):
            await rig.type("/worktrees")


async def test_project_that_the_chat_is_bound_to_is_listed(
    tmp_path: Path, project: Project
) -> None:
    other = replace(project, alias="other")
    async with open_rig(tmp_path, config_with(project, other)) as rig:
        await rig.choose(Choices(context=Context("other")))
        (said,) = await rig.type("/worktrees")

    assert said.text.startswith("other has no worktrees.")


async def test_project_is_asked_for_where_there_are_several(
    tmp_path: Path, project: Project
) -> None:
    await prepare(project, "feat/x")
    other = replace(project, alias="other")
    async with open_rig(tmp_path, config_with(other, project)) as rig:
        (card,) = await rig.type("/worktrees")
        assert (card.text, card.labels) == ("Of which project?", ["other", "z80"])

        await press(rig, card, "z80")
        (said,) = await rig.flush()
        assert said.text.startswith("Worktrees of z80\n")
        assert rig.card(card.ref).buttons == ()
        assert await rig.press(card, card.data("z80")) == "This was decided already."
        assert await rig.flush() == []


async def test_pick_of_a_project_that_is_gone_lists_nothing(
    tmp_path: Path, project: Project
) -> None:
    async with open_rig(tmp_path, config_with(project, replace(project, alias="other"))) as rig:
        (card,) = await rig.type("/worktrees")
        rig.config = config_with(project)
        answer = await rig.press(card, card.data("other"))

        assert answer == "This choice is no longer there."
        assert await rig.flush() == []


async def test_short_diff_is_read_in_the_chat(rig: Rig, project: Project) -> None:
    place = await prepare(project, "feat/x")
    commit_file(place, "committed.txt", "one\n")
    write(place / "new.txt", "two\n")
    (card,) = await rig.type("/worktrees")
    await press(rig, card, "Diff feat/x")
    (said,) = await rig.flush()

    assert said.text.startswith("z80 @ feat/x\n")
    assert "+one" in said.text
    assert "+two" in said.text
    assert said.message.attachment is None
    assert [mark.kind for mark in said.message.card.text.marks] == ["bold", "pre"]
    assert said.message.reply_to == card.ref.message_id


async def test_long_diff_is_a_file(rig: Rig, project: Project) -> None:
    place = await prepare(project, LONG)
    write(place / "new.txt", "".join(f"line {number}\n" for number in range(1000)))
    (card,) = await rig.type("/worktrees")
    await rig.press(card, card.message.card.buttons[0][0].data)
    (said,) = await rig.flush()

    assert said.message.attachment is not None
    assert said.message.attachment.name.startswith("z80-feature-a-name")
    assert said.message.attachment.name.endswith(".diff")
    data = said.message.attachment.data
    assert isinstance(data, bytes)
    assert b"+line 999\n" in data
    assert said.text == f"z80 @ {LONG}"


async def test_diff_of_a_worktree_without_changes_says_so(rig: Rig, project: Project) -> None:
    await prepare(project, "feat/x")
    (card,) = await rig.type("/worktrees")
    await press(rig, card, "Diff feat/x")

    assert [said.text for said in await rig.flush()] == ["z80 @ feat/x: nothing has changed."]


async def test_same_diff_is_shown_once_and_another_one_again(rig: Rig, project: Project) -> None:
    place = await prepare(project, "feat/x")
    write(place / "new.txt", "two\n")
    (card,) = await rig.type("/worktrees")
    await press(rig, card, "Diff feat/x")
    await rig.flush()
    for _ in range(2):
        await press(rig, card, "Diff feat/x")
    (said,) = await rig.flush()
    assert said.text == "z80 @ feat/x: nothing has changed since this was shown."

    write(place / "new.txt", "three\n")
    await press(rig, card, "Diff feat/x")
    assert "+three" in (await rig.flush())[0].text


async def test_clean_worktree_is_archived_and_leaves_the_list(rig: Rig, project: Project) -> None:
    place, other = await prepare(project, "feat/x"), await prepare(project, LONG)
    (card,) = await rig.type("/worktrees")
    await press(rig, card, "Archive feat/x")
    after = shown(rig, card)

    assert not place.exists()
    assert other.exists()
    assert "feat/x" in branches(project.path)
    assert after.text.startswith("The worktree of feat/x is archived; the branch is still there.")
    assert len(after.labels) == 2


async def test_second_press_on_archive_is_told_that_it_is_gone(rig: Rig, project: Project) -> None:
    await prepare(project, "feat/x")
    (card,) = await rig.type("/worktrees")
    for _ in range(2):
        await press(rig, card, "Archive feat/x")

    assert shown(rig, card).text.startswith("That worktree is no longer there.")
    assert "feat/x" in branches(project.path)


async def test_changed_worktree_is_archived_only_when_confirmed(rig: Rig, project: Project) -> None:
    place = await prepare(project, LONG)
    write(place / "new.txt", "precious\n")
    (card,) = await rig.type("/worktrees")
    for _ in range(2):
        await rig.press(card, card.message.card.buttons[0][1].data)
    question = shown(rig, card)
    assert "has changes that are not committed" in question.text
    assert question.labels == ["Archive it anyway", "Keep it"]
    assert place.exists()

    await press(rig, question, "Archive it anyway")
    assert not place.exists()
    assert shown(rig, card).labels == []
    await press(rig, question, "Archive it anyway")
    assert shown(rig, card).text.startswith("That worktree is no longer there.")


async def test_changed_worktree_can_be_kept(rig: Rig, project: Project) -> None:
    place = await prepare(project, "feat/x")
    write(place / "new.txt", "precious\n")
    (card,) = await rig.type("/worktrees")
    await press(rig, card, "Archive feat/x")
    question = shown(rig, card)
    for _ in range(2):
        await press(rig, question, "Keep it")

    assert place.exists()
    assert shown(rig, card).text.startswith("feat/x was kept.")
    assert shown(rig, card).labels == ["Diff feat/x", "Archive feat/x"]


async def test_worktree_in_which_a_run_works_is_not_archived(rig: Rig, project: Project) -> None:
    place = await prepare(project, "feat/x")
    run = await rig.start("/z80 @feat/x hang")
    await rig.working(run)
    (card,) = await rig.type("/worktrees")
    await press(rig, card, "Archive feat/x")
    (said,) = await rig.flush()

    assert said.text == f"run {run} works there\ncancel it first"
    assert said.message.reply_to == card.ref.message_id
    assert place.exists()


async def test_button_of_a_project_that_is_gone_is_told(rig: Rig, project: Project) -> None:
    await prepare(project, "feat/x")
    (card,) = await rig.type("/worktrees")
    rig.config = config_with()
    await press(rig, card, "Archive feat/x")

    assert [said.text for said in await rig.flush()] == [
        "the project of this list is no longer configured"
    ]
    assert rig.transport.cleared == [card.ref]


async def test_buttons_work_after_a_restart(tmp_path: Path, project: Project) -> None:
    place = await prepare(project, LONG)
    async with open_rig(tmp_path, config_with(project)) as before:
        (card,) = await before.type("/worktrees", scope=Scope("telegram", GROUP, 7))
    async with open_rig(tmp_path, config_with(project)) as rig:
        assert await rig.press(card, card.message.card.buttons[0][1].data) == SILENT
    assert not place.exists()
    assert card.scope != CHAT


async def test_press_is_answered_before_git_is_asked(rig: Rig, project: Project) -> None:
    await prepare(project, "feat/x")
    (card,) = await rig.type("/worktrees")
    before = len(rig.transport.log)
    await press(rig, card, "Diff feat/x")

    assert rig.transport.log[before:] == ["acknowledge", "wake"]
