from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused, Unfit
from takopi.projects.git import git, git_deadline, git_head
from tests.projects.repos import make_repo, run_git

DEADLINE_S = 60


async def test_git_says_what_it_found(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with trio.fail_after(DEADLINE_S):
        result = await git(repo, "rev-parse", "--abbrev-ref", "HEAD")
    assert (result.ok, result.code, result.checked()) == (True, 0, "main")


async def test_failure_keeps_the_words_of_git(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with trio.fail_after(DEADLINE_S):
        result = await git(repo, "switch", "nowhere")
    assert not result.ok
    assert result.words == "fatal: invalid reference: nowhere"
    with pytest.raises(Refused) as caught:
        result.checked()
    assert caught.value.what == "git switch failed: invalid reference: nowhere"


async def test_words_are_english_whatever_the_language_of_the_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    with trio.fail_after(DEADLINE_S):
        result = await git(tmp_path, "-c", "alias.say=!echo $LC_ALL $GIT_TERMINAL_PROMPT", "say")
    assert result.checked() == "C 0"


async def test_missing_git_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with trio.fail_after(DEADLINE_S):
        with pytest.raises(Unfit) as caught:
            await git(tmp_path, "--version")
    assert "apt-get install git" in caught.value.way_out


async def test_repository_of_a_hook_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = make_repo(tmp_path / "ours"), make_repo(tmp_path / "theirs")
    monkeypatch.setenv("GIT_DIR", str(theirs / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(theirs))
    with trio.fail_after(DEADLINE_S):
        result = await git(ours, "rev-parse", "--show-toplevel")
    assert result.checked() == str(ours)


async def test_token_is_not_in_the_environment_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAKOPI_BOT_TOKEN", "1:canary")
    with trio.fail_after(DEADLINE_S):
        result = await git(tmp_path, "-c", "alias.say=!env", "say")
    assert "canary" not in result.checked()


async def test_paths_that_are_no_utf8_survive(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    repo = make_repo(folder)
    with trio.fail_after(DEADLINE_S):
        result = await git(repo, "rev-parse", "--show-toplevel")
    assert Path(result.checked()) == repo


async def test_deadline_of_the_caller_ends_git(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    started, held = tmp_path / "started", tmp_path / "held"
    os.mkfifo(started)
    os.mkfifo(held)
    run_git(repo, "config", "alias.wait", f"!echo > {started}; cat {held}")
    scope = trio.CancelScope()

    async def wait_for_git() -> None:
        with scope:
            await git(repo, "wait")

    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_git)
            await trio.to_thread.run_sync(started.read_bytes, abandon_on_cancel=True)
            scope.cancel()
    assert scope.cancelled_caught
    # Lets go of what git may have left waiting.
    os.close(os.open(held, os.O_RDWR | os.O_NONBLOCK))


async def test_words_of_the_caller_are_added_to_the_environment(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        said = await git(tmp_path, "-c", "alias.say=!echo $MORE", "say", env={"MORE": "more"})
    assert said.checked() == "more"


async def test_deadline_is_refused_in_words(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        with pytest.raises(Refused) as caught, git_deadline(0.5):
            await git(tmp_path, "-c", "alias.wait=!exec sleep 1000", "wait")
    assert caught.value.what == "git did not answer within 0.5 seconds"


async def test_what_was_done_although_it_was_late_is_not_refused() -> None:
    with git_deadline(0):
        done = "done"
    await trio.lowlevel.checkpoint()
    assert done == "done"


async def test_deadline_of_somebody_else_is_not_taken_for_ours(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        with trio.move_on_after(0.5) as theirs:
            with git_deadline(DEADLINE_S):
                await git(tmp_path, "-c", "alias.wait=!exec sleep 1000", "wait")
    assert theirs.cancelled_caught


async def test_short_output_comes_whole(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        said = await git_head(tmp_path, "-c", "alias.say=!echo hello", "say", max_bytes=6)
    assert said == (b"hello\n", True)


async def test_endless_output_is_cut_and_git_is_ended(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        said = await git_head(tmp_path, "-c", "alias.say=!exec yes", "say", max_bytes=5)
    assert said == (b"y\ny\ny", False)


async def test_failure_of_a_cut_command_keeps_the_words_of_git(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        with pytest.raises(Refused, match="not a git repository"):
            await git_head(tmp_path, "rev-parse", max_bytes=5)


async def test_many_warnings_do_not_block_the_output(tmp_path: Path) -> None:
    script = "alias.say=!yes warning | head -c 1000000 >&2; echo done"
    with trio.fail_after(DEADLINE_S):
        said = await git_head(tmp_path, "-c", script, "say", max_bytes=100)
    assert said == (b"done\n", True)


async def test_missing_git_is_told_for_cut_commands_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with trio.fail_after(DEADLINE_S):
        with pytest.raises(Unfit):
            await git_head(tmp_path, "--version", max_bytes=5)
