from __future__ import annotations

from pathlib import Path

import pytest
import trio

from takopi.config.load import parse
from takopi.config.loaded import Config, Names, Project
from takopi.core.errors import Refused
from takopi.projects.registry import find_project, find_root

DEADLINE_S = 60


def configured(folder: Path, *aliases: str) -> Config:
    tables = [f'[projects.{alias}]\npath = "{folder / alias}"\n' for alias in aliases]
    names = Names(engines={}, commands=frozenset())
    return parse("".join(tables).encode(), names, environ={})


async def root_of(path: Path) -> Path:
    with trio.fail_after(DEADLINE_S):
        return await find_root(Project("z80", path, path / ".worktrees"))


def test_project_is_found_in_any_case(tmp_path: Path) -> None:
    config = configured(tmp_path, "Z80", "other")
    assert find_project(config, "z80").alias == "Z80"
    assert find_project(config, "OTHER").alias == "other"


def test_unknown_project_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        find_project(configured(tmp_path, "Takopi", "z80"), "takopy")
    assert caught.value.what == "there is no project takopy"
    assert caught.value.way_out == "did you mean Takopi?"


def test_unknown_project_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        find_project(configured(tmp_path, "takopi", "z80"), "web")
    assert "takopi, z80" in caught.value.way_out
    assert "takopi init" in caught.value.way_out


def test_without_any_project_the_refusal_says_how_to_add_one(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        find_project(configured(tmp_path), "web")
    assert "takopi init" in caught.value.way_out


async def test_root_comes_without_symlinks(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert await root_of(tmp_path / "link") == (tmp_path / "real").resolve()


@pytest.mark.parametrize(
    ("name", "fault"),
    [("gone", "is not there"), ("file", "is not a folder"), ("loop", "is not a folder")],
)
async def test_root_that_is_no_folder_is_refused(tmp_path: Path, name: str, fault: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Refused) as caught:
        await root_of(tmp_path / name)
    assert f"the folder of z80 {fault}: {tmp_path / name}" in caught.value.what
    assert "takopi init z80" in caught.value.way_out
