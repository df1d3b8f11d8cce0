"""F15, F16 and F17: the disk is full, the database is damaged, the config is wrong."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from tests.botapi.chats import Message
from tests.conftest import Figures
from tests.faults.rig import PATIENT, WITHIN_S, FaultRig, endings
from tests.store.test_full_disk import OWN_MOUNTS, may_mount

MOUNT = (
    'mount -t tmpfs -o size=2m,mode=700 tmpfs "$0" && cp "$0.toml" "$0/takopi.toml"'
    ' && chmod 600 "$0/takopi.toml" && exec "$@"'
)


ROOM_BYTES = 1024 * 1024
MUCH = "BEGIN INSERT INTO ballast VALUES (zeroblob(2097152)); END"
"""What a trigger does to write more than there is room for."""


async def refuse_to_confirm(rig: FaultRig) -> Message:
    """Send what the store cannot take, and see that it is neither confirmed nor answered."""
    asked_before = len(rig.api.sent("getUpdates"))
    prompt = await rig.say("append starts.txt: one")
    await rig.until_so(lambda: "store.failed" in rig.log, lambda: rig.log[-3000:])
    # It is asked for again and again, and confirmed by none of these requests.
    await rig.until_so(lambda: len(rig.api.sent("getUpdates")) > asked_before + 2)
    assert len(rig.api.updates.unconfirmed) == 1
    assert rig.starts == {}
    return prompt


async def go_on_by_itself(rig: FaultRig, prompt: Message) -> float:
    """The message that could not be kept is answered now; returns how long that took."""
    began = trio.current_time()
    await rig.ending(prompt)
    took_s = trio.current_time() - began
    assert await rig.answer("append starts.txt: two")
    assert rig.starts == {"one": 1, "two": 1}
    assert len([m for m in endings(rig.chat, prompt) if m.text.startswith("done")]) == 1
    return took_s


async def test_f15_a_full_disk_refuses_before_it_confirms_and_recovers_when_freed(
    rig: FaultRig, figures: Figures
) -> None:
    if not may_mount(rig.home):
        pytest.skip("mounting is not allowed here; the limit on the size of files stands for it")
    (rig.home / "takopi.toml").rename(rig.folder / "home.toml")
    rig.before = [*OWN_MOUNTS, "sh", "-c", MOUNT, str(rig.home)]
    await rig.start()
    assert rig.process is not None
    disk = Path(f"/proc/{rig.process.pid}/root{rig.home}")
    fill(disk / "ballast")

    prompt = await refuse_to_confirm(rig)
    (disk / "ballast").unlink()
    took_s = await go_on_by_itself(rig, prompt)
    figures("F15", lost=0, twice=0, recovered_s=round(took_s, 1))


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


async def test_f15_a_disk_that_takes_no_more_confirms_nothing_and_passes(rig: FaultRig) -> None:
    await rig.start()
    assert rig.process is not None
    pid, log = rig.process.pid, (rig.home / "state.db-wal").stat().st_size
    whole = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (log, whole[1]))

    prompt = await refuse_to_confirm(rig)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, whole)
    await go_on_by_itself(rig, prompt)


@contextmanager
def no_room_for(rig: FaultRig, table: str) -> Generator[None, None, None]:
    """Let there be room on the disk for everything but a new row of this table."""
    assert rig.process is not None
    with closing(sqlite3.connect(rig.home / "state.db", timeout=WITHIN_S)) as conn:
        conn.execute("CREATE TABLE ballast (bytes)")
        conn.execute(f"CREATE TRIGGER much AFTER INSERT ON {table} {MUCH}")
    pid, log = rig.process.pid, (rig.home / "state.db-wal").stat().st_size
    whole = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (log + ROOM_BYTES, whole[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, whole)


async def test_f15_a_command_that_a_full_disk_stops_halfway_is_told_when_there_is_room(
    rig: FaultRig,
) -> None:
    await rig.start()
    with no_room_for(rig, "outbox"):
        command = await rig.say("/agent demo")
        await rig.until_so(lambda: "arrival.not_told" in rig.log, lambda: rig.log[-3000:])
    told = await rig.reply(command, "the disk")
    await rig.until_over()
    assert endings(rig.chat, command) == [told]
    assert rig.rows("SELECT state FROM inbox") == [("refused",)]


async def test_f15_a_press_that_a_full_disk_stops_halfway_is_told_in_the_chat(
    rig: FaultRig,
) -> None:
    rig.api.expect_rejection("query is too old")
    await rig.start()
    card = await rig.reply(await rig.say("/agent"), "answers in this chat")
    with no_room_for(rig, "scopes"):
        await rig.press(card, "demo")
        await rig.reply(card, "the disk")
        await rig.until_over()
    assert rig.rows("SELECT state FROM inbox") == [("done",), ("refused",)]


async def test_f16_a_damaged_database_is_set_aside_and_told_and_takopi_starts(
    rig: FaultRig, figures: Figures
) -> None:
    await rig.start()
    await rig.answer("append starts.txt: one")
    assert await rig.stop() == 0
    state = rig.home / "state.db"
    damaged = b"this is no database" + state.read_bytes()[19:]
    state.write_bytes(damaged)
    began = trio.current_time()
    await rig.start()
    told = await rig.sees_text("The database was damaged")
    took_s = trio.current_time() - began

    (aside,) = [file for file in rig.home.glob("state.db?*") if file.name in told.text]
    assert aside.read_bytes() == damaged
    await rig.answer("append starts.txt: two")
    assert rig.starts == {"one": 1, "two": 1}

    assert await rig.stop() == 0
    state.write_bytes(damaged)
    await rig.start()
    await rig.until(lambda chat: len([m for m in chat.messages if "damaged" in m.text]) == 2)
    assert aside.read_bytes() == damaged
    figures("F16", overwritten=0, told_after_s=round(took_s, 1))


async def test_f16_damage_that_one_message_meets_ends_takopi_and_is_told_after_a_start(
    rig: FaultRig,
) -> None:
    await rig.start()
    await rig.answer("append starts.txt: one")
    assert await rig.stop() == 0
    await rig.start()
    ((page, size),) = rig.rows(
        "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master"
        " WHERE name = 'scopes'"
    )
    with (rig.home / "state.db").open("r+b") as state:
        state.seek((page - 1) * size)
        state.write(b"\xff" * size)
    await rig.say("append starts.txt: two")
    assert await rig.wait() != 0
    assert "is damaged" in rig.log

    await rig.start()
    await rig.sees_text("The database was damaged")


@pytest.mark.parametrize(
    "bad", ['default_project = "nowhere"', "this is [ no toml"], ids=["meaning", "form"]
)
async def test_f17_a_bad_config_is_told_once_and_the_old_one_stays(
    rig: FaultRig, figures: Figures, bad: str
) -> None:
    await rig.start()
    good = (rig.home / "takopi.toml").read_text()
    (rig.home / "takopi.toml").write_text(f"{bad}\n{good}")
    await rig.until(lambda chat: any(m.by_bot for m in chat.messages))
    await rig.answer("append starts.txt: one")

    rig.configure(PATIENT + "limits.max_parts = 3\n")
    await rig.until_so(lambda: "config.changed" in rig.log, lambda: rig.log)
    await rig.answer("append starts.txt: two")
    told = [m for m in rig.chat.everything if m.by_bot and m.reply_to is None]
    assert len(told) == 1
    figures("F17", told=1, kept="the old one")
