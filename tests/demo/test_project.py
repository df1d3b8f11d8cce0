from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from takopi.cli.demo_project import CURE, make_project
from tests.projects.repos import head_of, run_git


def run_tests(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-B", "-m", "unittest"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr


async def test_one_test_of_the_project_fails_until_it_is_cured(tmp_path: Path) -> None:
    folder = tmp_path / "aquarium"
    with trio.fail_after(60):
        await make_project(folder)
    assert "FAILED (failures=1)" in run_tests(folder)

    (folder / "arms.json").write_text(CURE, encoding="utf-8")

    assert run_tests(folder).endswith("OK\n")


async def test_project_is_committed_whatever_the_person_has_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "gitconfig"
    own.write_text(
        "[commit]\ngpgSign = true\n[gpg]\nprogram = /bin/false\n[init]\ndefaultBranch = trunk\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    folder = tmp_path / "aquarium"

    with trio.fail_after(60):
        await make_project(folder)

    assert head_of(folder) == "main"
    assert not run_git(folder, "status", "--porcelain")
