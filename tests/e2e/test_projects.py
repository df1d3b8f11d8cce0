from __future__ import annotations

from pathlib import Path

from tests.botapi.chats import Message
from tests.e2e.rig import Rig
from tests.projects.repos import branches, commit_file, head_of, run_git


def project(alias: str, path: Path, more: str = "") -> str:
    return f'[projects.{alias}]\npath = "{path}"\n{more}\n'


def ends_with(message: Message, *lines: str) -> bool:
    """Whether these are the last lines, the resume line aside."""
    return message.text.splitlines()[-len(lines) - 1 : -1] == list(lines)


async def test_branch_runs_in_its_worktree_with_ctx_in_progress_and_answer(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(project("z80", repo))
    await rig.start()

    prompt = await rig.say("/z80 @feat/name run pwd")
    progress = await rig.progress(prompt)
    answer = await rig.ending(prompt)

    assert str(repo / ".worktrees/feat/name") in answer.text.splitlines()
    assert "ctx: z80 @ feat/name" in progress.versions[0].text
    assert all("ctx: z80 @ feat/name" in version.text for version in progress.versions)
    assert ends_with(answer, "ctx: z80 @ feat/name")
    assert answer.text.splitlines()[-1].startswith("demo --resume ")
    assert head_of(repo / ".worktrees/feat/name") == "feat/name"


async def test_missing_branch_is_made_from_the_base(rig: Rig) -> None:
    repo = rig.project("z80")
    run_git(repo, "branch", "develop")
    run_git(repo, "switch", "--quiet", "develop")
    base = commit_file(repo, "on-develop.txt", "hello")
    run_git(repo, "switch", "--quiet", "main")
    rig.configure(project("z80", repo, 'worktree_base = "develop"'))
    await rig.start()

    answer = await rig.answer("/z80 @new run git log -1 --format=%H")

    assert base in answer.text
    assert branches(repo) == ["develop", "main", "new"]


async def test_existing_branch_is_checked_out_as_it_is(rig: Rig) -> None:
    repo = rig.project("z80")
    run_git(repo, "switch", "--quiet", "--create", "there")
    commit = commit_file(repo, "there.txt", "hello")
    run_git(repo, "switch", "--quiet", "main")
    rig.configure(project("z80", repo))
    await rig.start()

    answer = await rig.answer("/z80 @there run git log -1 --format=%H")

    assert commit in answer.text
    assert branches(repo) == ["main", "there"]


async def test_reply_to_a_ctx_message_ignores_new_directives(rig: Rig) -> None:
    z80, other = rig.project("z80"), rig.project("other")
    rig.configure(project("z80", z80) + project("other", other))
    await rig.start()
    first = await rig.answer("/z80 @feat/name remember the number 42")

    second = await rig.answer("/other @elsewhere run pwd then what do you remember", to=first)

    assert str(z80 / ".worktrees/feat/name") in second.text.splitlines()
    assert "the number 42" in second.text
    assert ends_with(second, "ctx: z80 @ feat/name")
    assert branches(other) == ["main"]


async def test_person_is_told_that_the_directives_of_a_reply_were_ignored(rig: Rig) -> None:
    rig.configure(project("z80", rig.project("z80")) + project("other", rig.project("other")))
    await rig.start()
    first = await rig.answer("/z80 @feat/name hello")

    again = await rig.say("/other @elsewhere hang", to=first)

    progress = await rig.progress(again)
    assert "/other @elsewhere was ignored, as a reply stays where it belongs" in progress.text


async def test_ctx_line_of_a_message_from_before_decides_where_the_store_knows_nothing(
    rig: Rig,
) -> None:
    z80 = rig.project("z80")
    rig.configure(project("z80", z80) + project("other", rig.project("other")))
    await rig.start()
    old = rig.chat.add(rig.api.bot, {"text": "done · demo\n\nHello.\n\nctx: z80 @ feat/name"})

    answer = await rig.answer("/other @elsewhere run pwd", to=old)

    assert str(z80 / ".worktrees/feat/name") in answer.text.splitlines()


async def test_directives_on_a_line_of_their_own_leave_the_prompt_below_as_it_is(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(project("z80", repo))
    await rig.start()

    answer = await rig.answer("/z80 @feat/name\nrun pwd\n\nsay: two\n\n   words")

    assert rig.rows("SELECT prompt FROM runs") == [("run pwd\n\nsay: two\n\n   words",)]
    assert ends_with(answer, "ctx: z80 @ feat/name")


async def test_project_without_a_branch_runs_in_its_root(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(project("z80", repo))
    await rig.start()

    answer = await rig.answer("/z80 run pwd")

    assert str(repo) in answer.text.splitlines()
    assert ends_with(answer, "ctx: z80")
    assert not (repo / ".worktrees").exists()


async def test_default_project_is_where_a_plain_message_runs(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure('default_project = "z80"\n' + project("z80", repo))
    await rig.start()

    answer = await rig.answer("@main run pwd")

    assert str(repo) in answer.text.splitlines()
    assert ends_with(answer, "ctx: z80 @ main")


async def test_people_without_projects_run_where_takopi_was_started(rig: Rig) -> None:
    await rig.start()

    prompt = await rig.say("run pwd")
    progress = await rig.progress(prompt)
    answer = await rig.ending(prompt)

    assert str(rig.cwd) in answer.text.splitlines()
    assert "ctx:" not in answer.text
    assert not any("ctx:" in version.text for version in progress.versions)


async def test_branch_without_a_project_is_refused_with_a_way_out(rig: Rig) -> None:
    await rig.start()

    prompt = await rig.say("@feat/name do x")

    refusal = await rig.reply(prompt)
    assert refusal.text.splitlines() == [
        "@feat/name names a branch, but no project",
        "add one: run takopi init in its folder",
    ]


async def test_branch_that_leaves_the_worktrees_is_refused_before_git_runs(rig: Rig) -> None:
    repo = rig.project("z80")
    rig.configure(project("z80", repo))
    await rig.start()

    for branch in ("../x", "/abs"):
        refused = await rig.ending(await rig.say(f"/z80 @{branch} do x"), "error")
        what, way_out = refused.text.splitlines()[2:4]
        assert what.startswith(f"@{branch} cannot be a branch: ")
        assert way_out == "name another one"

    assert branches(repo) == ["main"]
    assert not (repo / ".worktrees").exists()


async def test_two_directives_of_a_kind_are_refused_by_their_names(rig: Rig) -> None:
    rig.configure(project("z80", rig.project("z80")) + project("other", rig.project("other")))
    await rig.start()

    prompt = await rig.say("/z80 /other do x")

    refusal = await rig.reply(prompt)
    assert "/z80" in refusal.text
    assert "/other" in refusal.text
    assert rig.rows("SELECT id FROM runs") == []


async def test_engine_of_the_command_line_is_the_default_one(rig: Rig) -> None:
    rig.configure('pi.command = "/nowhere/pi"')
    await rig.start("pi")

    prompt = await rig.say("hello")

    await rig.reply(prompt, "/nowhere/pi")


async def test_engine_of_a_directive_wins_over_the_default_one(rig: Rig) -> None:
    file = rig.home / "takopi.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('default_engine = "demo"', 'default_engine = "codex"'))
    await rig.start()

    answer = await rig.answer("/demo hello")

    assert answer.text.startswith("done · demo · ")
    assert "You said: “hello”" in answer.text
