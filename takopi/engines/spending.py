"""Adds up what an engine spent in several steps, and keeps apart "nothing" and "not told"."""

from __future__ import annotations

from takopi.core.events import Usage


def add_usage(total: Usage, step: Usage) -> Usage:
    """Both together; a number that neither tells stays None."""
    return Usage(
        add_counts(total.input_tokens, step.input_tokens),
        add_counts(total.output_tokens, step.output_tokens),
        add_counts(total.cached_tokens, step.cached_tokens),
        total.cost_usd
        if step.cost_usd is None
        else step.cost_usd
        if total.cost_usd is None
        else total.cost_usd + step.cost_usd,
    )


def add_counts(*counts: int | None) -> int | None:
    """The sum of those that are told."""
    told = [count for count in counts if count is not None]
    return sum(told) if told else None
