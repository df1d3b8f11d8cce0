from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import (
    NotConfigured,
    RefusedByModel,
    TakopiError,
    Unfit,
    Unreachable,
    UnusableAnswer,
)
from takopi.kit.proc import Keeper
from takopi.oneshot.backend import MAX_ANSWER_CHARS
from takopi.oneshot.cli import MAX_OUTPUT_BYTES, Claude, Cli
from tests.kit.processes import MARK, STUBBORN, alive, new_mark, until_alive, until_gone

WAIT_S = 60
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 1,
    "stop_reason": "end_turn",
    "api_error_status": None,
    "result": "eight arms",
    "usage": {"input_tokens": 100},
}
# Says what it was called with, and answers with what stands beside it in `result.json`.
ECHO = """\
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
argv = sys.argv[1:]
system = argv[argv.index("--system-prompt-file") + 1]
seen = {
    "argv": argv,
    "cwd": os.getcwd(),
    "files": os.listdir(),
    "system": open(system).read(),
    "modes": [oct(os.stat(os.path.dirname(system)).st_mode & 0o777)],
    "prompt": sys.stdin.read(),
    "env": dict(os.environ),
}
json.dump(seen, open(here + "/seen.json", "w"))
sys.stdout.write(open(here + "/result.json").read())
"""


def program(folder: Path, body: str, *, interpreter: str = sys.executable) -> str:
    path = folder / "claude"
    path.write_text(f"#!{interpreter}\n{body}")
    path.chmod(0o755)
    return str(path)


def echo(folder: Path, **result: Any) -> str:
    (folder / "result.json").write_text(json.dumps({**RESULT, **result}))
    return program(folder, ECHO)


def cli(
    keeper: Keeper,
    command: str,
    *,
    environ: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    env: Mapping[str, str] | None = None,
    use_api_billing: bool = False,
) -> Cli:
    return Cli(
        settings=settings or Settings(),
        claude=Claude(command, env or {}, use_api_billing),
        keeper=keeper,
        environ={"PATH": os.environ["PATH"], **(environ or {})},
        secrets=("bot-token",),
        grace_s=0.2,
    )


async def complain(asked: Cli) -> TakopiError:
    with trio.fail_after(WAIT_S), pytest.raises(TakopiError) as caught:
        await asked.complete("be brief", "hello")
    return caught.value


async def seen_by(asked: Cli, folder: Path, *, user: str = "hello") -> dict[str, Any]:
    with trio.fail_after(WAIT_S):
        assert await asked.complete("be brief", user) == "eight arms"
    return json.loads((folder / "seen.json").read_bytes())


async def test_the_question_is_on_stdin_and_its_system_prompt_in_a_file(
    keeper: Keeper, tmp_path: Path
) -> None:
    seen = await seen_by(cli(keeper, echo(tmp_path)), tmp_path)
    assert (seen["prompt"], seen["system"]) == ("hello", "be brief")
    assert not {"hello", "be brief"} & set(seen["argv"])


async def test_claude_has_no_tools_no_servers_and_no_session(
    keeper: Keeper, tmp_path: Path
) -> None:
    argv = (await seen_by(cli(keeper, echo(tmp_path)), tmp_path))["argv"]
    assert not argv[argv.index("--tools") + 1]
    assert {"--strict-mcp-config", "--no-session-persistence"} <= set(argv)
    assert "--model" not in argv


async def test_the_configured_model_is_asked(keeper: Keeper, tmp_path: Path) -> None:
    asked = cli(keeper, echo(tmp_path), settings=Settings(model="haiku"))
    argv = (await seen_by(asked, tmp_path))["argv"]
    assert argv[argv.index("--model") + 1] == "haiku"


async def test_claude_works_in_an_empty_private_folder_that_is_gone_afterwards(
    keeper: Keeper, tmp_path: Path
) -> None:
    seen = await seen_by(cli(keeper, echo(tmp_path)), tmp_path)
    assert (seen["files"], seen["modes"]) == ([], ["0o700"])
    assert seen["env"]["PWD"] == seen["cwd"]
    assert not Path(seen["cwd"]).parent.exists()


@pytest.mark.parametrize("user", ["/cost", "//x", "/"])
async def test_a_question_that_begins_with_a_slash_is_not_a_command(
    keeper: Keeper, tmp_path: Path, user: str
) -> None:
    seen = await seen_by(cli(keeper, echo(tmp_path)), tmp_path, user=user)
    assert seen["prompt"] == f"\n{user}"


async def test_long_texts_go_through_whole(keeper: Keeper, tmp_path: Path) -> None:
    asked = cli(keeper, echo(tmp_path))
    system, user = "s" * 3_000_000, "ü" * 1_000_000
    with trio.fail_after(WAIT_S):
        await asked.complete(system, user)
    seen = json.loads((tmp_path / "seen.json").read_bytes())
    assert (seen["system"], seen["prompt"]) == (system, user)


async def test_the_environment_has_no_secret_and_keeps_the_persons_own_customs_out(
    keeper: Keeper, tmp_path: Path
) -> None:
    environ = {
        "ANTHROPIC_API_KEY": "key",
        "A": "xbot-tokenx",
        "TAKOPI_HOME": "/t",
        "CLAUDECODE": "1",
    }
    asked = cli(keeper, echo(tmp_path), environ=environ, env={"CLAUDE_CODE_SAFE_MODE": "0"})
    env = (await seen_by(asked, tmp_path))["env"]
    assert not environ.keys() & env.keys()
    assert env["CLAUDE_CODE_SAFE_MODE"] == env["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"


async def test_the_key_is_inherited_only_when_it_is_to_pay(keeper: Keeper, tmp_path: Path) -> None:
    inherited = {"ANTHROPIC_API_KEY": "inherited"}
    command = echo(tmp_path)
    paying = cli(keeper, command, environ=inherited, use_api_billing=True)
    assert (await seen_by(paying, tmp_path))["env"]["ANTHROPIC_API_KEY"] == "inherited"
    own = cli(keeper, command, environ=inherited, env={"ANTHROPIC_API_KEY": "own"})
    assert (await seen_by(own, tmp_path))["env"]["ANTHROPIC_API_KEY"] == "own"


async def test_the_persons_number_of_retries_stands(keeper: Keeper, tmp_path: Path) -> None:
    asked = cli(keeper, echo(tmp_path), env={"CLAUDE_CODE_MAX_RETRIES": "7"})
    assert (await seen_by(asked, tmp_path))["env"]["CLAUDE_CODE_MAX_RETRIES"] == "7"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"api_error_status": 401, "result": "Invalid API key"}, NotConfigured),
        ({"result": "Not logged in"}, NotConfigured),
        ({"result": "OAuth token revoked · Please run /login"}, NotConfigured),
        ({"api_error_status": 404, "result": "no such model"}, RefusedByModel),
        ({"api_error_status": 429, "result": "resets 3pm"}, Unreachable),
        ({"api_error_status": 500, "result": "API Error: 500"}, Unreachable),
        ({"result": "API Error: Connection refused"}, Unreachable),
        ({"api_error_status": 529, "result": ""}, Unreachable),
    ],
)
async def test_an_error_that_claude_reports_is_told_in_its_words(
    keeper: Keeper, tmp_path: Path, result: dict[str, Any], expected: type[TakopiError]
) -> None:
    error = await complain(cli(keeper, echo(tmp_path, is_error=True, **result)))
    assert type(error) is expected
    assert result["result"].removesuffix(" · Please run /login") in error.what
    if expected is NotConfigured:
        assert "claude auth login" in error.way_out


async def test_an_error_without_a_result_is_told_by_its_list_of_errors(
    keeper: Keeper, tmp_path: Path
) -> None:
    (tmp_path / "result.json").write_text('{"is_error": true, "errors": ["no disk", "no luck"]}')
    error = await complain(cli(keeper, program(tmp_path, ECHO)))
    assert (type(error), error.what) == (Unreachable, "no disk; no luck")


async def test_the_last_word_of_a_verbose_claude_is_its_answer(
    keeper: Keeper, tmp_path: Path
) -> None:
    command = echo(tmp_path)
    lines: list[dict[str, Any]] = [{"type": "system", "errors": 5}, {"result": []}, RESULT]
    (tmp_path / "result.json").write_text(json.dumps(lines))
    await seen_by(cli(keeper, command), tmp_path)


async def test_a_model_that_declines_has_refused(keeper: Keeper, tmp_path: Path) -> None:
    asked = cli(keeper, echo(tmp_path, stop_reason="refusal", result=""))
    assert isinstance(await complain(asked), RefusedByModel)


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
async def test_an_answer_that_ran_out_of_room_is_not_taken_for_a_whole_one(
    keeper: Keeper, tmp_path: Path, reason: str
) -> None:
    assert isinstance(
        await complain(cli(keeper, echo(tmp_path, stop_reason=reason))), UnusableAnswer
    )


async def test_an_answer_that_is_too_long_is_not_used(keeper: Keeper, tmp_path: Path) -> None:
    asked = cli(keeper, echo(tmp_path, result="x" * (MAX_ANSWER_CHARS + 1)))
    assert isinstance(await complain(asked), UnusableAnswer)


async def test_output_without_end_is_given_up_and_its_process_ended(
    keeper: Keeper, tmp_path: Path
) -> None:
    mark = new_mark()
    command = program(tmp_path, "cat /dev/zero\n", interpreter="/bin/sh")
    assert isinstance(await complain(cli(keeper, command, env={MARK: mark})), UnusableAnswer)
    assert alive(mark) == []
    assert MAX_OUTPUT_BYTES < 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("exit 0", "claude ended with code 0 and without an answer"),
        ("echo '<html>'; exit 3", "claude ended with code 3 and without an answer"),
        ("echo '[]'", "claude ended with code 0 and without an answer"),
        (r"printf '\377'", "claude ended with code 0 and without an answer"),
        ("""printf '{"result": "cut'""", "claude ended with code 0 and without an answer"),
        (
            r"""printf '{"is_error": false, "result": "\377"}'""",
            "claude ended with code 0 and without an answer",
        ),
        (
            """printf '{"x":'; head -c 200000 /dev/zero | tr '\\0' '['""",
            "claude ended with code 0 and without an answer",
        ),
        ("kill -9 $$", "claude ended by signal 9 and without an answer"),
        (
            r"printf 'first\n\033[31mno memory\033[0m\n\n' >&2; exit 1",
            "claude ended with code 1 and without an answer: no memory",
        ),
    ],
)
async def test_claude_that_ends_without_an_answer_is_unreachable(
    keeper: Keeper, tmp_path: Path, body: str, what: str
) -> None:
    error = await complain(cli(keeper, program(tmp_path, body, interpreter="/bin/sh")))
    assert isinstance(error, Unreachable)
    assert error.what == what


async def test_claude_that_nobody_watches_over_any_more_is_unreachable(
    keeper: Keeper, tmp_path: Path
) -> None:
    command = program(tmp_path, "kill -9 $PPID; sleep 300", interpreter="/bin/sh")
    error = await complain(cli(keeper, command))
    assert isinstance(error, Unreachable)
    assert "was ended" in error.what


async def test_a_claude_that_does_not_know_its_options_is_too_old(
    keeper: Keeper, tmp_path: Path
) -> None:
    body = "echo \"error: unknown option '--tools'\" >&2; exit 1"
    error = await complain(cli(keeper, program(tmp_path, body, interpreter="/bin/sh")))
    assert isinstance(error, NotConfigured)
    assert "unknown option '--tools'" in error.what
    assert "npm install" in error.way_out


async def test_a_claude_that_is_not_there_is_named_with_what_installs_it(
    keeper: Keeper, tmp_path: Path
) -> None:
    error = await complain(cli(keeper, str(tmp_path / "none")))
    assert isinstance(error, NotConfigured)
    assert str(tmp_path / "none") in error.what
    assert "npm install" in error.way_out


async def test_no_place_for_a_temporary_folder_is_said(
    keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    error = await complain(cli(keeper, echo(tmp_path)))
    assert type(error) is Unfit
    assert "TMPDIR" in error.way_out


@pytest.mark.parametrize("kind", STUBBORN)
async def test_a_cancel_leaves_no_process_and_no_folder(
    keeper: Keeper, tmp_path: Path, kind: str
) -> None:
    mark = new_mark()
    here = tmp_path / "here"
    body = f"pwd > {here}.new; mv {here}.new {here}; {STUBBORN[kind]}"
    asked = cli(keeper, program(tmp_path, body, interpreter="/bin/sh"), env={MARK: mark})
    with trio.fail_after(WAIT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asked.complete, "be brief", "hello")
            await until_alive(mark, 3)
            nursery.cancel_scope.cancel()
    await until_gone(mark, within_s=asked.grace_s + 1)
    folder = Path(here.read_text().strip()).parent
    assert folder.name.startswith("takopi-oneshot-")
    assert not folder.exists()
