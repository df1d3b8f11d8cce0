from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.store.opening import require_sqlite
from tests.store.files import files, make, mode, opened


def test_every_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    before = os.umask(0)
    try:
        with opened(path) as got:
            got.writer.execute("INSERT INTO offsets VALUES ('x', 1)")
            names = {entry.name: mode(entry) for entry in tmp_path.iterdir()}
    finally:
        os.umask(before)

    assert names == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


def test_the_name_of_a_new_file_is_on_the_disk_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[Path, int]] = []
    path = tmp_path / "state.db"

    def note(fd: int) -> None:
        synced.append((Path(f"/proc/self/fd/{fd}").readlink(), path.stat().st_size))

    monkeypatch.setattr(os, "fsync", note)
    make(path)

    assert synced == [(tmp_path, 0)]


def test_a_file_that_others_can_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    make(path)
    path.chmod(0o644)
    with opened(path):
        assert mode(path) == 0o600


def test_the_writer_waits_for_the_disk_and_keeps_references_whole(tmp_path: Path) -> None:
    with opened(tmp_path / "state.db") as got:
        pragmas = {
            name: got.writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }

        assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            got.writer.execute("INSERT INTO messages VALUES ('telegram', 1, 1, 12345, NULL, NULL)")


def test_the_readers_connection_cannot_write(tmp_path: Path) -> None:
    with (
        opened(tmp_path / "state.db") as got,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        got.reader.execute("INSERT INTO offsets VALUES ('x', 1)")


def test_a_path_with_odd_characters_is_that_path(tmp_path: Path) -> None:
    path = tmp_path / "what? #1 %20" / "state.db"
    path.parent.mkdir()
    make(path)

    assert [entry.name for entry in path.parent.iterdir()] == ["state.db"]


def test_a_link_leads_to_a_private_file_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "state.db"
    link.symlink_to(tmp_path / "elsewhere" / "real.db")
    before = os.umask(0)
    try:
        make(link)
    finally:
        os.umask(before)

    assert link.is_symlink()
    assert mode(tmp_path / "elsewhere" / "real.db") == 0o600


def test_a_missing_folder_is_named_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreFailed, match="does not exist") as caught,
        opened(tmp_path / "no" / "state.db"),
    ):
        pass

    assert caught.value.way_out == f"make it: mkdir -m 700 -p {tmp_path / 'no'}"


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_what_is_not_a_file_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "state.db"
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(StoreFailed, match="is not a file") as caught, opened(path):
        pass

    assert not isinstance(caught.value, StoreUnfit)
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.db"]


WITHOUT_RIGHTS = """
import os, sys
from pathlib import Path
from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.store.opening import open_file
from takopi.store.schema import STEPS
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    open_file(Path(sys.argv[1]), steps=STEPS, busy_s=1)
except StoreFailed as error:
    assert not isinstance(error, StoreUnfit)
    print(error.what, error.way_out, sep="|")
"""


@pytest.mark.parametrize("lacking", ["folder", "file"])
def test_a_missing_right_is_not_damage(lacking: str) -> None:
    if lacking == "file" and os.getuid() != 0:
        pytest.skip("only root can make a file that is somebody else's")
    # Not under tmp_path, whose parents are closed to another user.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "state.db"
        make(path)
        content = path.read_bytes()
        folder.chmod(0o711 if lacking == "file" else 0o000)
        try:
            done = subprocess.run(
                [sys.executable, "-c", WITHOUT_RIGHTS, path],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        finally:
            folder.chmod(0o700)

        assert done.returncode == 0, done.stderr
        assert "ls -la" in done.stdout
        assert files(folder) == {"state.db": content}


def test_an_sqlite_that_is_too_old_is_named() -> None:
    require_sqlite((3, 37, 0))
    with pytest.raises(StoreUnfit, match=r"SQLite 3\.36\.1, and takopi needs 3\.37\.0"):
        require_sqlite((3, 36, 1))
