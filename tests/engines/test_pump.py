"""One `Completed` from a real process, whatever it prints, however it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ports import EngineJob, EngineLimits
from takopi.engines.claude.spec import SPEC as CLAUDE
from takopi.engines.claude.spec import ClaudeSettings
from takopi.engines.codex.spec import SPEC as CODEX
from takopi.engines.codex.spec import CodexSettings
from takopi.engines.environ import child_environ
from takopi.engines.pump import CliEngine
from takopi.kit.proc import Keeper, open_keeper
from tests.kit.processes import MARK, alive, new_mark

STARTED = '{"type":"thread.started","thread_id":"t-1"}'
ANSWER = '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"hello"}}'
TURN_DONE = '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2}}'


def ignore(_event: Event) -> None:
    """What the engine says is of no interest here."""


class Nobody:
    """Nobody is there to answer; every ask is remembered."""

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    async def ask(self, ask: Ask) -> Answer:
        self.asked.append(ask)
        await trio.sleep_forever()
        raise AssertionError


class Person(Nobody):
    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer

    async def ask(self, ask: Ask) -> Answer:
        await trio.lowlevel.checkpoint()
        self.asked.append(ask)
        return self.answer


def script(tmp_path: Path, body: str, *, interpreter: str = "/bin/sh", mode: int = 0o755) -> str:
    path = tmp_path / "cli"
    path.write_text(f"#!{interpreter}\n{body}\n", encoding="utf-8")
    path.chmod(mode)
    return str(path)


async def run_codex(
    keeper: Keeper,
    tmp_path: Path,
    command: str,
    *,
    mark: str = "",
    limits: EngineLimits | None = None,
) -> tuple[Completed, list[Event]]:
    engine = CliEngine(
        CODEX, CodexSettings(command=command, env={MARK: mark}), keeper, dict(os.environ)
    )
    events: list[Event] = []
    job = EngineJob("hi", tmp_path, limits=limits or EngineLimits(grace_s=0.3))
    with trio.fail_after(60):
        return await engine.run(job, events.append, Nobody()), events


def say(*lines: str) -> str:
    return "cat >/dev/null\n" + "\n".join(f"printf '%s\\n' '{line}'" for line in lines)


async def test_plain_run_gives_its_events_in_order_and_one_completed(
    keeper: Keeper, tmp_path: Path
) -> None:
    completed, events = await run_codex(
        keeper, tmp_path, script(tmp_path, say(STARTED, ANSWER, TURN_DONE))
    )
    assert (completed.ok, completed.answer) == (True, "hello")
    assert isinstance(events[0], Started)
    assert events[0].resume.value == "t-1"


async def test_missing_cli_says_what_installs_it(keeper: Keeper, tmp_path: Path) -> None:
    completed, events = await run_codex(keeper, tmp_path, str(tmp_path / "nothing"))
    assert not completed.ok
    assert "No such file" in (completed.error or "")
    assert CODEX.install in (completed.error or "")
    assert events == []


async def test_cli_that_is_not_executable_says_so(keeper: Keeper, tmp_path: Path) -> None:
    command = script(tmp_path, "true", mode=0o644)
    completed, _ = await run_codex(keeper, tmp_path, command)
    assert "Permission denied" in (completed.error or "")


async def test_cli_that_is_too_old_says_what_updates_it(keeper: Keeper, tmp_path: Path) -> None:
    body = 'if [ "$1" = --version ]; then echo "codex-cli 0.1.2"; exit 0; fi; exit 2'
    completed, _ = await run_codex(keeper, tmp_path, script(tmp_path, body))
    assert "0.1.2 is too old" in (completed.error or "")
    assert CODEX.install in (completed.error or "")


@pytest.mark.parametrize("body", ["echo broken pipe dream >&2; exit 9", say(STARTED) + "\nexit 9"])
async def test_exit_without_a_result_is_a_failure_with_the_reason(
    keeper: Keeper, tmp_path: Path, body: str
) -> None:
    completed, _ = await run_codex(keeper, tmp_path, script(tmp_path, body))
    assert not completed.ok
    assert completed.error
    if "dream" in body:
        assert "broken pipe dream" in completed.error
    else:
        assert "9" in completed.error


async def test_hundred_megabytes_of_stderr_hold_nothing_up(keeper: Keeper, tmp_path: Path) -> None:
    body = f"head -c 100000000 /dev/zero >&2; echo >&2; echo last words >&2\n{say(STARTED)}\nexit 1"
    completed, _ = await run_codex(keeper, tmp_path, script(tmp_path, body))
    assert not completed.ok
    assert "last words" in (completed.error or "")


async def test_bad_lines_become_one_warning_and_the_run_goes_on(
    keeper: Keeper, tmp_path: Path
) -> None:
    bad = ["not json", "{", "[1]", '{"type":"unheard.of"}']
    completed, events = await run_codex(
        keeper, tmp_path, script(tmp_path, say(STARTED, *bad, ANSWER, TURN_DONE))
    )
    assert completed.ok
    warnings = [event for event in events if isinstance(event, Action)]
    assert {event.id for event in warnings if event.kind == "warning"} == {"takopi.unreadable"}


async def test_oversize_line_is_skipped_with_a_warning(keeper: Keeper, tmp_path: Path) -> None:
    body = say(STARTED) + "\nhead -c 5000 /dev/zero | tr '\\0' x; echo\n" + say(ANSWER, TURN_DONE)
    completed, events = await run_codex(
        keeper, tmp_path, script(tmp_path, body), limits=EngineLimits(line_bytes=1000)
    )
    assert completed.ok
    assert any(isinstance(event, Action) and "5000 bytes" in event.title for event in events)


async def test_cancel_leaves_no_process(keeper: Keeper, tmp_path: Path) -> None:
    mark = new_mark()
    command = script(tmp_path, "trap '' TERM; setsid sleep 300 & echo '{}'; sleep 300")
    engine = CliEngine(
        CODEX, CodexSettings(command=command, env={MARK: mark}), keeper, dict(os.environ)
    )
    job = EngineJob("hi", tmp_path, limits=EngineLimits(grace_s=0.3))
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.run, job, ignore, Nobody())
            with trio.fail_after(30):
                while True:
                    if len(alive(mark)) >= 3:
                        break
                    await trio.sleep(0.01)
            scope.cancel()
    assert alive(mark) == []


ASKING = """
import json, os, sys
def say(**line): print(json.dumps(line), flush=True)
for line in sys.stdin:
    heard = json.loads(line)
    with open(os.environ["HEARD"], "a") as file: file.write(line)
    if heard["type"] == "user":
        say(type="system", subtype="init", session_id="s-1", model="m")
        say(type="control_request", request_id="r-1", request={"subtype": "can_use_tool",
            "tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t"})
        if os.environ.get("WITHDRAW"):
            say(type="control_cancel_request", request_id="r-1")
            say(type="result", subtype="success", is_error=False, result="withdrawn")
    elif heard["type"] == "control_response":
        behavior = heard["response"]["response"]["behavior"]
        say(type="result", subtype="success", is_error=False, result=behavior)
"""


def claude(keeper: Keeper, tmp_path: Path, **env: str) -> CliEngine[ClaudeSettings]:
    command = script(tmp_path, ASKING, interpreter=sys.executable)
    heard = {"HEARD": str(tmp_path / "heard"), **env}
    return CliEngine(CLAUDE, ClaudeSettings(command=command, env=heard), keeper, dict(os.environ))


async def test_ask_is_answered_by_the_person(keeper: Keeper, tmp_path: Path) -> None:
    person = Person(Answer("allow"))
    with trio.fail_after(60):
        completed = await claude(keeper, tmp_path).run(EngineJob("hi", tmp_path), ignore, person)
    assert (completed.ok, completed.answer) == (True, "allow")
    assert [ask.target or ask.preview for ask in person.asked] == ["rm x"]


async def test_ask_that_nobody_answers_is_denied_at_its_deadline(
    keeper: Keeper, tmp_path: Path
) -> None:
    with trio.fail_after(60):
        completed = await claude(keeper, tmp_path).run(
            EngineJob("hi", tmp_path, limits=EngineLimits(ask_s=0.2)),
            ignore,
            Nobody(),
        )
    assert completed.answer == "deny"
    assert "nobody answered" in (tmp_path / "heard").read_text(encoding="utf-8")


async def test_withdrawn_ask_is_not_answered(keeper: Keeper, tmp_path: Path) -> None:
    with trio.fail_after(60):
        completed = await claude(keeper, tmp_path, WITHDRAW="1").run(
            EngineJob("hi", tmp_path), ignore, Nobody()
        )
    assert completed.answer == "withdrawn"
    assert "control_response" not in (tmp_path / "heard").read_text(encoding="utf-8")


async def test_cancel_says_the_polite_word_before_any_signal(
    keeper: Keeper, tmp_path: Path
) -> None:
    asked = trio.Event()

    class Watching(Nobody):
        async def ask(self, ask: Ask) -> Answer:
            asked.set()
            return await super().ask(ask)

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                claude(keeper, tmp_path).run,
                EngineJob("hi", tmp_path),
                ignore,
                Watching(),
            )
            with trio.fail_after(30):
                await asked.wait()
            scope.cancel()
    assert '"interrupt"' in (tmp_path / "heard").read_text(encoding="utf-8").splitlines()[-1]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(noise=st.lists(st.binary(max_size=80), max_size=8))
def test_no_bytes_on_stdout_end_the_run_without_a_completed(
    tmp_path: Path, noise: list[bytes]
) -> None:
    (tmp_path / "noise").write_bytes(b"\n".join([STARTED.encode(), *noise, ANSWER.encode(), b""]))
    command = script(tmp_path, f"cat {tmp_path}/noise; printf '%s\\n' '{TURN_DONE}'")

    async def once() -> tuple[Completed, list[Event]]:
        async with open_keeper(on_lost=lambda: None) as keeper:
            return await run_codex(keeper, tmp_path, command)

    completed, events = trio.run(once)
    assert completed.answer == "hello"
    assert sum(isinstance(event, Started) for event in events) == 1


def test_child_sees_neither_secrets_nor_what_is_takopis_own() -> None:
    environ = {
        "HOME": "/h",
        "TAKOPI_BOT_TOKEN": "1:a",
        "NOTIFY_SOCKET": "/run/x",
        "WATCHDOG_USEC": "1",
        "LISTEN_FDS": "1",
        "VIRTUAL_ENV": sys.prefix,
        "URL": "https://host/bot1:secret/x",
    }
    got = child_environ(environ, secrets=("1:secret", ""), cwd=Path("/w"), extra={"A": "b"})
    assert got == {"HOME": "/h", "A": "b", "PWD": "/w"}
