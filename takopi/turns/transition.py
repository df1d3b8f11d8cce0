"""Says what the next turn starts with: its ledger, its context and its agent's prompt.

A turn continues the one before it. READ and PRUNE that succeeded change its context; INVOKE and
CONCLUDE that succeeded hand it to another agent, with what that one needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from takopi.turns.layout import Meta
from takopi.turns.outcome import Done
from takopi.turns.paths import normal
from takopi.turns.plan import Conclude, Invoke, Prune, Read


@dataclass(frozen=True, slots=True)
class Start:
    """What a turn has before anybody plans it."""

    meta: Meta
    context: tuple[str, ...]
    prompt: str


def next_start(
    current: Start,
    turn_id: str,
    *,
    done: Iterable[Done],
    report: str | None,
    prompt_of: Callable[[str], str],
    turn_of: Callable[[str], Start],
    created: str = "",
    replan_of: str | None = None,
) -> Start:
    """The start of the turn after `current`.

    `report` is the path of the current turn's report, None where it stays out of the context.
    `prompt_of` gives the prompt of an agent, `turn_of` an earlier turn by its id.
    """
    meta = Meta(
        turn_id=turn_id,
        parent_turn_id=current.meta.turn_id,
        caller_turn_id=current.meta.caller_turn_id,
        agent=current.meta.agent,
        created=created,
        replan_of=replan_of,
    )
    context, prompt = list(current.context), current.prompt
    for one in done:
        if not one.succeeded:
            continue
        match one.action:
            case Read(path=path):
                context.append(normal(path))
            case Prune(path=path):
                context = [entry for entry in context if normal(entry) != normal(path)]
            case Invoke() as invoke:
                context = [normal(path) for path in invoke.handoff]
                prompt = prompt_of(invoke.agent)
                meta = _with(meta, agent=invoke.agent.lower(), caller=current.meta.turn_id)
            case Conclude() as conclude if current.meta.caller_turn_id is not None:
                caller = turn_of(current.meta.caller_turn_id)
                context = [*caller.context, *(normal(path) for path in conclude.handoff)]
                prompt = caller.prompt
                meta = _with(
                    meta,
                    agent=caller.meta.agent,
                    caller=caller.meta.caller_turn_id,
                    parent=caller.meta.turn_id,
                )
            case _:
                pass
    if report is not None:
        context.append(report)
    return Start(meta, tuple(dict.fromkeys(context)), prompt)


def _with(meta: Meta, *, agent: str, caller: str | None, parent: str | None = None) -> Meta:
    return Meta(
        turn_id=meta.turn_id,
        parent_turn_id=parent or meta.parent_turn_id,
        caller_turn_id=caller,
        agent=agent,
        created=meta.created,
        replan_of=meta.replan_of,
    )
