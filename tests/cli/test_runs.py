from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest

from takopi.core.context import Context
from takopi.core.ids import EngineId, Scope
from takopi.store import ledger
from takopi.store.opening import open_file
from takopi.store.schema import STEPS
from tests.botapi.server import serve_botapi
from tests.cli.command import Takopi
from tests.e2e.rig import ADA, Rig, new_token, open_rig

NOON_MS = 1_767_268_800_000
"""2026-01-01 12:00 UTC."""
CHAT = Scope("telegram", 5)


def write_runs(takopi: Takopi, *prompts: str) -> None:
    """One finished run for each prompt, twelve seconds long."""
    takopi.home.mkdir(mode=0o700, exist_ok=True)
    opened = open_file(takopi.home / "state.db", steps=STEPS, busy_s=5)
    with closing(opened.writer) as conn, closing(opened.reader):
        for prompt in prompts:
            new = ledger.NewRun(
                CHAT, prompt, EngineId("codex"), context=Context("z80", "fix"), model="o9"
            )
            run = ledger.add(conn, new, now_ms=NOON_MS)
            ledger.start(conn, run.id, cwd=Path("/"), now_ms=NOON_MS + 1000)
            ledger.end(conn, run.id, "done", now_ms=NOON_MS + 13_000, answer="yes")


def test_runs_are_listed_with_the_newest_first(takopi: Takopi) -> None:
    takopi.environ["TZ"] = "UTC"
    write_runs(takopi, "first line\nsecond line", "日本 next")
    assert takopi("runs").out == (
        "RUN  STATE  PROJECT   ENGINE  STARTED      TOOK  PROMPT\n"
        "2    done   z80 @fix  codex   01-01 12:00  12s   日本 next\n"
        "1    done   z80 @fix  codex   01-01 12:00  12s   first line\n"
    )


def test_runs_as_json_have_every_fact(takopi: Takopi) -> None:
    write_runs(takopi, "first line\nsecond line")
    assert json.loads(takopi("runs", "--json").out) == [
        {
            "id": 1,
            "state": "done",
            "project": "z80",
            "branch": "fix",
            "engine": "codex",
            "model": "o9",
            "queued": "2026-01-01T12:00:00.000+00:00",
            "started": "2026-01-01T12:00:01.000+00:00",
            "ended": "2026-01-01T12:00:13.000+00:00",
            "duration_s": 12.0,
            "prompt": "first line",
            "error": None,
        }
    ]


def test_limit_and_all_say_how_many(takopi: Takopi) -> None:
    write_runs(takopi, *map(str, range(25)))
    assert len(takopi("runs").out.splitlines()) == 21
    assert len(takopi("runs", "--limit", "2").out.splitlines()) == 3
    assert len(takopi("runs", "--all").out.splitlines()) == 26
    assert takopi("runs", "--limit", "0").code == 1


def test_prompt_cannot_command_the_terminal(takopi: Takopi) -> None:
    write_runs(takopi, "\x1b[2Jgone")
    said = takopi.on_terminal("runs", answers=[]).out
    assert "gone" in said
    assert "\x1b" not in said


def test_long_prompt_is_cut_on_a_terminal_only(takopi: Takopi) -> None:
    write_runs(takopi, "x" * 300)
    takopi.environ["COLUMNS"] = "90"
    lines = takopi.on_terminal("runs", answers=[]).out.splitlines()
    assert max(map(len, lines)) == 90
    assert "x" * 300 in takopi("runs").out


def test_nothing_has_run_before_there_is_a_store(takopi: Takopi) -> None:
    outcome = takopi("runs")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "hint: nothing has run yet\n")
    assert json.loads(takopi("runs", "--json").out) == []
    assert not takopi.home.exists()


@pytest.mark.parametrize(("version", "who"), [(99, "newer"), (0, "older")])
def test_store_of_another_takopi_is_refused_in_words(
    takopi: Takopi, version: int, who: str
) -> None:
    write_runs(takopi, "hello")
    with closing(sqlite3.connect(takopi.home / "state.db")) as conn:
        conn.execute(f"PRAGMA user_version = {version}")
    outcome = takopi("runs")
    assert outcome.code == 2
    assert f"was written by a{'n' if who == 'older' else ''} {who} takopi" in outcome.err


def test_file_that_is_no_database_is_refused_in_words(takopi: Takopi) -> None:
    takopi.home.mkdir(mode=0o700)
    (takopi.home / "state.db").write_bytes(b"x" * 4096)
    outcome = takopi("runs")
    assert outcome.code == 2
    assert "is damaged" in outcome.err


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig, None]:
    async with serve_botapi(token=new_token()) as api:
        api.person(ADA)
        (tmp_path / "rig").mkdir()
        async with open_rig(api, tmp_path / "rig") as rig:
            yield rig


async def test_running_daemon_is_looked_at_and_not_disturbed(takopi: Takopi, rig: Rig) -> None:
    await rig.start()
    await rig.say("hang")
    await rig.until_so(lambda: rig.rows("SELECT state FROM runs") == [("running",)])
    takopi.environ["TAKOPI_HOME"] = str(rig.home)
    files = [rig.home / name for name in ("state.db", "state.db-wal")]
    # Stopped, so that nobody else writes; it may hold any lock.
    assert rig.process is not None
    stat = Path(f"/proc/{rig.process.pid}/stat")
    rig.send_signal(signal.SIGSTOP)
    await rig.until_so(lambda: stat.read_bytes().rpartition(b")")[2].split()[0] == b"T")
    before = [file.read_bytes() for file in files]

    [run] = json.loads(takopi("runs", "--json").out)

    assert [file.read_bytes() for file in files] == before
    assert (run["state"], run["prompt"], run["ended"]) == ("running", "hang", None)
    assert run["duration_s"] > 0
    rig.send_signal(signal.SIGCONT)
    assert await rig.answer("hello")


async def test_what_a_killed_daemon_left_is_read_and_left_as_it_is(
    takopi: Takopi, rig: Rig
) -> None:
    await rig.start()
    await rig.answer("hello")
    await rig.stop(signal.SIGKILL)
    takopi.environ["TAKOPI_HOME"] = str(rig.home)
    files = [rig.home / name for name in ("state.db", "state.db-wal")]
    before = [file.read_bytes() for file in files]
    assert before[1]

    [run] = json.loads(takopi("runs", "--json").out)

    assert run["prompt"] == "hello"
    assert [file.read_bytes() for file in files] == before
