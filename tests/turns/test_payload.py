from __future__ import annotations

import re
from pathlib import Path

import pytest

from takopi.turns.layout import Turn
from takopi.turns.payload import make_payload
from takopi.turns.service import create_session

MAX_BYTES = 64


@pytest.fixture
def turn(tmp_path: Path) -> Turn:
    return create_session(tmp_path, "try-it").latest()


def payload(turn: Turn) -> str:
    return make_payload(turn, environ={"SHELL": "/bin/zsh"}, max_file_bytes=MAX_BYTES)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def headings(text: str) -> list[str]:
    return re.findall(r"^##? .+$", text, re.MULTILINE)


def test_payload_has_its_sections_in_order(turn: Turn) -> None:
    write(turn.root, {".teddy/memos.yaml": "- Use pnpm.\n"})
    text = payload(turn)
    assert headings(text) == [
        "# Agent Invocation Payload",
        "## 1. System Information",
        "## 2. Project Structure",
        "## 3. Memos",
        "## 4. Context Summary",
        "## 5. Resource Contents",
    ]
    assert f"- **CWD:** {turn.root}\n" in text
    assert "- **Shell:** /bin/zsh\n" in text
    assert "- Use pnpm.\n" in text


def test_no_memos_are_no_section(turn: Turn) -> None:
    assert "## 3. Memos" not in headings(payload(turn))


def test_files_of_all_three_contexts_are_in_it_once_the_turns_first(turn: Turn) -> None:
    root = turn.root
    write(root, {"one.md": "1\n", "two.md": "2\n", "three.md": "3\n"})
    write(root, {".teddy/global.context": "one.md\n# a remark\ntwo.md\n"})
    (turn.session.folder / "session.context").write_text("two.md\n", encoding="utf-8")
    turn.path("turn.context").write_text("three.md\ntwo.md\n", encoding="utf-8")
    _, _, contents = payload(turn).partition("## 5. Resource Contents")
    assert re.findall(r"^### \[(.+?)\]", contents, re.MULTILINE) == ["three.md", "two.md", "one.md"]
    assert "```md\n3\n```" in contents


def test_file_that_is_missing_long_or_outside_says_so(turn: Turn) -> None:
    write(turn.root, {"long.txt": "x" * (MAX_BYTES + 1)})
    turn.path("turn.context").write_text("gone.txt\nlong.txt\n../other\n", encoding="utf-8")
    text = payload(turn)
    assert "*(cannot be read: No such file or directory)*" in text
    assert f"*(cut: the first {MAX_BYTES} of {MAX_BYTES + 1} bytes)*" in text
    assert "*(outside the project, not shown)*" in text


def test_fence_is_longer_than_any_in_the_file(turn: Turn) -> None:
    write(turn.root, {"doc.md": "````\nx\n````\n"})
    turn.path("turn.context").write_text("doc.md\n", encoding="utf-8")
    assert "`````md\n````\nx\n````\n`````" in payload(turn)


def test_tree_leaves_out_what_is_ignored(turn: Turn) -> None:
    names = ["kept.txt", "by-git.txt", "by-teddy.txt"]
    write(turn.root, dict.fromkeys(names, "x"))
    write(turn.root, {".gitignore": "by-git.txt\n", ".teddyignore": "by-teddy.txt\n"})
    text = payload(turn)
    assert [name for name in names if name in text] == ["kept.txt"]
