from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from takopi.core.errors import StoreFailed, StoreUnfit
from takopi.store.opening import open_file
from takopi.store.schema import STEPS
from tests.store.files import crash_copy, files, make, mode, opened
from tests.store.rows import receive


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
