"""Interviews on a machine that has trouble: what was kept goes on, and nobody waits for nothing."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from takopi.core.errors import Unfit
from takopi.core.messages import IncomingMessage, Press
from takopi.interview.questions import Asked, AskedOption, AskedQuestion
from takopi.interview.service import Interviews
from takopi.interview.session import Order
from takopi.interview.store import Files
from takopi.store.database import open_database
from tests.config.names import parsed
from tests.interview.stand_ins import CHAT, OneFolder, PhoneChat, SlowModel
from tests.store.room import leave_no_room, make_room

ADA = CHAT.chat_id
SOON_S = 10.0
QUESTIONS = tuple(
    AskedQuestion(text, options=(AskedOption("Yes", "y"), AskedOption("No", "n")))
    for text in ("One?", "Two?")
)


class Home:
    """One person's interview, and everything around it."""

    def __init__(
        self,
        service: Interviews,
        *,
        files: Files,
        chat: PhoneChat,
        host: OneFolder,
        model: SlowModel,
    ) -> None:
        self.service = service
        self.files = files
        self.chat = chat
        self.host = host
        self.model = model

    async def press(self, what: str) -> None:
        await self.chat.look()
        press = Press("id", CHAT, max(self.chat.pressable), ADA, f"iq:{what}")
        await self.service.press(press, what, answer=lambda _text: None)

    async def shows(self, words: str) -> None:
        with trio.fail_after(SOON_S):
            while True:
                await self.chat.look()
                if any(words in card.text.text for card in self.chat.shown.values()):
                    return
                await trio.testing.wait_all_tasks_blocked(0.01)


@asynccontextmanager
async def open_home(folder: Path, host_of: type[OneFolder] = OneFolder) -> AsyncGenerator[Home]:
    async with open_database(folder / "state.db") as db, trio.open_nursery() as services:
        await services.start(db.serve)
        chat, files = PhoneChat(db), Files(folder / "sessions")
        host, model = host_of(chat, folder), SlowModel()
        async with trio.open_nursery() as calls:
            service = Interviews(calls, db, files=files, oneshot=model, host=host)
            try:
                yield Home(service, files=files, chat=chat, host=host, model=model)
            finally:
                calls.cancel_scope.cancel()
        services.cancel_scope.cancel()


async def begin(home: Home) -> None:
    """An interview whose model is being asked."""
    await home.service.plan(Order(task="tidy up", engine="demo"), CHAT, user_id=ADA)
    with trio.fail_after(SOON_S):
        while not home.model.in_flight:
            await trio.testing.wait_all_tasks_blocked()


async def ask(home: Home) -> None:
    """An interview that shows its first question."""
    await begin(home)
    home.model.tell(Asked(QUESTIONS, goal="goal", description="description"))
    await home.shows("One?")


async def test_card_that_the_disk_did_not_take_is_shown_once_there_is_room(tmp_path: Path) -> None:
    async with open_home(tmp_path) as home, trio.open_nursery() as fingers:
        await ask(home)
        await home.chat.db.write(lambda conn: leave_no_room(conn, "outbox"))
        fingers.start_soon(home.press, "a:0:0")
        await trio.testing.wait_all_tasks_blocked(0.05)
        await home.chat.db.write(make_room)
        await home.shows("Two?")


async def test_questions_that_cannot_be_kept_are_asked_once_they_can(tmp_path: Path) -> None:
    async with open_home(tmp_path) as home:
        await begin(home)
        shutil.rmtree(home.files.folder)
        home.files.folder.touch()
        home.model.tell(Asked(QUESTIONS, goal="goal", description="description"))
        await trio.testing.wait_all_tasks_blocked(0.05)
        home.files.folder.unlink()
        await home.shows("One?")


class ClosedFolder(OneFolder):
    """A `Host` whose folder nobody may look into."""

    async def find_cwd(self, order: Order) -> Path:
        raise PermissionError(errno.EACCES, "Permission denied", f"/closed/{order.task}")


async def test_plan_in_a_folder_that_is_closed_goes_back_to_its_summary(tmp_path: Path) -> None:
    async with open_home(tmp_path, ClosedFolder) as home:
        await begin(home)
        home.model.tell(Asked((), done=True, goal="goal", description="description"))
        await home.shows("/closed/tidy up: Permission denied. mend that, and press again")
        await home.press("confirm")
        await home.press("edit")
        await home.press("back_summary")
        assert (
            sum("Permission denied\n" in each.text.text for each in home.chat.shown.values()) == 1
        )


async def test_start_over_that_cannot_be_kept_leaves_the_call_on_its_way(tmp_path: Path) -> None:
    async with open_home(tmp_path) as home:
        await begin(home)
        await home.service.plan(Order(task="add auth", engine="demo"), CHAT, user_id=ADA)
        shutil.rmtree(home.files.folder)
        home.files.folder.touch()
        with pytest.raises(Unfit, match="cannot be kept"):
            await home.press("over")
        assert home.model.in_flight == 1


async def test_interview_expires_also_where_its_folder_is_gone(tmp_path: Path) -> None:
    async with open_home(tmp_path) as home, trio.open_nursery() as nursery:
        await ask(home)
        shutil.rmtree(home.files.folder)
        home.host.settings = parsed("interview.ttl_s = 0.2")
        nursery.start_soon(home.service.serve)
        await home.shows("Planning has expired")
        await trio.testing.wait_all_tasks_blocked(0.05)
        message = IncomingMessage("telegram", ADA, 77, "hello", None, None, ADA)
        async with home.service.taking(message) as take:
            assert take is None
        nursery.cancel_scope.cancel()


async def test_file_whose_time_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    async with open_home(tmp_path) as home:
        await ask(home)
    (path,) = home.files.folder.iterdir()
    kept = json.loads(path.read_bytes()) | {"updatedAt": "yesterday"}
    path.write_text(json.dumps(kept), encoding="utf-8")
    sessions, damaged = home.files.load()
    assert (sessions, [each.scope for each in damaged]) == ((), [CHAT])
