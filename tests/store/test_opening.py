from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.store.opening import Opened, open_file, require_sqlite
from takopi.store.schema import STEPS, Step
from tests.store.rows import receive

OLD: tuple[Step, ...] = (("CREATE TABLE note (text TEXT) STRICT",),)
NEW: tuple[Step, ...] = (
    *OLD,
    ("ALTER TABLE note ADD COLUMN colour TEXT", "UPDATE note SET colour = 'red'"),
    ("CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT",),
)


@contextmanager
def opened(path: Path, *, steps: tuple[Step, ...] = STEPS, busy_s: float = 5) -> Generator[Opened]:
    got = open_file(path, steps=steps, busy_s=busy_s)
    try:
        yield got
    finally:
        got.reader.close()
        got.writer.close()


def make(path: Path, *, updates: int = 200) -> None:
    with opened(path) as got:
        got.writer.execute("BEGIN")
        receive(got.writer, *range(updates))
        got.writer.execute("COMMIT")


def make_old(path: Path) -> None:
    with opened(path, steps=OLD) as got:
        got.writer.execute("INSERT INTO note VALUES ('keep me')")


def crash_copy(source: Path, target: Path) -> None:
    """What a crash would leave behind: the file and its log, never closed."""
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{source}{suffix}", f"{target}{suffix}")


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


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


def garbage(content: bytes) -> bytes:
    return b"this is not a database\n" * (len(content) // 23)


def short_garbage(content: bytes) -> bytes:
    return b"hi"


def zeros(content: bytes) -> bytes:
    return bytes(len(content))


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def cut_inside_a_page(content: bytes) -> bytes:
    return content[: len(content) - 1000]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2 // 4096 * 4096
    page = bytes(byte ^ 0xFF for byte in content[middle : middle + 4096])
    return content[:middle] + page + content[middle + 4096 :]


def flipped_schema(content: bytes) -> bytes:
    return content[:200] + bytes(byte ^ 0x55 for byte in content[200:4096]) + content[4096:]


DAMAGES = [garbage, short_garbage, zeros, cut, cut_inside_a_page, flipped, flipped_schema]


@pytest.mark.parametrize("damage", DAMAGES)
def test_f16_a_damaged_file_is_set_aside_whole_and_a_fresh_one_started(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "state.db"
    make(path)
    broken = damage(path.read_bytes())
    path.write_bytes(broken)

    with opened(path) as got:
        assert got.set_aside is not None
        assert got.set_aside.name.startswith("state.db.damaged-2")
        assert got.set_aside.read_bytes() == broken
        assert mode(path) == 0o600
        assert receive(got.writer, 5)
    with opened(path) as again:
        assert again.set_aside is None
        assert receive(again.writer, 5) == ()


def test_f16_the_log_of_a_damaged_file_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "crashed").mkdir()
    path = tmp_path / "crashed" / "state.db"
    make(tmp_path / "state.db")
    with opened(tmp_path / "state.db") as got:
        receive(got.writer, 5000)
        crash_copy(tmp_path / "state.db", path)
    path.write_bytes(flipped(path.read_bytes()))
    before = files(path.parent)

    with opened(path) as got:
        aside = got.set_aside
        assert aside is not None
        assert got.writer.execute("SELECT count(*) FROM inbox").fetchone()[0] == 0
    assert aside.read_bytes() == before["state.db"]
    assert Path(f"{aside}-wal").read_bytes() == before["state.db-wal"]


@pytest.mark.parametrize("lost", ["emptied", "removed"])
def test_f16_rows_in_the_log_of_a_file_that_is_gone_are_kept_for_a_second_look(
    tmp_path: Path, lost: str
) -> None:
    (tmp_path / "crashed").mkdir()
    path = tmp_path / "crashed" / "state.db"
    with opened(tmp_path / "state.db") as got:
        receive(got.writer, 5000)
        crash_copy(tmp_path / "state.db", path)
    log = Path(f"{path}-wal").read_bytes()
    if lost == "emptied":
        path.write_bytes(b"")
    else:
        path.unlink()

    with opened(path) as got:
        assert got.set_aside is not None
        assert Path(f"{got.set_aside}-wal").read_bytes() == log
        assert receive(got.writer, 5000)


def test_f16_a_second_damage_does_not_overwrite_the_first(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    asides: list[bytes] = []
    for number in range(3):
        path.write_bytes(b"damage %d" % number)
        with opened(path) as got:
            assert got.set_aside is not None
        asides.append(b"damage %d" % number)

    kept = [content for name, content in files(tmp_path).items() if ".damaged-" in name]
    assert sorted(kept) == asides


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.touch()
    with opened(path) as got:
        assert (got.set_aside, got.backup) == (None, None)
        assert receive(got.writer, 1)


HOLDER = """
import sqlite3, sys
conn = sqlite3.connect(sys.argv[1], isolation_level=None)
conn.execute("PRAGMA locking_mode = EXCLUSIVE")
conn.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_file_that_another_process_holds_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    make(path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreFailed, match="another process holds") as caught:
            open_file(path, steps=STEPS, busy_s=0.05)
        holder.communicate()

    assert not isinstance(caught.value, StoreUnfit)
    with opened(path) as got:
        assert got.set_aside is None


def test_a_transaction_that_a_crash_cut_off_is_undone_and_no_damage(tmp_path: Path) -> None:
    (tmp_path / "crashed").mkdir()
    path = tmp_path / "crashed" / "state.db"
    source = tmp_path / "state.db"
    make(source)
    with closing(sqlite3.connect(source, isolation_level=None)) as conn:
        # In this mode, and without memory to hold it, a change is in the file before it is made.
        conn.execute("PRAGMA journal_mode = DELETE")
        conn.execute("PRAGMA cache_size = 1")
        conn.execute("BEGIN")
        conn.execute("UPDATE inbox SET payload = zeroblob(3000)")
        for suffix in ("", "-journal"):
            shutil.copyfile(f"{source}{suffix}", f"{path}{suffix}")
        conn.execute("ROLLBACK")

    with opened(path) as got:
        assert got.set_aside is None
        rows = got.writer.execute("SELECT DISTINCT payload FROM inbox").fetchall()
        assert [row["payload"] for row in rows] == [b"hello"]
