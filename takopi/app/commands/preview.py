"""/preview: what a message would be sent as, to the letter, without being sent."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from takopi.app.desk import Call, Desk, Rest, answer
from takopi.core.outgoing import Attachment, Card, Outgoing, Text
from takopi.present.cards import fit, notice
from takopi.present.compose import bold, plain, pre, prose, stack
from takopi.present.numbers import count
from takopi.present.units import length
from takopi.projects.registry import find_project, find_root
from takopi.prompts.request import AggregatedPrompt
from takopi.routing.resolve import Resolved
from takopi.runs.deliver import where
from takopi.runs.tooling import Prepared, prepare
from takopi.runs.workshop import put
from takopi.store.ledger import NewRun

USAGE = "use `/preview <message>`"
SHORT_UNITS = 3000
"""A prompt up to this length is read in the chat, a longer one as a file."""

CAPTION_UNITS = 1000
"""What may stand under a file."""

MESSAGE, SYSTEM = "message", "system prompt"


async def run(desk: Desk, call: Call) -> Rest | None:
    """Show the prompt that the message would become here, and start nothing but its servers.

    What it would become is decided at once; the servers have time to start.
    """
    if not call.args:
        await answer(desk, call, notice(f"{USAGE.capitalize()}."))
        return None
    resolved = await desk.requests.resolve(replace(call.message, text=call.args))
    new = NewRun(call.scope, resolved.prompt, resolved.engine, context=resolved.context)
    system = desk.interviews.instruction(new, resumed=await _goes_on(desk, resolved))
    return partial(_show_prepared, desk, call, resolved, system=system)


async def _show_prepared(desk: Desk, call: Call, resolved: Resolved, *, system: str | None) -> None:
    prepared = await prepare(
        desk.shop.mcp,
        resolved.prompt,
        engine=resolved.engine,
        context=resolved.context,
        system=system,
    )
    title = resolved.engine
    if resolved.context is not None:
        title += f" · {where(resolved.context, None)}"
    messages = show(prepared, title=title, notes=resolved.notes)

    def change(conn: sqlite3.Connection) -> None:
        for each in messages:
            message = replace(each, reply_to=call.message.message_id)
            put(conn, call.scope, message, kind="notice")

    await desk.shop.db.write(change)
    desk.shop.transport(call.scope).wake(call.scope.chat)


def show(prepared: Prepared, *, title: str, notes: Sequence[str] = ()) -> tuple[Outgoing, ...]:
    """The prompt as messages: one that is read, or each part as a file where it is long."""
    prompt = prepared.prompt
    facts = [
        bold(title),
        plain(f"about {count(prompt.metadata.token_estimate)} tokens"),
        plain(describe(prompt)),
        *(prose(note) for note in (*notes, *prepared.offer.problems)),
    ]
    head = fit(stack(facts), CAPTION_UNITS - len(SYSTEM))
    parts = {SYSTEM: prompt.system or "", MESSAGE: prompt.user}
    shown: list[Text] = [head]
    for name, text in parts.items():
        if text:
            shown += [stack([bold(f"{name}:"), pre(text)])]
    whole = stack(shown, "\n\n")
    if length(whole.text) <= SHORT_UNITS and all(map(_stays_as_it_is, parts.values())):
        return (Outgoing(Card(whole)),)
    heads = iter([head])
    return tuple(
        Outgoing(
            Card(stack([next(heads, plain("")), bold(name)], "\n\n")),
            attachment=Attachment(f"{name.replace(' ', '-')}.md", text.encode("utf-8", "replace")),
        )
        for name, text in parts.items()
        if text
    )


def describe(prompt: AggregatedPrompt) -> str:
    """Its sections and how many characters each has."""
    sizes = prompt.metadata.section_sizes
    return "characters: " + (", ".join(f"{name} {size}" for name, size in sizes) or "none")


def _stays_as_it_is(text: str) -> bool:
    """Whether a chat shows every character of it, and adds none."""
    return text == text.strip() and all(char == "\n" or char.isprintable() for char in text)


async def _goes_on(desk: Desk, resolved: Resolved) -> bool:
    """Whether the run would resume a thread, as far as that can be known before it begins."""
    if resolved.session_cwd is None or resolved.thread is None:
        return resolved.thread is not None or resolved.waits_for is not None
    context = resolved.context
    if context is None:
        return resolved.session_cwd == desk.shop.start_cwd
    if context.branch is None:
        root = await find_root(find_project(desk.config, context.project))
        return resolved.session_cwd == root
    return True
