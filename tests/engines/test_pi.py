import json
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takopi.core.events import Action, Answer, Ask, Started, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.pi.spec import SPEC, PiSettings
from takopi.engines.pi.translate import PiDialect
from takopi.engines.spec import Dialect, Said
from tests.engines.samples import load_sample, sample_paths

CWD = Path("/home/user/project")
SESSION = ResumeToken(EngineId("pi"), "01a1ed1c-d6c6-76a5-b56d-a0ebe313cb7c")
FILE = ResumeToken(EngineId("pi"), f"/home/user/.pi/sessions/2026_{SESSION.value}.jsonl")
SESSION_LINE = {"type": "session", "version": 3, "id": SESSION.value}
AGENT_START = {"type": "agent_start"}
AGENT_END: dict[str, Any] = {"type": "agent_end", "messages": []}
SAMPLE_LINES = [line for path in sample_paths("pi") for line in load_sample(path).lines]


def make_dialect(*, resume: ResumeToken | None = None, system: str | None = None) -> PiDialect:
    return PiDialect(EngineJob("do it", CWD, resume=resume, system=system), model=None)


def say(dialect: Dialect, *lines: dict[str, Any]) -> list[Said]:
    return [said for line in lines for said in dialect.read(json.dumps(line).encode())]


def assistant(words: str | None = None, stop: str = "stop", **fields: Any) -> dict[str, Any]:
    content = [] if words is None else [{"type": "text", "text": words}]
    message = {"role": "assistant", "content": content, "stopReason": stop, **fields}
    return {"type": "message_end", "message": message}


def tool_start(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool_execution_start", "toolCallId": "c1", "toolName": name, "args": args}


def tool_end(name: str, words: str = "", *, failed: bool | None = False) -> dict[str, Any]:
    return {
        "type": "tool_execution_end",
        "toolCallId": "c1",
        "toolName": name,
        "result": {"content": [{"type": "text", "text": words}]},
        "isError": failed,
    }


@pytest.mark.parametrize(
    ("settings", "job", "argv"),
    [
        (PiSettings(), EngineJob("p", CWD), []),
        (PiSettings(), EngineJob("p", CWD, resume=SESSION), ["--session", SESSION.value]),
        (PiSettings(), EngineJob("p", CWD, resume=FILE), ["--session", FILE.value]),
        (
            PiSettings(model="m1", extra_args=("--provider", "x")),
            EngineJob("p", CWD, system="be kind", resume=SESSION, model="m2"),
            [
                *("--session", SESSION.value, "--model", "m2"),
                *("--append-system-prompt", "be kind", "--provider", "x"),
            ],
        ),
        (PiSettings(model="m1"), EngineJob("p", CWD, system=""), ["--model", "m1"]),
    ],
)
def test_pi_is_called_with_what_the_job_needs(
    settings: PiSettings, job: EngineJob, argv: list[str]
) -> None:
    assert SPEC.argv(settings, job) == ["--print", "--mode", "json", *argv]


def test_the_word_after_print_is_a_flag_because_pi_takes_any_other_for_the_prompt() -> None:
    settings = PiSettings(extra_args=("word",))

    argv = SPEC.argv(settings, EngineJob("p", CWD))

    assert argv[argv.index("--print") + 1].startswith("--")


def test_the_prompt_goes_to_stdin_and_the_system_text_by_its_flag() -> None:
    job = EngineJob("CANARY prompt", CWD, system="be kind")

    assert "CANARY" not in " ".join(SPEC.argv(PiSettings(), job))
    assert SPEC.dialect(PiSettings(), job).opening() == b"CANARY prompt"


@pytest.mark.parametrize("system", ["é" * 60_000, "a\0b"])
def test_a_system_text_that_argv_cannot_carry_goes_in_front_of_the_prompt(system: str) -> None:
    job = EngineJob("do it", CWD, system=system)

    assert "--append-system-prompt" not in SPEC.argv(PiSettings(), job)
    assert SPEC.dialect(PiSettings(), job).opening() == f"{system}\n\ndo it".encode()


@pytest.mark.parametrize("token", [SESSION, FILE])
def test_the_resume_line_is_read_back(token: ResumeToken) -> None:
    assert SPEC.resume_line(token) == f"pi --session {token.value}"
    assert SPEC.parse_resume(f"`pi --session {token.value}`") == token


def test_pi_hears_nothing_after_its_prompt() -> None:
    dialect = make_dialect()

    assert not dialect.two_way
    assert dialect.opening() == b"do it"
    assert dialect.answer(Ask("1", "approval"), Answer("allow")) == b""
    assert dialect.interrupt() == b""


@pytest.mark.parametrize(
    ("resume", "thread"),
    [
        (None, SESSION),
        (SESSION, SESSION),
        (ResumeToken(SPEC.id, "01a1ed1c"), SESSION),
        (FILE, FILE),
    ],
)
def test_a_thread_keeps_the_name_by_which_it_is_found_again(
    resume: ResumeToken | None, thread: ResumeToken
) -> None:
    dialect = make_dialect(resume=resume)

    assert say(dialect, SESSION_LINE, SESSION_LINE) == [Started(thread)]
    assert dialect.end(0, "").resume == thread


def test_a_thread_that_pi_replaced_in_silence_is_named() -> None:
    dialect = make_dialect(resume=ResumeToken(SPEC.id, "/gone/2026_0000.jsonl"))

    _, warning = say(dialect, SESSION_LINE)

    assert isinstance(warning, Action)
    assert warning.kind == "warning"
    assert warning.title.startswith("pi did not find thread /gone/2026_0000.jsonl")


def test_an_error_of_the_model_is_a_failure_although_pi_exits_with_zero() -> None:
    dialect = make_dialect()
    message = '400: {"type":"x","message":"too long"}'
    say(dialect, SESSION_LINE, assistant(stop="error", errorMessage=message), AGENT_END)

    ending = dialect.end(0, "")

    assert (ending.ok, ending.error, ending.resume) == (False, "pi failed: 400: too long", SESSION)


def test_a_retry_is_shown_and_the_message_after_it_decides() -> None:
    dialect = make_dialect()
    retry = {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "errorMessage": "529 busy"}

    said = say(
        dialect,
        AGENT_START,
        assistant(stop="error", errorMessage="529 busy"),
        AGENT_END,
        retry,
        AGENT_START,
        assistant("Here I am."),
        AGENT_END,
    )

    assert said == [Action("retry", "warning", "Trying again 1 of 3: 529 busy")]
    ending = dialect.end(0, "")
    assert (ending.ok, ending.answer) == (True, "Here I am.")


def test_a_missing_login_comes_with_the_way_in() -> None:
    dialect = make_dialect()
    say(dialect, SESSION_LINE)

    ending = dialect.end(1, "No API key found for the selected model.\n\nUse /login. See:\n  /x\n")

    assert ending.error == (
        "pi exited with code 1 without a result: No API key found for the selected model. "
        "Log in with `pi`. There, type /login."
    )


def test_an_interrupted_message_is_a_failure() -> None:
    dialect = make_dialect()
    say(dialect, assistant("Half", stop="aborted"), AGENT_END)

    ending = dialect.end(0, "")

    assert (ending.ok, ending.answer, ending.error) == (False, "Half", "pi was interrupted.")


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [SESSION_LINE],
        [assistant("I will look.", stop="toolUse")],
        [assistant("I will look.", stop="toolUse"), AGENT_END],
        [assistant("Done.")],
        [assistant("Done."), AGENT_END, AGENT_START],
    ],
)
@pytest.mark.parametrize("code", [0, 1, -9])
def test_an_exit_before_the_agent_ended_is_a_failure(
    lines: list[dict[str, Any]], code: int
) -> None:
    dialect = make_dialect(resume=SESSION)
    say(dialect, *lines)

    ending = dialect.end(code, "Error: no disk\n")

    assert not ending.ok
    assert ending.error is not None
    assert ending.error.endswith("without a result: no disk")
    assert (ending.resume, ending.thread_lost) == (SESSION, False)


@pytest.mark.parametrize("last", [[], [{"type": "agent_settled"}]])
def test_a_run_is_complete_with_or_without_the_newer_last_line(last: list[dict[str, Any]]) -> None:
    dialect = make_dialect()
    say(dialect, AGENT_START, assistant("Done."), AGENT_END, *last)

    assert dialect.end(0, "").ok


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        (
            "No session found matching 'deadbeef'\n",
            "pi no longer knows this thread; start a new one.",
        ),
        (
            "Session found in different project: /home/user/other\nFork this session? [y/N] ",
            "pi keeps this thread for /home/user/other; start a new one here.",
        ),
    ],
)
def test_a_thread_that_pi_does_not_open_is_lost(stderr: str, error: str) -> None:
    ending = make_dialect(resume=SESSION).end(1, stderr)

    assert (ending.ok, ending.thread_lost, ending.resume) == (False, True, None)
    assert ending.error == error
    assert not make_dialect().end(1, stderr).thread_lost


@pytest.mark.parametrize(
    ("start", "end", "kind", "title", "ok", "detail"),
    [
        (tool_start("bash", command="ls"), tool_end("bash", "a\n"), "command", "ls", True, "a"),
        (
            tool_start("bash", command="ls"),
            tool_end("bash", "no\n\nexited with code 2", failed=True),
            *("command", "ls", False, "no\n\nexited with code 2"),
        ),
        (
            tool_start("edit", path="/home/user/project/a.py", edits=[]),
            tool_end("edit", "ok"),
            *("file_change", "edit a.py", True, ""),
        ),
        (
            tool_start("read", path="/x"),
            tool_end("read", "not there", failed=True),
            *("tool", "read /x", False, "not there"),
        ),
        (
            tool_start("mine", n=1),
            tool_end("mine", failed=None),
            *("tool", 'mine {"n": 1}', None, ""),
        ),
    ],
)
def test_a_tool_is_shown_from_its_start_to_its_end(
    start: dict[str, Any],
    end: dict[str, Any],
    kind: Any,
    title: str,
    ok: bool | None,
    detail: str,
) -> None:
    assert say(make_dialect(), start, end) == [
        Action("c1", kind, title, "started"),
        Action("c1", kind, title, ok=ok, detail=detail),
    ]


def test_an_end_without_a_start_is_shown_by_its_name() -> None:
    assert say(make_dialect(), tool_end("bash")) == [Action("c1", "tool", "bash", ok=True)]


@pytest.mark.parametrize("result", [None, 7, {"content": 7}, {"content": "words"}])
def test_a_result_of_any_shape_is_tolerated(result: object) -> None:
    dialect = make_dialect()
    say(dialect, tool_start("bash", command="ls"))

    (action,) = say(dialect, {**tool_end("bash"), "result": result})

    assert isinstance(action, Action)
    assert action.ok is True


def test_what_pi_says_on_the_way_is_a_note_and_its_last_message_the_answer() -> None:
    dialect = make_dialect()
    blocks = [
        {"type": "thinking", "thinking": "Hmm."},
        {"type": "text", "text": "First."},
        {"type": "text", "text": "Second.\n"},
    ]

    said = say(
        dialect,
        {"type": "message_end", "message": {"role": "user", "content": "do it"}},
        assistant("I will look.", stop="toolUse"),
        assistant(content=blocks),
        {"type": "message_end", "message": {"role": "toolResult", "content": []}},
        AGENT_END,
    )

    assert said == [Action("note_1", "note", "I will look."), Action("note_2", "note", "Hmm.")]
    assert dialect.end(0, "").answer == "First.\n\nSecond."


def test_tokens_and_cost_of_all_messages_are_summed_and_the_model_is_named() -> None:
    dialect = make_dialect()
    usage = {"input": 90, "output": 20, "cacheRead": 10, "cacheWrite": 1, "cost": {"total": 0.25}}

    say(
        dialect,
        assistant("a", stop="toolUse", usage=usage, model="m"),
        assistant("b", usage=usage),
        AGENT_END,
    )

    ending = dialect.end(0, "")
    assert (ending.usage, ending.model) == (Usage(202, 40, 20, 0.5), "m")


def test_an_answer_that_was_cut_is_marked() -> None:
    dialect = make_dialect()

    (warning,) = say(dialect, assistant("Half", stop="length"), AGENT_END)

    assert isinstance(warning, Action)
    assert warning.kind == "warning"
    assert dialect.end(0, "").ok


def test_compaction_is_shown_with_its_outcome() -> None:
    title = "Compacting the conversation"

    said = say(
        make_dialect(),
        {"type": "compaction_start", "reason": "threshold"},
        {"type": "compaction_end", "aborted": False, "errorMessage": "no room"},
    )

    assert said == [
        Action("compaction", "note", title, "started"),
        Action("compaction", "note", title, ok=False, detail="no room"),
    ]


@pytest.mark.parametrize("kind", ["agent_end", "message_update", "turn_end", "message_start"])
def test_a_line_that_repeats_the_history_is_never_built(kind: str) -> None:
    history = [{"role": "toolResult", "content": [{"type": "text", "text": "x" * 1000}]}] * 4000
    line = json.dumps({"type": kind, "messages": history, "message": history}).encode()
    dialect = make_dialect()

    tracemalloc.start()
    try:
        assert dialect.read(line) == ()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(line) > 8_000_000
    assert peak_bytes < 100_000


def test_many_tool_calls_leave_nothing_behind() -> None:
    dialect = make_dialect()
    pairs = [
        [json.dumps({**line, "toolCallId": f"c{number}"}).encode() for line in (start, end)]
        for number in range(2000)
        for start, end in [(tool_start("bash", command="ls"), tool_end("bash", "a"))]
    ]

    tracemalloc.start()
    try:
        for start, end in pairs:
            dialect.read(start)
            dialect.read(end)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept_bytes < 50_000


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"hologram","message":7}',
        b'{"type":"queue_update","steering":[],"followUp":[]}',
        b'{"message":[],"type":"hologram"}',
    ],
)
def test_what_pi_may_say_one_day_means_nothing_yet(line: bytes) -> None:
    assert make_dialect().read(line) == ()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Aborted.",
        b"[]",
        b"{}",
        b'{"type":"session"}',
        b'{"type":"message_end","message":7}',
        b'{"type":"message_end","message":{"role":"assistant","content":7}}',
        b'{"type":"message_end","message":{"role":"assistant","content":"\xff"}}',
        b'{"type":"session","id":"\xff"}',
        b'{"type":"agent_end","messages":' + b"[" * 100_000,
    ],
)
def test_a_line_of_another_language_raises_one_kind_of_error(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        make_dialect().read(line)


@settings(deadline=None)
@given(st.sampled_from(SAMPLE_LINES), st.data())
def test_a_damaged_line_raises_that_error_or_none(line: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, min(len(line), start + 8)))
    damaged = line[:start] + data.draw(st.binary(max_size=8)) + line[end:]
    dialect = make_dialect(resume=SESSION)

    try:
        said = dialect.read(damaged)
    except msgspec.MsgspecError:
        said = ()

    for event in said:
        if isinstance(event, Action):
            assert len(event.title) <= 120
            assert len(event.title.splitlines()) <= 1
            assert len(event.detail) <= 400
    dialect.end(0, "")
