"""How a run of claude came out: what it spent, and one sentence with a way out where it failed."""

from __future__ import annotations

from collections.abc import Sequence

from takopi.core.events import Usage
from takopi.engines.claude.schema import ModelUsage, Result, TurnUsage
from takopi.engines.wording import (
    explain_exit,
    explain_lost_thread,
    last_words,
    unwrap_error,
    with_login,
)

LOGIN = "claude auth login"

_LOST = ("No conversation found", "does not match any session")
_ROOT = "cannot be used with root"
_DIAGNOSTIC = "[ede_diagnostic]"


def spent(result: Result) -> Usage:
    """What a turn spent; input counts all that was sent, from the cache or not.

    The CLI's totals go on from those of a resumed thread, and `usage` leaves subagents out. What
    was used since the last result is this run's own; older versions do not tell it.
    """
    since = result.model_usage_since_last_result
    if since is None:
        return _add_up([result.usage], result.total_cost_usd) if result.usage else Usage()
    return _add_up([*since.values()], sum(used.cost_usd for used in since.values()))


def is_thread_lost(result: Result | None, stderr: str) -> bool:
    """Whether claude does not have the conversation that it was asked to resume."""
    words = stderr if result is None else "\n".join(result.errors or ())
    return any(sign in words for sign in _LOST)


def explain_failure(result: Result | None, *, code: int, stderr: str, use_api_billing: bool) -> str:
    """One sentence for a run that brought no answer."""
    if is_thread_lost(result, stderr):
        return explain_lost_thread("claude")
    if result is None:
        return _explain_silence(code, stderr)
    if (result.terminal_reason or "").startswith("aborted"):
        return "claude was interrupted."
    if result.subtype == "error_max_turns":
        turns = f" after {result.num_turns} turns" if result.num_turns else ""
        return f"claude stopped at its limit of turns{turns}. Say “continue” to go on."
    if result.subtype == "error_max_budget_usd":
        return "claude stopped at its limit of cost, --max-budget-usd. Raise it in extra_args."
    said = [error for error in result.errors or () if not error.startswith(_DIAGNOSTIC)]
    if result.result:
        said.append(result.result)
    if not said:
        return _explain_silence(code, stderr)
    return _explain_login(unwrap_error("; ".join(said)), use_api_billing=use_api_billing)


def _add_up(parts: Sequence[TurnUsage | ModelUsage], cost_usd: float | None) -> Usage:
    cached = sum(part.cache_read_input_tokens for part in parts)
    fresh = sum(part.input_tokens + part.cache_creation_input_tokens for part in parts)
    return Usage(
        input_tokens=fresh + cached,
        output_tokens=sum(part.output_tokens for part in parts),
        cached_tokens=cached,
        cost_usd=cost_usd,
    )


def _explain_silence(code: int, stderr: str) -> str:
    if _ROOT in stderr:
        return (
            'claude refuses permission_mode "bypass" as root. '
            "Run takopi as another user, or choose another permission_mode."
        )
    if "unknown option" in stderr or "Allowed choices are" in stderr:
        return (
            f"claude does not take its arguments: {last_words(stderr)}. "
            "Check extra_args and model, or update claude."
        )
    return explain_exit("claude", code, stderr=stderr)


def _explain_login(error: str, *, use_api_billing: bool) -> str:
    # /login is a command of the terminal's screen, which is not here.
    told = with_login(error.replace(" · Please run /login", ""), LOGIN)
    if told.endswith(f"`{LOGIN}`.") and not use_api_billing:
        return f"{told} To pay by ANTHROPIC_API_KEY instead, set use_api_billing."
    return told
