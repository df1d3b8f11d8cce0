from __future__ import annotations

from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused
from takopi.projects.branches import find_base
from tests.projects.repos import clone, make_repo, run_git

DEADLINE_S = 60


async def base_of(root: Path, configured: str | None = None) -> str:
    with trio.fail_after(DEADLINE_S):
        return await find_base(root, configured)


async def test_configured_base_comes_first(tmp_path: Path) -> None:
    origin = make_repo(tmp_path / "origin")
    repo = clone(origin, tmp_path / "repo")
    run_git(repo, "branch", "dev")
    assert await base_of(repo, "dev") == "dev"


async def test_configured_base_that_only_origin_has_is_named_with_origin(tmp_path: Path) -> None:
    origin = make_repo(tmp_path / "origin")
    run_git(origin, "branch", "dev")
    repo = clone(origin, tmp_path / "repo")
    assert await base_of(repo, "dev") == "origin/dev"


async def test_configured_base_may_be_a_tag_or_a_commit(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "tag", "v1")
    commit = run_git(repo, "rev-parse", "HEAD")
    assert await base_of(repo, "v1") == "v1"
    assert await base_of(repo, commit) == commit


@pytest.mark.parametrize("configured", ["nowhere", "--all", "HEAD:"])
async def test_configured_base_that_does_not_exist_is_refused(
    tmp_path: Path, configured: str
) -> None:
    repo = make_repo(tmp_path / "repo")
    with pytest.raises(Refused, match="does not exist"):
        await base_of(repo, configured)


async def test_default_branch_of_origin_comes_before_the_current_branch(tmp_path: Path) -> None:
    origin = make_repo(tmp_path / "origin", branch="trunk")
    repo = clone(origin, tmp_path / "repo")
    run_git(repo, "switch", "--quiet", "--create", "feat/x")
    assert await base_of(repo) == "trunk"


async def test_default_branch_of_origin_without_a_local_one_is_named_with_origin(
    tmp_path: Path,
) -> None:
    origin = make_repo(tmp_path / "origin", branch="trunk")
    repo = clone(origin, tmp_path / "repo")
    run_git(repo, "switch", "--quiet", "--create", "feat/x")
    run_git(repo, "branch", "--quiet", "--delete", "--force", "trunk")
    assert await base_of(repo) == "origin/trunk"


async def test_default_branch_that_origin_no_longer_has_is_passed_over(tmp_path: Path) -> None:
    origin = make_repo(tmp_path / "origin", branch="trunk")
    repo = clone(origin, tmp_path / "repo")
    run_git(repo, "switch", "--quiet", "--create", "feat/x")
    run_git(repo, "branch", "--quiet", "--delete", "--force", "trunk")
    run_git(repo, "update-ref", "-d", "refs/remotes/origin/trunk")
    assert await base_of(repo) == "feat/x"


async def test_current_branch_comes_before_main(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    run_git(repo, "switch", "--quiet", "--create", "feat/x")
    assert await base_of(repo) == "feat/x"


@pytest.mark.parametrize(
    ("branches", "expected"), [(["main", "master"], "main"), (["master"], "master")]
)
async def test_main_then_master_are_taken_where_no_branch_is_checked_out(
    tmp_path: Path, branches: list[str], expected: str
) -> None:
    repo = make_repo(tmp_path / "repo", branch="other")
    run_git(repo, "switch", "--quiet", "--detach")
    for branch in branches:
        run_git(repo, "branch", branch)
    assert await base_of(repo) == expected


async def test_repository_that_offers_no_base_is_refused(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", branch="other")
    run_git(repo, "switch", "--quiet", "--detach")
    with pytest.raises(Refused) as caught:
        await base_of(repo)
    assert caught.value.what == "cannot determine base branch"


async def test_repository_without_a_commit_has_no_base(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", commit=False)
    with pytest.raises(Refused, match="cannot determine base branch"):
        await base_of(repo)


async def test_folder_that_is_no_repository_is_refused_with_the_words_of_git(
    tmp_path: Path,
) -> None:
    with pytest.raises(Refused, match="not a git repository"):
        await base_of(tmp_path)
