from typing import Any

import pytest

from takopi.core.events import Action, Answer, Ask, Started
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.pi.spec import SPEC, PiSettings
from tests.engines.pi_talk import AGENT_END, CWD, SESSION, assistant, make_dialect, say

FILE = ResumeToken(EngineId("pi"), f"/home/user/.pi/sessions/2026_{SESSION.value}.jsonl")
SESSION_LINE = {"type": "session", "version": 3, "id": SESSION.value}
AGENT_START = {"type": "agent_start"}


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
