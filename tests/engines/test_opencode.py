import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from takopi.core.events import Action, Answer, Ask, Started, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.opencode.spec import SPEC, OpencodeSettings, export_argv, folder_of
from takopi.engines.opencode.translate import OpencodeDialect
from takopi.engines.spec import Dialect, Said

CWD = Path("/home/user/project")
SESSION = ResumeToken(EngineId("opencode"), "ses_1")
STEP_START: dict[str, Any] = {"type": "step_start", "part": {}}


def make_dialect(*, resume: ResumeToken | None = None) -> OpencodeDialect:
    return OpencodeDialect(EngineJob("do it", CWD, resume=resume), model="fake/model")


def say(dialect: Dialect, *lines: dict[str, Any]) -> list[Said]:
    encoded = [json.dumps({"sessionID": "ses_1", **line}).encode() for line in lines]
    return [said for line in encoded for said in dialect.read(line)]


def text(words: str, *, message: str = "msg_1", part: str = "prt_1") -> dict[str, Any]:
    return {"type": "text", "part": {"id": part, "messageID": message, "text": words}}


def tool(name: str, **state: Any) -> dict[str, Any]:
    state = {"status": "completed", "input": {}, **state}
    return {"type": "tool_use", "part": {"id": "prt_t", "tool": name, "state": state}}


def finish(reason: str = "stop", **part: Any) -> dict[str, Any]:
    return {"type": "step_finish", "part": {"reason": reason, **part}}


def show(line: dict[str, Any]) -> Action:
    begun, action = say(make_dialect(), line)
    assert isinstance(begun, Started)
    assert isinstance(action, Action)
    return action


@pytest.mark.parametrize(
    ("settings", "job", "argv"),
    [
        (OpencodeSettings(), EngineJob("p", CWD), []),
        (OpencodeSettings(), EngineJob("p", CWD, resume=SESSION), ["--session=ses_1"]),
        (
            OpencodeSettings(model="a/m1", extra_args=("--agent", "plan")),
            EngineJob("p", CWD, resume=SESSION),
            ["--session=ses_1", "--model=a/m1", "--agent", "plan"],
        ),
        (OpencodeSettings(model="a/m1"), EngineJob("p", CWD, model="a/m2"), ["--model=a/m2"]),
        (
            OpencodeSettings(),
            EngineJob("p", CWD, resume=ResumeToken(SPEC.id, "--continue")),
            ["--session=--continue"],
        ),
    ],
)
def test_a_session_and_a_model_are_one_word_each_and_never_a_flag_of_their_own(
    settings: OpencodeSettings, job: EngineJob, argv: list[str]
) -> None:
    assert SPEC.argv(settings, job) == ["run", "--format", "json", *argv]


def test_prompt_and_system_text_go_to_stdin() -> None:
    job = EngineJob("CANARY prompt", CWD, system="CANARY system")

    assert "CANARY" not in " ".join(SPEC.argv(OpencodeSettings(), job))
    assert SPEC.dialect(OpencodeSettings(), job).opening() == b"CANARY system\n\nCANARY prompt"


def test_opencode_is_not_told_the_folder_of_the_one_who_starts_it() -> None:
    environ = SPEC.environ(OpencodeSettings(), {"PWD": "/daemon", "HOME": "/home/user"})

    assert "PWD" not in environ
    assert environ["HOME"] == "/home/user"


def test_opencode_logs_its_errors_unless_the_person_wants_more() -> None:
    environ = SPEC.environ(OpencodeSettings(), {"OPENCODE_LOG_LEVEL": "DEBUG"})

    assert environ == {"OPENCODE_PRINT_LOGS": "1", "OPENCODE_LOG_LEVEL": "DEBUG"}


def test_the_resume_line_is_read_back() -> None:
    assert SPEC.resume_line(SESSION) == "opencode --session ses_1"
    assert SPEC.parse_resume("`opencode --session ses_1`") == SESSION


def test_opencode_hears_nothing_after_its_prompt() -> None:
    dialect = make_dialect()

    assert not dialect.two_way
    assert dialect.opening() == b"do it"
    assert dialect.answer(Ask("1", "approval"), Answer("allow")) == b""
    assert dialect.interrupt() == b""


@pytest.mark.parametrize(
    "line", [STEP_START, text("hi"), finish(), {"type": "error", "error": {}}, {"type": "hologram"}]
)
def test_the_first_line_starts_the_run_whatever_it_is(line: dict[str, Any]) -> None:
    dialect = make_dialect()

    said = say(dialect, line, line)

    assert [event for event in said if isinstance(event, Started)] == [
        Started(SESSION, "fake/model")
    ]
    assert said[0] == Started(SESSION, "fake/model")


@pytest.mark.parametrize(
    ("metadata", "ok", "detail"),
    [
        ({"exit": 0}, True, "out"),
        ({"exit": 2}, False, "exit 2\nout"),
        ({"exit": None}, None, "out"),
        ({}, None, "out"),
        (None, None, "out"),
    ],
)
def test_a_command_that_failed_is_shown_as_failed_although_it_completed(
    metadata: dict[str, Any] | None, ok: bool | None, detail: str
) -> None:
    line = tool("bash", input={"command": "ls\n-l"}, output="out\n", metadata=metadata)

    assert show(line) == Action("prt_t", "command", "ls -l", ok=ok, detail=detail)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "title"),
    [
        ("edit", {"filePath": "/home/user/project/a/b.py"}, "file_change", "edit a/b.py"),
        ("write", {"filePath": "/etc/hosts", "content": "x"}, "file_change", "write /etc/hosts"),
        ("apply_patch", {"patchText": "…"}, "file_change", 'apply_patch {"patchText": "…"}'),
        ("read", {"filePath": "/home/user/project/a.py"}, "tool", "read a.py"),
        ("grep", {"pattern": "def x", "path": "/home/user"}, "tool", "grep def x"),
        ("webfetch", {"url": "http://x/", "format": "text"}, "web_search", "http://x/"),
        ("websearch", {"query": "weather"}, "web_search", "weather"),
        ("task", {"description": "look around", "prompt": "…"}, "subagent", "look around"),
        ("server_echo", {"text": "hey"}, "tool", 'server_echo {"text": "hey"}'),
        ("server_odd", {"path": ["a"]}, "tool", 'server_odd {"path": ["a"]}'),
        ("server_none", {}, "tool", "server_none"),
    ],
)
def test_a_tool_is_shown_by_its_kind_and_target(
    name: str, arguments: dict[str, Any], kind: str, title: str
) -> None:
    line = tool(name)
    line["part"]["state"]["input"] = arguments
    encoded = json.dumps({"sessionID": "ses_1", **line}, ensure_ascii=False).encode()

    _, action = make_dialect().read(encoded)

    assert isinstance(action, Action)
    assert (action.kind, action.title, action.ok) == (kind, title, True)


def test_a_tool_that_failed_says_why() -> None:
    line = tool("read", status="error", input={"filePath": "/x"}, error="not there")

    assert show(line) == Action("prt_t", "tool", "read /x", ok=False, detail="not there")


def test_a_to_do_list_shows_how_far_it_is() -> None:
    todos = [{"content": "one", "status": "completed"}, {"content": "two", "status": "pending"}]

    assert show(tool("todowrite", input={"todos": todos})) == Action(
        "prt_t", "note", "Plan: 1 of 2 done, next: two", ok=True, detail="✓ one\n· two"
    )


def test_what_opencode_says_on_the_way_is_a_note_and_its_last_message_the_answer() -> None:
    dialect = make_dialect()

    said = say(
        dialect,
        text("I will look.", part="a"),
        tool("read", input={"filePath": "x"}),
        finish("tool-calls"),
        text("First.", message="msg_2", part="b"),
        text("Second.", message="msg_2", part="c"),
        finish("stop"),
    )

    assert [event.title for event in said if isinstance(event, Action)] == [
        "I will look.",
        "read x",
    ]
    ending = dialect.end(0, "")
    assert (ending.ok, ending.answer) == (True, "First.\n\nSecond.")


def test_reasoning_is_a_note() -> None:
    line = {"type": "reasoning", "part": {"id": "prt_r", "text": "Hmm.\nWell."}}

    assert show(line) == Action("prt_r", "note", "Hmm. Well.")


def test_tokens_and_cost_of_all_steps_are_summed() -> None:
    dialect = make_dialect()
    tokens = {"input": 90, "output": 15, "reasoning": 5, "cache": {"read": 10, "write": 1}}

    say(dialect, finish("tool-calls", tokens=tokens, cost=0.5), finish(tokens=tokens, cost=0.25))

    assert dialect.end(0, "").usage == Usage(202, 40, 20, 0.75)


def test_numbers_that_are_not_told_stay_unknown() -> None:
    dialect = make_dialect()
    say(dialect, finish(tokens={"input": 5}), finish())

    assert dialect.end(0, "").usage == Usage(input_tokens=5)


def test_an_error_is_the_end_and_keeps_what_was_said() -> None:
    dialect = make_dialect()
    error = {"name": "APIError", "data": {"message": "too long", "statusCode": 400}}
    say(dialect, text("Half an ans"), {"type": "error", "error": error})

    ending = dialect.end(1, "")

    assert (ending.ok, ending.error) == (False, "opencode failed: too long (400)")
    assert (ending.answer, ending.resume) == ("Half an ans", SESSION)


def test_an_error_without_words_is_told_by_its_name() -> None:
    dialect = make_dialect()
    say(dialect, {"type": "error", "error": {"name": "MessageAbortedError", "data": {}}})

    assert dialect.end(1, "").error == "opencode failed: MessageAbortedError"


LOGGED = (
    'timestamp=2026-11-18T11:22:19.043Z level=ERROR run=0d message="share failed" cause="odd"\n'
    "timestamp=2026-11-18T11:22:19.061Z level=ERROR run=0d message=failed ref=err_7 "
    'error="NotFoundError: No \\"x\\".\\nTry y." cause="NotFoundError: No x at chunk.js:439"\n'
)


def test_a_cause_that_only_the_log_has_is_told() -> None:
    dialect = make_dialect()
    data = {"message": "Unexpected server error. Check server logs for details.", "ref": "err_7"}
    say(dialect, {"type": "error", "error": {"name": "UnknownError", "data": data}})

    assert dialect.end(1, LOGGED).error == 'opencode failed: No "x". Try y.'
    assert dialect.end(1, "").error == f"opencode failed: {data['message']}"


def test_the_log_is_not_what_opencode_said_last() -> None:
    error = make_dialect().end(1, f"Error: no disk\n{LOGGED}").error

    assert error == "opencode exited with code 1 without a result: no disk"


def test_a_missing_login_comes_with_the_way_in() -> None:
    dialect = make_dialect()
    data = {"message": "Incorrect key", "statusCode": 401}
    say(dialect, {"type": "error", "error": {"name": "APIError", "data": data}})

    assert dialect.end(1, "").error == (
        "opencode failed: Incorrect key (401). Log in with `opencode auth login`."
    )


def test_a_session_that_opencode_does_not_have_is_lost() -> None:
    stderr = "\x1b[91m\x1b[1mError: \x1b[0mSession not found\n"

    ending = make_dialect(resume=SESSION).end(1, stderr)

    assert ending.thread_lost
    assert ending.resume is None
    assert ending.error == "opencode no longer knows this thread; start a new one."
    assert not make_dialect().end(1, stderr).thread_lost


@pytest.mark.parametrize(
    ("lines", "code"), [([], 0), ([STEP_START], 0), ([text("Hi."), finish()], -9), ([], 1)]
)
def test_an_exit_without_a_result_is_a_failure(lines: list[dict[str, Any]], code: int) -> None:
    dialect = make_dialect(resume=SESSION)
    say(dialect, *lines)

    ending = dialect.end(code, "Error: no disk\n")

    assert not ending.ok
    assert ending.error is not None
    assert ending.error.endswith("without a result: no disk")
    assert (ending.resume, ending.thread_lost) == (SESSION, False)


def test_a_run_that_ended_at_a_refused_permission_says_which() -> None:
    dialect = make_dialect()
    refused = tool("read", status="error", input={"filePath": "/x"}, error="The user rejected it.")
    say(dialect, STEP_START, refused, finish("tool-calls"))

    ending = dialect.end(
        0, "\x1b[93m! \x1b[0mpermission requested: external_directory (/x/*); auto-rejecting\n"
    )

    assert not ending.ok
    assert ending.error == (
        "opencode stopped because it may not use external_directory (/x/*); "
        "allow that under `permission` in its configuration."
    )


def test_a_run_that_ended_at_a_failed_step_says_which() -> None:
    dialect = make_dialect()
    refused = tool("read", status="error", input={"filePath": "/x"}, error="The user rejected it.")
    say(dialect, STEP_START, refused, finish("tool-calls"))

    assert dialect.end(0, "").error == (
        "opencode stopped after a failed step: read /x: The user rejected it."
    )


def test_an_answer_that_was_cut_is_marked() -> None:
    _, warning = say(make_dialect(), finish("length"))

    assert isinstance(warning, Action)
    assert warning.kind == "warning"


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"hologram","part":7}',
        b'{"type":"session.idle","sessionID":""}',
        b'{"part":[],"type":"hologram"}',
    ],
)
def test_what_opencode_may_say_one_day_means_nothing_yet(line: bytes) -> None:
    assert make_dialect().read(line) == ()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"! permission requested",
        b"[]",
        b'{"sessionID":"ses_1"}',
        b'{"type":"text","sessionID":"ses_1"}',
        b'{"type":"text","part":{"id":"a"}}',
        b'{"type":"tool_use","sessionID":"ses_1","part":{"id":"a","tool":"bash","state":[]}}',
        b'{"type":"text","sessionID":"\xff","part":{"id":"a"}}',
        b'{"type":"hologram","x":' + b"[" * 100_000,
    ],
)
def test_a_line_of_another_language_raises_one_kind_of_error(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        make_dialect().read(line)


EXPORTED = b'{\n  "info": {\n    "id": "ses_1",\n    "directory": %s,\n    "title": "A thread"'


@pytest.mark.parametrize(
    ("exported", "folder"),
    [
        (EXPORTED % b'"/home/user/project"', Path("/home/user/project")),
        (EXPORTED % b'"/a \\"quoted\\" \\u00e9"', Path('/a "quoted" é')),
        (EXPORTED % b'"/not \\x json"', None),
        (EXPORTED % b'"/not \xff utf-8"', None),
        (EXPORTED % b"null", None),
        (b'{"info": {"title": "\\"directory\\": \\"/x\\""}}', None),
        (b"", None),
    ],
)
def test_the_folder_of_a_session_is_read_from_the_beginning_of_its_export(
    exported: bytes, folder: Path | None
) -> None:
    assert folder_of(exported) == folder


def test_a_session_to_export_is_one_word_and_never_a_flag_of_its_own() -> None:
    assert export_argv(ResumeToken(SPEC.id, "--help")) == ["export", "--sessionID=--help"]
