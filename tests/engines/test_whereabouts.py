"""A thread is resumed in its own folder only, where the CLI could not bear another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from takopi.core.events import Answer, Ask, Completed, Event
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.opencode.spec import SPEC, OpencodeSettings
from takopi.engines.pump import CliEngine
from takopi.kit.proc import Keeper

SESSION = ResumeToken(SPEC.id, "ses_1")
CLI = """\
#!/bin/sh
if [ "$1" = export ]; then printf '%s' "$EXPORTED"; exit; fi
cat > /dev/null
echo '{"type":"text","sessionID":"ses_1","part":{"id":"p","text":"went on"}}'
echo '{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop"}}'
"""


class Nobody:
    async def ask(self, ask: Ask) -> Answer:
        raise AssertionError(ask)


async def run(
    keeper: Keeper, cwd: Path, *, exported: str, resume: ResumeToken | None = SESSION
) -> Completed:
    command = cwd / "opencode"
    command.write_text(CLI, encoding="utf-8")
    command.chmod(0o755)
    settings = OpencodeSettings(command=str(command), env={"EXPORTED": exported})
    engine = CliEngine(SPEC, settings, keeper, dict(os.environ))
    events: list[Event] = []
    with trio.fail_after(60):
        return await engine.run(EngineJob("p", cwd, resume=resume), events.append, Nobody())


def export(folder: Path) -> str:
    return f'{{"info": {{"directory": "{folder}"}}}}'


async def test_a_thread_of_another_folder_is_lost_and_its_folder_is_named(
    keeper: Keeper, tmp_path: Path
) -> None:
    ending = await run(keeper, tmp_path, exported=export(Path("/elsewhere")))
    assert ending == Completed(
        ok=False,
        error="opencode keeps this thread for /elsewhere; start a new one here.",
        thread_lost=True,
    )


@pytest.mark.parametrize("name", [".", "link"])
async def test_a_thread_of_this_folder_goes_on_whatever_the_folder_is_called(
    keeper: Keeper, tmp_path: Path, name: str
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    ending = await run(keeper, tmp_path, exported=export(tmp_path / name))
    assert (ending.ok, ending.answer) == (True, "went on")


async def test_a_thread_whose_folder_is_not_told_goes_on(keeper: Keeper, tmp_path: Path) -> None:
    assert (await run(keeper, tmp_path, exported="")).answer == "went on"


async def test_a_new_thread_has_no_folder_yet(keeper: Keeper, tmp_path: Path) -> None:
    ending = await run(keeper, tmp_path, exported=export(Path("/elsewhere")), resume=None)
    assert ending.answer == "went on"


async def test_an_export_of_any_length_is_read_to_its_end(keeper: Keeper, tmp_path: Path) -> None:
    exported = export(Path("/elsewhere")) + "x" * 100_000
    assert (await run(keeper, tmp_path, exported=exported)).thread_lost


async def test_a_cli_that_is_missing_says_so_when_a_thread_is_resumed(
    keeper: Keeper, tmp_path: Path
) -> None:
    settings = OpencodeSettings(command=str(tmp_path / "nothing"))
    engine = CliEngine(SPEC, settings, keeper, dict(os.environ))
    events: list[Event] = []
    with trio.fail_after(60):
        job = EngineJob("p", tmp_path, resume=SESSION)
        ending = await engine.run(job, events.append, Nobody())
    assert SPEC.install in (ending.error or "")
