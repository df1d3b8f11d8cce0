from typing import Any

import pytest

from takopi.core.events import Completed
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.claude.spec import SPEC, ClaudeSettings
from takopi.engines.claude.translate import ClaudeDialect
from tests.engines.claude_talk import CWD, INIT, RESULT, THREAD, make_dialect, say


def end(*lines: dict[str, Any], code: int = 1, stderr: str = "", **keys: Any) -> Completed:
    dialect = make_dialect(**keys)
    say(dialect, *lines)
    return dialect.end(code, stderr)


def failed(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "error_during_execution", "is_error": True, **fields}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (failed(subtype="success", result="API Error: 400 no"), "API Error: 400 no"),
        (failed(errors=["one", "[ede_diagnostic] x", "two"]), "one; two"),
        (failed(terminal_reason="aborted_tools", errors=["x"]), "claude was interrupted."),
        (
            failed(subtype="error_max_turns", num_turns=9),
            "claude stopped at its limit of turns after 9 turns. Say “continue” to go on.",
        ),
        (
            failed(subtype="error_max_budget_usd"),
            "claude stopped at its limit of cost, --max-budget-usd. Raise it in extra_args.",
        ),
        (
            failed(result="Not logged in · Please run /login"),
            (
                "Not logged in. Log in with `claude auth login`. "
                "To pay by ANTHROPIC_API_KEY instead, set use_api_billing."
            ),
        ),
        (failed(), "claude exited with code 1 without a result: it broke"),
    ],
)
def test_a_failed_turn_says_why(line: dict[str, Any], error: str) -> None:
    completed = end(line, stderr="it broke\n")
    assert (completed.ok, completed.error) == (False, error)


def test_who_pays_by_key_is_not_told_to() -> None:
    completed = end(failed(result="Invalid API key"), use_api_billing=True)
    assert completed.error == "Invalid API key. Log in with `claude auth login`."


@pytest.mark.parametrize(
    ("code", "stderr", "error"),
    [
        (-9, "", "claude was ended by SIGKILL without a result."),
        (
            1,
            "--dangerously-skip-permissions cannot be used with root/sudo privileges",
            (
                'claude refuses permission_mode "bypass" as root. '
                "Run takopi as another user, or choose another permission_mode."
            ),
        ),
        (
            1,
            "error: unknown option '--octopus'\n",
            (
                "claude does not take its arguments: unknown option '--octopus'. "
                "Check extra_args and model, or update claude."
            ),
        ),
    ],
)
def test_an_end_without_a_result_says_how(code: int, stderr: str, error: str) -> None:
    completed = end(INIT, code=code, stderr=stderr)
    assert (completed.ok, completed.error) == (False, error)
    assert completed.resume == ResumeToken(SPEC.id, "s-1")


@pytest.mark.parametrize(
    "sign", ["No conversation found with session ID: 1", '"x" does not match any session title']
)
def test_a_lost_thread_is_not_offered_again(sign: str) -> None:
    for dialect_lines, stderr in (([failed(errors=[sign])], ""), ([], sign)):
        dialect = ClaudeDialect(ClaudeSettings(), EngineJob("p", CWD, resume=THREAD))
        say(dialect, *dialect_lines)
        completed = dialect.end(1, stderr)
        assert (completed.ok, completed.thread_lost, completed.resume) == (False, True, None)


def test_an_answer_that_quotes_a_lost_thread_has_lost_nothing() -> None:
    completed = end({**RESULT, "result": "No conversation found"}, code=0)
    assert (completed.ok, completed.thread_lost) == (True, False)


def test_a_thread_that_did_not_come_up_can_still_be_resumed() -> None:
    dialect = ClaudeDialect(ClaudeSettings(), EngineJob("p", CWD, resume=THREAD))
    assert dialect.end(1, "no network").resume == THREAD


def test_the_result_decides_and_not_the_exit_code() -> None:
    assert end(INIT, RESULT, code=-15).ok


def test_what_a_resumed_thread_spent_before_is_not_counted() -> None:
    used = {"inputTokens": 10, "outputTokens": 3, "cacheReadInputTokens": 5, "costUSD": 0.25}
    other = {"inputTokens": 1, "outputTokens": 1, "cacheCreationInputTokens": 2, "costUSD": 0.5}
    line = {**RESULT, "total_cost_usd": 9, "model_usage_since_last_result": {"a": used, "b": other}}
    usage = end(line, line).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (36, 8, 10)
    assert usage.cost_usd == pytest.approx(1.5)


def test_an_older_claude_tells_its_usage_by_turn() -> None:
    used = {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 5}
    usage = end({**RESULT, "total_cost_usd": 0.5, "usage": used}).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (15, 3, 5)
    assert usage.cost_usd == pytest.approx(0.5)
