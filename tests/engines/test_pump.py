"""One `Completed` from a real process, whatever it prints, however it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takopi.config.schema import EngineSettings
from takopi.core.events import Action, Answer, Ask, Completed, Event, Started
from takopi.core.ports import EngineJob, EngineLimits
from takopi.engines.claude.spec import SPEC as CLAUDE
from takopi.engines.claude.spec import ClaudeSettings
from takopi.engines.codex.spec import SPEC as CODEX
from takopi.engines.codex.spec import CodexSettings
from takopi.engines.demo.spec import spec as demo_spec
from takopi.engines.pump import MAX_OPEN_ASKS, CliEngine
from takopi.kit.proc import Keeper, open_keeper
from tests.kit.processes import MARK, alive, new_mark, until_alive

STARTED = '{"type":"thread.started","thread_id":"t-1"}'
ANSWER = '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"hello"}}'
RESULT = '{"type":"result","ok":true,"answer":"fine"}'
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
            await until_alive(mark, 3)
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


def claude(
    keeper: Keeper, tmp_path: Path, body: str = ASKING, **env: str
) -> CliEngine[ClaudeSettings]:
    command = script(tmp_path, body, interpreter=sys.executable)
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


# Writes down what it hears and when it is told to end, in the order in which that was said.
LISTENING = """
import os, select, signal
wake, alarm = os.pipe()
os.set_blocking(alarm, False)
signal.set_wakeup_fd(alarm)
signal.signal(signal.SIGTERM, lambda *_: None)
heard = open(os.environ["HEARD"], "ab", buffering=0)
os.write(1, b'{"type":"system","subtype":"init","session_id":"s-1"}\\n')
while True:
    ready, _, _ = select.select([0, wake], [], [])
    # What was said before the signal is in the pipe by now.
    while select.select([0], [], [], 0)[0] and (said := os.read(0, 65536)):
        heard.write(said)
    if wake in ready:
        heard.write(b"SIGTERM")
        break
"""


async def test_cancel_says_the_polite_word_before_any_signal(
    keeper: Keeper, tmp_path: Path
) -> None:
    started = trio.Event()

    def emit(_event: Event) -> None:
        started.set()

    job = EngineJob("hi", tmp_path, limits=EngineLimits(grace_s=60))
    engine = claude(keeper, tmp_path, LISTENING)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.run, job, emit, Nobody())
            await started.wait()
            nursery.cancel_scope.cancel()
    *_, word, told = (tmp_path / "heard").read_text(encoding="utf-8").splitlines()
    assert '"interrupt"' in word
    assert told == "SIGTERM"


def demo(keeper: Keeper, tmp_path: Path, body: str) -> CliEngine[EngineSettings]:
    settings = EngineSettings(command=script(tmp_path, body))
    return CliEngine(demo_spec(tmp_path), settings, keeper, dict(os.environ))


def question(name: str) -> str:
    return f'{{"type":"ask","id":"{name}","kind":"question","questions":[{{"text":"?"}}]}}'


def print_lines(*lines: str) -> str:
    """All at once, so that they are heard together."""
    return "printf '%s\\n' " + " ".join(f"'{line}'" for line in lines)


async def test_ask_that_is_said_twice_is_asked_once(keeper: Keeper, tmp_path: Path) -> None:
    person = Nobody()
    body = print_lines(question("a"), question("a"), RESULT) + "\ncat >/dev/null"
    with trio.fail_after(60):
        completed = await demo(keeper, tmp_path, body).run(
            EngineJob("hi", tmp_path), ignore, person
        )
    assert completed.ok
    assert [ask.id for ask in person.asked] == ["a"]


async def test_asks_without_end_are_denied_from_a_bound_on(keeper: Keeper, tmp_path: Path) -> None:
    person, events = Nobody(), list[Event]()
    asks = print_lines(*(question(f"a{number}") for number in range(MAX_OPEN_ASKS + 3)))
    # The prompt and three answers; then it has heard enough.
    body = f"{asks}\nhead -n 4 >'{tmp_path}/heard'\n{print_lines(RESULT)}"
    with trio.fail_after(60):
        completed = await demo(keeper, tmp_path, body).run(
            EngineJob("hi", tmp_path), events.append, person
        )
    assert completed.ok
    assert len(person.asked) == MAX_OPEN_ASKS
    assert (tmp_path / "heard").read_text(encoding="utf-8").count("too many questions") == 3
    assert [event.id for event in events if isinstance(event, Action)] == ["takopi.asks"] * 3


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
