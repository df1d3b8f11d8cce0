from __future__ import annotations

import pytest

from tests.config.names import keys, parsed, problems


def test_files_are_off_by_default() -> None:
    files = parsed("").files
    assert (files.enabled, files.uploads_dir) == (False, ".uploads")
    assert ".git" in files.deny


@pytest.mark.parametrize(
    "folder", ["/tmp/x", "../x", "a/../../x", ".", "./", ".git/x", "a/.GIT", "a\\u0000b"]
)
def test_uploads_folder_must_lie_inside_of_the_project(folder: str) -> None:
    assert keys(f'files.uploads_dir = "{folder}"') == ["files.uploads_dir"]


@pytest.mark.parametrize("folder", ["in", "in/box", ".takopi/in"])
def test_uploads_folder_may_be_any_folder_of_the_project(folder: str) -> None:
    assert parsed(f'files.uploads_dir = "{folder}"').files.uploads_dir == folder


def test_pattern_with_brackets_is_refused_as_they_would_mean_nothing() -> None:
    (problem,) = problems('files.deny = [".git", "id_[rd]sa"]')
    assert problem.key == "files.deny"
    assert '"id_[rd]sa"' in problem.what
    assert "?" in problem.way_out
