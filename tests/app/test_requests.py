"""What it takes for a message to become a run, on a machine that has trouble."""

from __future__ import annotations

from pathlib import Path

import pytest

from takopi.config.limits import Limits
from takopi.core.errors import StoreFailed
from tests.app.recording import config_with, message_of, open_rig
from tests.store.room import leave_no_room, make_room


async def test_message_that_is_tried_until_there_is_room_counts_once(tmp_path: Path) -> None:
    async with open_rig(tmp_path, config_with(limits=Limits(user_per_min=1))) as rig:
        message = message_of(1, "say: hello")
        inbox_id = await rig.receive(message)
        await rig.db.write(lambda conn: leave_no_room(conn, "runs"))
        for _ in range(2):
            with pytest.raises(StoreFailed, match="no space left"):
                await rig.desk.requests.from_message(message, inbox_id)
        await rig.db.write(make_room)
        await rig.desk.requests.from_message(message, inbox_id)
        assert [run.prompt for run in await rig.runs()] == ["say: hello"]
