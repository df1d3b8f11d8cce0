import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from takopi.core.events import Action, Answer, Ask, Started, Usage
from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.codex.spec import SPEC, CodexSettings
from takopi.engines.codex.translate import CodexDialect
from takopi.engines.spec import Dialect, Said

CWD = Path("/home/user/project")
THREAD = ResumeToken(EngineId("codex"), "01a1ed1b-9d3b-7253-8db8-9e7ad5d8fadd")
THREAD_LINE = {"type": "thread.started", "thread_id": THREAD.value}
USAGE_LINE = {
    "type": "turn.completed",
    "usage": {"input_tokens": 100, "cached_input_tokens": 10, "output_tokens": 20},
}


def make_dialect(
    *, resume: ResumeToken | None = None, system: str | None = None, model: str | None = None
) -> CodexDialect:
    return CodexDialect(EngineJob("do it", CWD, system=system, resume=resume), model=model)


def say(dialect: Dialect, *lines: dict[str, Any]) -> list[Said]:
    return [said for line in lines for said in dialect.read(json.dumps(line).encode())]


def completed(**item: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "item_1", **item}}


def started(**item: Any) -> dict[str, Any]:
    return {"type": "item.started", "item": {"id": "item_1", **item}}


def show(**item: Any) -> Action:
    (action,) = say(make_dialect(), completed(**item))
    assert isinstance(action, Action)
    return action


@pytest.mark.parametrize(
    ("settings", "job", "argv"),
    [
        (CodexSettings(), EngineJob("p", CWD), "--sandbox workspace-write -"),
        (
            CodexSettings(),
            EngineJob("p", CWD, resume=THREAD),
            f"--sandbox workspace-write resume -- {THREAD.value} -",
        ),
        (
            CodexSettings(sandbox="read-only", profile="mine", model="m1", extra_args=("--oss",)),
            EngineJob("p", CWD, resume=THREAD, model="m2"),
            f"--sandbox read-only --profile mine --model m2 --oss resume -- {THREAD.value} -",
        ),
        (
            CodexSettings(model="m1"),
            EngineJob("p", CWD),
            "--sandbox workspace-write --model m1 -",
        ),
    ],
)
def test_flags_stand_before_resume_which_does_not_take_them(
    settings: CodexSettings, job: EngineJob, argv: str
) -> None:
    assert SPEC.argv(settings, job) == ["exec", "--json", "--skip-git-repo-check", *argv.split()]


def test_a_thread_that_is_called_like_a_flag_is_still_a_thread() -> None:
    job = EngineJob("p", CWD, resume=ResumeToken(SPEC.id, "--last"))

    argv = SPEC.argv(CodexSettings(), job)

    assert argv.index("--") < argv.index("--last")


def test_neither_prompt_nor_system_text_travels_in_argv() -> None:
    job = EngineJob("CANARY prompt", CWD, system="CANARY system", resume=THREAD)

    assert "CANARY" not in " ".join(SPEC.argv(CodexSettings(), job))
    assert SPEC.dialect(CodexSettings(), job).opening() == b"CANARY system\n\nCANARY prompt"


def test_a_sandbox_that_codex_does_not_have_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"sandbox": "none"}, CodexSettings)


def test_the_resume_line_is_read_back() -> None:
    assert SPEC.resume_line(THREAD) == f"codex resume {THREAD.value}"
    assert SPEC.parse_resume(f"done\n`codex resume {THREAD.value}`") == THREAD


def test_codex_hears_nothing_after_its_prompt() -> None:
    dialect = make_dialect()

    assert not dialect.two_way
    assert dialect.opening() == b"do it"
    assert dialect.answer(Ask("1", "approval"), Answer("allow")) == b""
    assert dialect.interrupt() == b""


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("/bin/bash -lc 'echo hi'", "echo hi"),
        ("bash -c 'echo hi'", "echo hi"),
        ("/usr/bin/zsh -lc \"printf 'a\\\\nb' > out\"", "printf 'a\\nb' > out"),
        ("/bin/bash -lc 'echo '\"'\"'hi'\"'\"", "echo 'hi'"),
        ("/bin/bash -lc ls", "ls"),
        ("/bin/bash -lc 'unclosed", "'unclosed"),
        ("/bin/bash script.sh -lc 'x'", "/bin/bash script.sh -lc 'x'"),
        ("git status\n--short", "git status --short"),
        (f"/bin/bash -lc 'cat {CWD}/a {CWD}-2/a'", f"cat a {CWD}-2/a"),
        ("/bin/bash -lc '" + "x\"' '" * 2000 + "'", None),
    ],
)
def test_a_command_is_shown_without_the_shell_around_it(command: str, title: str | None) -> None:
    action = show(type="command_execution", command=command, status="completed", exit_code=0)

    assert action.kind == "command"
    assert len(action.title) <= 120
    assert title is None or action.title == title


@pytest.mark.parametrize(
    ("status", "exit_code", "ok", "detail"),
    [
        ("completed", 0, True, "out"),
        ("completed", 3, False, "exit 3\nout"),
        ("failed", 2, False, "exit 2\nout"),
        ("failed", None, False, "out"),
        ("declined", None, False, "out"),
        ("something new", None, None, "out"),
    ],
)
def test_a_command_went_well_only_with_code_zero(
    status: str, exit_code: int | None, ok: bool | None, detail: str
) -> None:
    action = show(
        type="command_execution",
        command="x",
        status=status,
        exit_code=exit_code,
        aggregated_output="out\n",
    )

    assert (action.ok, action.detail) == (ok, detail)


def test_files_are_named_from_the_working_folder() -> None:
    changes = [
        {"path": "/home/user/project/a.py", "kind": "update"},
        {"path": "/etc/hosts", "kind": "delete"},
    ]

    action = show(type="file_change", changes=changes, status="completed")

    assert action == Action(
        "item_1",
        "file_change",
        "update a.py, delete /etc/hosts",
        ok=True,
        detail="update a.py\ndelete /etc/hosts",
    )


def test_a_call_to_a_server_shows_its_arguments_and_its_result() -> None:
    call = {"type": "mcp_tool_call", "server": "s", "tool": "echo", "arguments": {"text": "hey"}}

    begun, ended = say(
        make_dialect(),
        started(**call, result=None, error=None, status="in_progress"),
        completed(**call, result={"content": [{"type": "text", "text": "ho"}]}, status="completed"),
    )

    assert begun == Action("item_1", "tool", 's.echo {"text": "hey"}', "started")
    assert ended == Action("item_1", "tool", 's.echo {"text": "hey"}', ok=True, detail="ho")


def test_a_failed_call_to_a_server_says_why() -> None:
    action = show(
        type="mcp_tool_call", server="s", tool="t", error={"message": "boom"}, status="completed"
    )

    assert action == Action("item_1", "tool", "s.t", ok=False, detail="boom")


def test_a_search_keeps_one_id_although_codex_writes_two() -> None:
    line = (
        b'{"type":"item.%s","item":{"id":"item_1","type":"web_search","id":"w1","query":"",'
        b'"action":{"type":"open_page","url":"http://x"}}}'
    )
    dialect = make_dialect()

    said = [*dialect.read(line % b"started"), *dialect.read(line % b"completed")]

    assert said == [
        Action("w1", "web_search", "http://x", "started"),
        Action("w1", "web_search", "http://x"),
    ]


def test_a_spawned_agent_is_shown_with_its_task() -> None:
    action = show(
        type="collab_tool_call", tool="spawn_agent", prompt="look around", status="completed"
    )

    assert action == Action("item_1", "subagent", "spawn_agent: look around", ok=True)


def test_a_plan_shows_how_far_it_is_and_what_is_next() -> None:
    items = [{"text": "one", "completed": True}, {"text": "two", "completed": False}]

    action = show(type="todo_list", items=items)

    assert action == Action("item_1", "note", "Plan: 1 of 2 done, next: two", detail="✓ one\n· two")


def test_what_codex_says_on_the_way_is_a_note_and_its_last_word_the_answer() -> None:
    dialect = make_dialect()

    said = say(
        dialect,
        completed(id="a", type="agent_message", text="I will look."),
        completed(id="b", type="reasoning", text="**Looking**"),
        completed(id="b2", type="agent_message", text="Nearly there."),
        completed(id="c", type="agent_message", text="Found it.\n"),
        completed(id="d", type="todo_list", items=[]),
        USAGE_LINE,
    )

    assert [(said.id, said.title) for said in said if isinstance(said, Action)] == [
        ("a", "I will look."),
        ("b", "Looking"),
        ("b2", "Nearly there."),
        ("d", "Plan: 0 of 0 done"),
    ]
    assert dialect.end(0, "").answer == "Found it."


def test_an_error_on_the_way_warns_and_does_not_end_the_run() -> None:
    dialect = make_dialect()

    said = say(
        dialect,
        THREAD_LINE,
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "error", "message": "Reconnecting... 2/5"},
        completed(type="agent_message", text="Back again."),
        USAGE_LINE,
    )

    assert said[1:] == [
        Action("error", "warning", "Reconnecting... 1/5"),
        Action("error", "warning", "Reconnecting... 2/5"),
    ]
    assert dialect.end(0, "").ok


def test_a_failed_turn_is_the_end_whatever_the_exit_code() -> None:
    dialect = make_dialect()
    say(dialect, THREAD_LINE, {"type": "turn.failed", "error": {"message": "too long"}})

    ending = dialect.end(0, "")

    assert (ending.ok, ending.error, ending.resume) == (False, "codex failed: too long", THREAD)


def test_a_completed_turn_is_a_result_whatever_the_exit_code() -> None:
    dialect = make_dialect()
    say(dialect, THREAD_LINE, completed(type="agent_message", text="Done."), USAGE_LINE)

    assert dialect.end(-15, "").ok


def test_a_missing_login_comes_with_the_way_in() -> None:
    dialect = make_dialect()
    message = "unexpected status 401 Unauthorized: Incorrect API key provided"
    say(dialect, THREAD_LINE, {"type": "turn.failed", "error": {"message": message}})

    assert dialect.end(1, "").error == f"codex failed: {message}. Log in with `codex login`."


@pytest.mark.parametrize(
    ("code", "stderr", "error"),
    [
        (-9, "WARNING: x\n", "codex was ended by SIGKILL without a result: Reconnecting... 5/5"),
        (1, "Error: no disk\n", "codex exited with code 1 without a result: no disk"),
    ],
)
def test_an_exit_without_a_result_names_the_last_thing_that_went_wrong(
    code: int, stderr: str, error: str
) -> None:
    dialect = make_dialect(resume=THREAD)
    say(dialect, {"type": "error", "message": "Reconnecting... 5/5"})

    ending = dialect.end(code, stderr)

    assert (ending.ok, ending.error) == (False, error)
    assert (ending.resume, ending.thread_lost) == (THREAD, False)


def test_a_thread_that_codex_does_not_have_is_lost() -> None:
    ending = make_dialect(resume=THREAD).end(1, "Error: no rollout found for thread id 1\n")

    assert ending.thread_lost
    assert ending.resume is None
    assert ending.error == "codex no longer knows this thread; start a new one."


def test_without_a_thread_to_resume_none_can_be_lost() -> None:
    assert not make_dialect().end(1, "Error: no rollout found for thread id 1\n").thread_lost


def test_a_thread_that_codex_replaced_in_silence_is_named() -> None:
    dialect = make_dialect(resume=ResumeToken(SPEC.id, "my-work"), model="m")

    begun, warning = say(dialect, THREAD_LINE)

    assert begun == Started(THREAD, "m")
    assert isinstance(warning, Action)
    assert warning.kind == "warning"
    assert warning.title.startswith("codex did not find thread my-work")
    assert dialect.end(0, "").resume == THREAD


def test_a_run_starts_once() -> None:
    dialect = make_dialect(resume=THREAD)

    assert say(dialect, THREAD_LINE, THREAD_LINE) == [Started(THREAD)]


def test_usage_is_told_for_a_new_thread_and_never_guessed_for_a_resumed_one() -> None:
    fresh, resumed = make_dialect(), make_dialect(resume=THREAD)
    for dialect in (fresh, resumed):
        say(dialect, THREAD_LINE, USAGE_LINE)

    assert fresh.end(0, "").usage == Usage(100, 20, 10)
    assert resumed.end(0, "").usage == Usage()


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"turn.diff","item":[1]}',
        b'{"type":"item.completed","item":{"id":"item_1","type":"hologram"}}',
        b'{"item":{"type":"hologram"},"type":"item.started"}',
    ],
)
def test_what_codex_may_say_one_day_means_nothing_yet(line: bytes) -> None:
    assert make_dialect().read(line) == ()


def test_the_type_need_not_come_first() -> None:
    line = f'{{"thread_id":"{THREAD.value}","new":[{{}}],"type":"thread.started"}}'

    assert make_dialect().read(line.encode()) == (Started(THREAD),)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"type":7}',
        b'{"type":"thread.started"}',
        b'{"type":"item.completed"}',
        b'{"type":"item.completed","item":{"id":"a","type":"agent_message","text":[]}}',
        b'{"type":"item.completed","item":{"type":"agent_message","text":"no id"}}',
        b'{"type":"error","message":"\xff"}',
        b'{"type":"error","message":"\\ud800"}',
        b'{"type":"error","x":' + b"[" * 100_000,
        b'{"type":"hologram","x":' + b'{"x":' * 100_000,
    ],
)
def test_a_line_of_another_language_raises_one_kind_of_error(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        make_dialect().read(line)
