from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from takopi.kit.atomic import replace_file, set_aside


def test_file_is_replaced_whole_with_the_mode_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    replace_file(path, b"for all", mode=0o644)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_contents_are_on_the_disk_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    synced: list[tuple[Path, str]] = []

    def note(fd: int) -> None:
        synced.append((Path(f"/proc/self/fd/{fd}").readlink(), path.read_text()))

    monkeypatch.setattr(os, "fsync", note)
    replace_file(path, b"new")
    (temporary, before), (folder, after) = synced
    assert temporary.parent == tmp_path
    assert temporary != path
    assert before == "old"
    assert (folder, after) == (tmp_path, "new")


def test_renaming_a_damaged_file_is_on_the_disk_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("damaged")
    synced: list[tuple[Path, bool]] = []

    def note(fd: int) -> None:
        synced.append((Path(f"/proc/self/fd/{fd}").readlink(), path.exists()))

    monkeypatch.setattr(os, "fsync", note)
    set_aside(path)
    assert synced == [(tmp_path, False)]


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(OSError, match="file"):
        replace_file(path, b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_symlink_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_damaged_files_are_set_aside_one_beside_the_other(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    names: set[str] = set()
    for content in ("first", "second", "third"):
        path.write_text(content)
        aside = set_aside(path)
        assert aside.read_text() == content
        assert aside.name.startswith("state.db.damaged-")
        names.add(aside.name)
    assert len(names) == 3
    assert not path.exists()


def test_companions_go_with_the_damaged_file(tmp_path: Path) -> None:
    for name in ("state.db", "state.db-wal"):
        (tmp_path / name).write_text(name)
    aside = set_aside(tmp_path / "state.db", companions=("-wal", "-shm"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [aside.name, f"{aside.name}-wal"]
