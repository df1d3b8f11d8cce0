"""A daemon to be measured: a real process, a Bot API on loopback, people in chats of their own."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from takopi.core.ids import Scope
from tests.bench.history import fill
from tests.bench.readings import children
from tests.bench.stand_ins import StandIns
from tests.botapi.api import Request
from tests.botapi.chats import Json, Message
from tests.botapi.person import Person
from tests.botapi.server import serve_botapi
from tests.e2e.rig import ADA, Rig, new_token, open_rig

FIRST_FRIEND = 2001
WITHIN_S = 60.0


@dataclass(frozen=True)
class Daemon:
    """One takopi, and the engines that it starts. Every friend of Ada's has a chat, too."""

    rig: Rig
    stand_ins: StandIns
    friends: tuple[Person, ...]

    @property
    def pid(self) -> int:
        assert self.rig.process is not None
        return self.rig.process.pid

    @property
    def ours(self) -> list[int]:
        """The daemon, the keeper and the wardens; not the engines."""
        keepers = children(self.pid)
        return [self.pid, *keepers, *(warden for keeper in keepers for warden in children(keeper))]

    async def said(self, prompt: Message, start: str = "") -> Request:
        """The first message in reply to the prompt that begins so, as it came to the server."""

        def fits(request: Request) -> bool:
            reply: Json = request.parameters.get("reply_parameters") or {}
            return (
                request.method == "sendMessage"
                and request.chat_id == prompt.chat.id
                and reply.get("message_id") == prompt.id
                and str(request.parameters.get("text", "")).startswith(start)
            )

        return await self.rig.api.wait_for_request(fits, within_s=WITHIN_S)


@asynccontextmanager
async def open_daemon(
    *, config: str = "", friends: int = 0, history_rows: int = 0
) -> AsyncGenerator[Daemon, None]:
    """A daemon that was not started; with `history_rows`, its store has seen many runs."""
    async with serve_botapi(token=new_token()) as api:
        with tempfile.TemporaryDirectory(
            prefix="takopi-bench-", ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            async with open_rig(api, folder) as rig:
                api.person(ADA)
                stand_ins = StandIns(folder / "engines")
                people = tuple(api.person(FIRST_FRIEND + n, f"F{n}") for n in range(friends))
                rig.configure(stand_ins.config + config + _chats_of(rig, people))
                if history_rows:
                    bot_id = api.token.partition(":")[0]
                    fill(
                        rig.home / "state.db",
                        rows=history_rows,
                        chat=Scope("telegram", ADA),
                        source=f"telegram:{bot_id}",
                        next_offset=api.updates.next_id,
                    )
                yield Daemon(rig, stand_ins, people)


def _chats_of(rig: Rig, people: tuple[Person, ...]) -> str:
    """Each of them has a project, because that is what gives a chat to somebody else."""
    if not people:
        return ""
    repo = rig.project("shared")
    return "".join(
        f'[projects.p{person.id}]\npath = "{repo}"\nchat_id = {person.id}\n' for person in people
    )
