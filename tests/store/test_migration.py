from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.store.opening import open_file
from takopi.store.schema import STEPS, Step
from tests.store.files import crash_copy, files, mode, opened

OLD: tuple[Step, ...] = (("CREATE TABLE note (text TEXT) STRICT",),)
NEW: tuple[Step, ...] = (
    *OLD,
    ("ALTER TABLE note ADD COLUMN colour TEXT", "UPDATE note SET colour = 'red'"),
    ("CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT",),
)


def make_old(path: Path) -> None:
    with opened(path, steps=OLD) as got:
        got.writer.execute("INSERT INTO note VALUES ('keep me')")


def test_an_older_file_is_backed_up_and_then_migrated(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    make_old(path)
    with opened(path, steps=NEW) as got:
        assert [tuple(row) for row in got.writer.execute("SELECT * FROM note")] == [
            ("keep me", "red")
        ]
        assert got.writer.execute("PRAGMA user_version").fetchone()[0] == 3
        backup = got.backup

    assert backup is not None
    assert backup.name.startswith("state.db.v1-2")
    assert mode(backup) == 0o600
    with closing(sqlite3.connect(backup)) as old:
        assert old.execute("SELECT * FROM note").fetchall() == [("keep me",)]
        assert old.execute("PRAGMA user_version").fetchone() == (1,)
    with opened(path, steps=NEW) as again:
        assert again.backup is None


def test_a_backup_holds_what_a_crash_left_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "crashed").mkdir()
    path = tmp_path / "crashed" / "state.db"
    with opened(tmp_path / "state.db", steps=OLD) as got:
        got.writer.execute("INSERT INTO note VALUES ('only in the log')")
        crash_copy(tmp_path / "state.db", path)

    with opened(path, steps=NEW) as got:
        assert got.backup is not None
        with closing(sqlite3.connect(got.backup)) as old:
            assert old.execute("SELECT * FROM note").fetchall() == [("only in the log",)]


def test_a_backup_never_overwrites_another(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    make_old(path)
    now = datetime.now(UTC)
    for second in range(120):
        stamp = (now + timedelta(seconds=second)).strftime("%Y%m%dT%H%M%S")
        (tmp_path / f"state.db.v1-{stamp}").write_bytes(b"mine")
    with opened(path, steps=NEW) as got:
        assert got.backup is not None
        assert got.backup.name.endswith("-1")

    assert list(files(tmp_path).values()).count(b"mine") == 120


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (("INSERT INTO note VALUES ('x', 'y')", "SELECT nonsense"), sqlite3.OperationalError),
        (
            (
                "CREATE TABLE child (note INTEGER REFERENCES more (id)) STRICT",
                "INSERT INTO child VALUES (77)",
            ),
            StoreFailed,
        ),
    ],
)
def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, last: Step, error: type[Exception]
) -> None:
    path = tmp_path / "state.db"
    make_old(path)
    with pytest.raises(error), opened(path, steps=(*NEW, last)):
        pass

    assert list(files(tmp_path)) == ["state.db"]
    with opened(path, steps=OLD) as got:
        assert got.set_aside is None
        assert [tuple(row) for row in got.writer.execute("SELECT * FROM note")] == [("keep me",)]


def test_a_newer_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "crashed").mkdir()
    path = tmp_path / "crashed" / "state.db"
    with opened(tmp_path / "state.db", steps=NEW) as got:
        got.writer.execute("INSERT INTO note VALUES ('in the log', 'blue')")
        crash_copy(tmp_path / "state.db", path)
    before = files(path.parent)

    with pytest.raises(StoreUnfit, match=r"newer takopi \(version 3, known here: 1\)") as caught:
        open_file(path, steps=OLD, busy_s=1)

    assert "state.db.v1-" in caught.value.way_out
    assert files(path.parent) == before


@pytest.mark.parametrize("version", [0, 1])
def test_somebody_elses_database_is_refused_and_not_touched(tmp_path: Path, version: int) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute(f"PRAGMA user_version = {version}")
    before = files(tmp_path)

    with pytest.raises(StoreUnfit, match="not takopi's"):
        open_file(path, steps=STEPS, busy_s=1)
    assert files(tmp_path) == before
