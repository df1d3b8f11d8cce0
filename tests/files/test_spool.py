"""A file on its way is kept for as long as a row names it, and no longer."""

from __future__ import annotations

import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from takopi.core.errors import Refused, Unfit
from takopi.core.ids import Scope
from takopi.core.outgoing import Spooled
from takopi.files.spool import Spool
from takopi.store import outbox
from takopi.store.database import Database, open_database

CHAT = Scope("telegram", 1)


@pytest.fixture
async def db(tmp_path: Path) -> AsyncGenerator[Database, None]:
    async with open_database(tmp_path / "state.db") as db, trio.open_nursery() as nursery:
        await nursery.start(db.serve)
        yield db
        nursery.cancel_scope.cancel()


@pytest.fixture
async def spool(db: Database, tmp_path: Path) -> Spool:
    spool = Spool(tmp_path / "spool", db)
    await spool.prepare()
    return spool


async def put(db: Database, spool: Spool, content: bytes) -> Spooled:
    async with spool.new() as new:
        new.write(content)
        file = new.finish()
        await name(db, file)
    return file


async def name(db: Database, file: Spooled) -> None:
    await db.write(
        lambda conn: outbox.add(conn, CHAT, kind="notice", payload=b"", now_ms=1, spooled=file.name)
    )


def there(folder: Path) -> set[str]:
    return {file.name for file in (folder / "spool").iterdir()}


async def test_file_stays_until_its_row_is_over(db: Database, spool: Spool, tmp_path: Path) -> None:
    first, second = await put(db, spool, b"one"), await put(db, spool, b"two")
    await spool.sweep()
    assert there(tmp_path) == {first.name, second.name}
    with spool.open(first, shown="a") as file:
        assert file.read() == b"one"

    sent = await db.write(lambda conn: outbox.take_next(conn, CHAT, now_ms=2))
    assert sent is not None
    await spool.sweep()
    assert there(tmp_path) == {first.name, second.name}
    await db.write(lambda conn: outbox.confirm(conn, sent.id, message_id=1, now_ms=2))
    await spool.sweep()
    assert there(tmp_path) == {second.name}


async def test_file_that_no_row_came_to_name_goes_at_once(spool: Spool, tmp_path: Path) -> None:
    async with spool.new() as new:
        new.write(b"half")
    assert there(tmp_path) == set()


async def test_file_that_is_being_written_is_not_swept(spool: Spool, tmp_path: Path) -> None:
    async with spool.new():
        await spool.sweep()
        assert len(there(tmp_path)) == 1


async def test_start_removes_what_a_crash_left_and_closes_the_folder_to_others(
    db: Database, spool: Spool, tmp_path: Path
) -> None:
    kept = await put(db, spool, b"one")
    (tmp_path / "spool/left").write_bytes(b"half")
    (tmp_path / "spool").chmod(0o755)
    await Spool(tmp_path / "spool", db).prepare()
    assert there(tmp_path) == {kept.name}
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "spool" / kept.name).stat().st_mode) == 0o600


async def test_file_in_the_place_of_the_folder_is_told_of(db: Database, tmp_path: Path) -> None:
    (tmp_path / "spool").touch()
    with pytest.raises(Unfit, match="spool cannot be used"):
        await Spool(tmp_path / "spool", db).prepare()


@pytest.mark.parametrize("damage", ["gone", "cut", "link"])
async def test_lost_file_is_refused_in_words(
    db: Database, spool: Spool, tmp_path: Path, damage: str
) -> None:
    file = await put(db, spool, b"content")
    path = spool.path(file)
    if damage == "cut":
        path.write_bytes(b"cont")
    else:
        path.unlink()
    if damage == "link":
        (tmp_path / "other").write_bytes(b"another")
        path.symlink_to(tmp_path / "other")
    with pytest.raises(Refused, match=r"a\.txt was not sent: takopi's copy of it is gone"):
        spool.open(file, shown="a.txt")


async def test_scratch_has_no_name(spool: Spool, tmp_path: Path) -> None:
    with await trio.to_thread.run_sync(spool.scratch) as file:
        file.write(b"x")
        assert there(tmp_path) == set()
