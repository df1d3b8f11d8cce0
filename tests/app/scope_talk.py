"""A chat, a forum and one of its topics, and what is typed and picked there."""

from __future__ import annotations

from pathlib import Path

import pytest

from takopi.config.loaded import Project
from takopi.core.errors import Refused
from takopi.core.ids import Scope
from tests.app.recording import (
    CHAT,
    GROUP,
    Arrived,
    Rig,
)

TOPIC = Scope("telegram", GROUP, 7)
FORUM = Scope("telegram", GROUP)


def project(folder: Path, alias: str) -> Project:
    return Project(alias, folder, folder / ".worktrees")


async def refusal(rig: Rig, command: str, *, scope: Scope = CHAT) -> Refused:
    """What a command was refused with; nothing was said or chosen then."""
    before = await rig.choices(scope)
    with pytest.raises(Refused) as caught:
        await rig.type(command, scope=scope)
    assert await rig.flush() == []
    assert await rig.choices(scope) == before
    return caught.value


async def pick(rig: Rig, card: Arrived, label: str) -> str:
    return await rig.press(card, card.data(label))
