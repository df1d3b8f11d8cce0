from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from takopi.core.errors import Refused
from takopi.interview.plan_file import save_brief, slug
from takopi.interview.questions import slugs
from tests.interview.given import answered

SESSION = answered(("What framework?", "Express"), ("Existing auth?", "None, greenfield"))
FOLDER = ".claude/todos"

BRIEF = """\
# Plan: add JWT authentication

**Created:** 2026-02-18T13:18:06Z
**Session:** 0f3c
**Branch:** main

## Task
add JWT authentication

## Requirements (Q&A)

**Q: What framework?**
A: Express

**Q: Existing auth?**
A: None, greenfield

## Context for Implementation

The following answers were gathered from the user to clarify requirements:
- What framework? → Express
- Existing auth? → None, greenfield

## Next Steps

Claude CLI was spawned with this full context to implement the task.
"""


def test_brief_has_the_specified_form(tmp_path: Path) -> None:
    path = save_brief(SESSION, tmp_path, folder=FOLDER, branch="main")
    assert path == ".claude/todos/jwt-auth/implement-jwt-auth-system.md"
    assert (tmp_path / path).read_text(encoding="utf-8") == BRIEF


def test_own_brief_is_written_again_and_another_one_never(tmp_path: Path) -> None:
    first = save_brief(SESSION, tmp_path, folder=FOLDER, branch="main")
    assert save_brief(SESSION, tmp_path, folder=FOLDER, branch="main") == first
    other = replace(SESSION, session_id="other")
    second = save_brief(other, tmp_path, folder=FOLDER, branch="main")
    assert second == ".claude/todos/jwt-auth/implement-jwt-auth-system-2.md"
    assert "**Session:** 0f3c\n" in (tmp_path / first).read_text(encoding="utf-8")


@given(st.text())
def test_slug_is_safe(text: str) -> None:
    made = slug(text)
    assert len(made) <= 60
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize("hostile", ["../../etc", "", "🐙🐙", "x" * 300, "/", "..", "\0"])
def test_hostile_names_stay_inside(tmp_path: Path, hostile: str) -> None:
    goal, description = slugs(hostile, hostile, task="🐙")
    session = replace(SESSION, goal=goal, description=description)
    path = (tmp_path / save_brief(session, tmp_path, folder=FOLDER, branch="")).resolve()
    assert path.parent.parent == tmp_path.resolve() / FOLDER


def test_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    cwd, outside = tmp_path / "cwd", tmp_path / "outside"
    cwd.mkdir()
    outside.mkdir()
    (cwd / ".claude").symlink_to(outside)
    with pytest.raises(Refused):
        save_brief(SESSION, cwd, folder=FOLDER, branch="")
    assert not list(outside.rglob("*.md"))
