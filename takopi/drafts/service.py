"""Collects what people say in a scope into one prompt, in order, until somebody sends it.

Everything is in the store before it is shown or confirmed.
"""

from __future__ import annotations

import sqlite3

import trio

from takopi.core.errors import Refused
from takopi.core.ids import InboxId, Scope
from takopi.core.messages import IncomingMessage, Press
from takopi.drafts.bindings import Bindings
from takopi.drafts.face import Faces, card_ref, clear
from takopi.drafts.machine import DraftPress, State, Verdict, judge
from takopi.drafts.ports import Ports
from takopi.drafts.queue import Queues
from takopi.drafts.tmux import read_target
from takopi.drafts.view import MOVED_ON, NOT_ADMIN
from takopi.kit.clock import now_ms
from takopi.store import drafts as rows
from takopi.store import inbox, scopes, threads
from takopi.store.drafts import Draft, DraftId, NewJob
from takopi.store.scopes import Choices

DECIDED = "This was decided already."


class Drafts:
    """All drafts of this process. Their tasks live in `nursery`."""

    def __init__(self, nursery: trio.Nursery, ports: Ports) -> None:
        self._nursery = nursery
        self._ports = ports
        self.faces = Faces(nursery, ports)
        self.bindings = Bindings(nursery, ports, self.faces, stop=self._stop)
        self._queues = Queues(nursery, ports, self.faces, on_gone=self.bindings.detach_gone)

    async def resume(self) -> None:
        """Go on with what an earlier process left."""
        busy, bound = await self._ports.db.read(
            lambda conn: (rows.busy_scopes(conn), scopes.targets(conn))
        )
        if self._nursery.cancel_scope.cancel_called:
            # takopi is stopping, and a chat has moved: the next start goes on.
            return
        for scope in busy:
            self._queues.kick(scope)
            self.faces.touch(scope)
        for scope, text in bound:
            if (target := read_target(text)) is not None:
                self.bindings.attached(scope, target)

    async def takes(self, message: IncomingMessage) -> bool:
        """Whether the message is for a draft: all are where drafting is on, but replies to runs."""

        def look(conn: sqlite3.Connection) -> bool:
            drafting = is_drafting(scopes.get(conn, message.scope))
            return drafting and not _is_of_run(conn, message)

        return await self._ports.db.read(look)

    async def add(self, message: IncomingMessage, inbox_id: InboxId) -> None:
        """Take a message in once, and confirm that it came."""
        new = _input(message)
        scope = message.scope

        def change(conn: sqlite3.Connection) -> bool:
            if not inbox.take(conn, inbox_id):
                return False
            rows.open_draft(conn, scope)
            rows.add_job(conn, scope, new)
            inbox.settle(conn, inbox_id, "done", now_ms=now_ms())
            return True

        if await self._ports.db.write(change):
            self._queues.kick(scope)
            self.faces.touch(scope)

    async def press(self, press: Press, what: DraftPress) -> None:
        """Do what was pressed, where an admin pressed it and it still means what it says."""
        transport = self._ports.transport(press.scope)
        if not await self._ports.is_admin(press.scope, press.sender_id):
            transport.acknowledge(press, NOT_ADMIN, alert=True)
            return
        verdict, draft = await self._ports.db.write(lambda conn: _decide(conn, press, what))
        if verdict == "yes" and draft is not None:
            transport.acknowledge(press)
            if what.what == "reset":
                self._queues.stop(draft.scope)
                self.faces.delete(draft)
                return
            self._queues.kick(draft.scope)
            self.faces.touch(draft.scope)
            return
        transport.acknowledge(press, MOVED_ON if verdict == "outdated" else DECIDED)
        if draft is not None and card_ref(draft) == press.ref:
            self.faces.touch(draft.scope)
        elif verdict == "outdated":
            transport.clear_buttons(press.ref)

    async def show(self, scope: Scope) -> bool:
        """Send the card anew, below everything that was said since; False if there is no draft."""

        def change(conn: sqlite3.Connection) -> Draft | None:
            draft = rows.find(conn, scope)
            if draft is not None:
                rows.lose_card(conn, draft.id)
            return draft

        draft = await self._ports.db.write(change)
        if draft is None:
            return False
        if (ref := card_ref(draft)) is not None:
            self._ports.transport(scope).clear_buttons(ref)
        self.faces.touch(scope)
        return True

    async def forget(self, scope: Scope) -> None:
        """The scope is no longer there: nothing of its draft stays."""
        await self._ports.db.write(lambda conn: clear(conn, scope))
        self._queues.stop(scope)
        self.bindings.let_go(scope)

    def _stop(self, scope: Scope) -> None:
        self._queues.stop(scope)


def is_drafting(choices: Choices) -> bool:
    """Whether messages are put together where these choices hold."""
    return choices.drafting or choices.target is not None


def _is_of_run(conn: sqlite3.Connection, message: IncomingMessage) -> bool:
    ref = message.reply_ref
    if ref is None or message.reply_to_message_id == message.thread_id:
        return False
    return threads.run_of(conn, ref) is not None or threads.thread_of(conn, ref) is not None


def _input(message: IncomingMessage) -> NewJob:
    voice = message.voice
    if voice is not None and not message.text.strip():
        return NewJob(
            "voice",
            voice.file_id,
            message_id=message.message_id,
            duration_s=voice.duration_s,
            size_bytes=voice.size_bytes,
        )
    if not message.text.strip():
        raise Refused("a draft takes text and voice notes", way_out="say in words what you mean")
    return NewJob("text", message.text, message_id=message.message_id)


def _decide(
    conn: sqlite3.Connection, press: Press, what: DraftPress
) -> tuple[Verdict, Draft | None]:
    scope = rows.scope_of(conn, DraftId(what.draft))
    if scope is None or scope.chat != press.scope.chat:
        return "outdated", None
    draft = rows.find(conn, scope)
    if draft is None or card_ref(draft) != press.ref:
        return "outdated", draft
    state = State(draft, rows.jobs(conn, scope))
    verdict = judge(state, what)
    if verdict == "yes":
        head = state.failed
        match what.what:
            case "run" | "revert":
                rows.add_job(conn, scope, NewJob(what.what, step=what.step))
            case "reset":
                clear(conn, scope)
            case "retry" | "append" if head is not None:
                new_state = "waiting" if what.what == "retry" else "append"
                rows.set_state(conn, head.id, new_state)
            case _:
                pass
    return verdict, draft
