from __future__ import annotations

from pathlib import Path

import pytest

from takopi.store import ledger
from tests.app.recording import config_with, open_rig
from tests.projects.repos import add_hook, make_repo, project_at


async def test_run_that_has_not_begun_stays_queued_when_takopi_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    project = project_at(make_repo(tmp_path / "repo"))
    add_hook(project.path, "post-checkout", "sleep 600")
    config = config_with(project)
    async with open_rig(tmp_path, config) as rig:
        run = await rig.start("/z80 @feat/x say: hello")
        live = rig.desk.schedule.find(run)
        assert live is not None
        await rig.until(lambda: live.stage == "preparing worktree")
    async with open_rig(tmp_path, config) as rig:
        assert [each.id for each in await rig.db.read(ledger.unfinished)] == [run]
        assert (await rig.run(run)).state == "queued"
