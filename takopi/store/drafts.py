"""What is put together in a scope before it is sent: every version, and what waits to be taken in.

A scope has at most one draft. Its inputs and the presses that wait their turn are one queue, which
outlives the draft: what was said after a Run belongs to the next one.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Literal, NewType

from takopi.core.ids import MessageRef, Scope

DraftId = NewType("DraftId", int)
"""A draft from its first input to its Run or Reset."""

JobId = NewType("JobId", int)
"""Something that waits its turn in a scope."""

JobKind = Literal["text", "voice", "revert", "run"]
JobState = Literal["waiting", "failed", "append", "sending"]

# With the mark of the outbox for what nobody needs any more.
_CARD_KEY = re.compile(r"(?:closed:)?draft:(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Draft:
    """A prompt that is being put together.

    `words` are the directives that its first input began with, and None until that was taken in.
    `step` changes with every change of the text, and stands on the buttons. `cards` counts the
    messages that were to show it, and `card_id` is the last of them, once it has arrived.
    """

    id: DraftId
    scope: Scope
    versions: tuple[str, ...] = ()
    words: str | None = None
    step: int = 0
    cards: int = 0
    card_id: int | None = None

    @property
    def card_key(self) -> str:
        """Under what its card is in the outbox."""
        return _card_key(self.id, self.cards)

    @property
    def text(self) -> str:
        """The prompt as it is now."""
        return self.versions[-1] if self.versions else ""


@dataclass(frozen=True, slots=True)
class NewJob:
    """Something that is about to wait. `text` is an input's, or the file id of a voice note's.

    `step` is the draft's step that a press was made on.
    """

    kind: JobKind
    text: str = ""
    message_id: int | None = None
    duration_s: int = 0
    size_bytes: int | None = None
    step: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """Something that waits. `why` says what went wrong with it, where something did."""

    id: JobId
    new: NewJob
    state: JobState = "waiting"
    why: str = ""


def find(conn: sqlite3.Connection, scope: Scope) -> Draft | None:
    """The draft of the scope, if there is one."""
    row = conn.execute(
        "SELECT * FROM drafts WHERE transport = ? AND chat_id = ? AND topic_id IS ?", _here(scope)
    ).fetchone()
    if row is None:
        return None
    versions = conn.execute(
        "SELECT text FROM draft_versions WHERE draft_id = ? ORDER BY number", (row["id"],)
    )
    return Draft(
        id=DraftId(row["id"]),
        scope=scope,
        versions=tuple(version["text"] for version in versions),
        words=row["words"],
        step=row["step"],
        cards=row["cards"],
        card_id=row["card_id"],
    )


def scope_of(conn: sqlite3.Connection, draft_id: DraftId) -> Scope | None:
    """Where the draft is put together; None if it is over."""
    row = conn.execute("SELECT * FROM drafts WHERE id = ?", (draft_id,)).fetchone()
    return None if row is None else Scope(row["transport"], row["chat_id"], row["topic_id"])


def scope_of_card(conn: sqlite3.Connection, ref: MessageRef) -> Scope | None:
    """Where the draft is put together that this message shows; None if it shows none."""
    row = conn.execute(
        "SELECT * FROM drafts WHERE transport = ? AND chat_id = ? AND card_id = ?",
        (ref.transport, ref.chat_id, ref.message_id),
    ).fetchone()
    return None if row is None else Scope(row["transport"], row["chat_id"], row["topic_id"])


def open_draft(conn: sqlite3.Connection, scope: Scope) -> Draft:
    """The draft of the scope; an empty one, if there was none."""
    conn.execute(
        "INSERT INTO drafts (transport, chat_id, topic_id) SELECT ?, ?, ?"
        " WHERE NOT EXISTS (SELECT 1 FROM drafts"
        " WHERE transport = ? AND chat_id = ? AND topic_id IS ?)",
        (*_here(scope), *_here(scope)),
    )
    draft = find(conn, scope)
    assert draft is not None  # ruff: ignore[assert] it was made just now
    return draft


def save(conn: sqlite3.Connection, draft: Draft) -> None:
    """Keep the draft as it is now; versions that it no longer has are gone."""
    conn.execute(
        "UPDATE drafts SET words = ?, step = ? WHERE id = ?", (draft.words, draft.step, draft.id)
    )
    conn.execute(
        "DELETE FROM draft_versions WHERE draft_id = ? AND number >= ?",
        (draft.id, len(draft.versions)),
    )
    conn.executemany(
        "INSERT OR IGNORE INTO draft_versions VALUES (?, ?, ?)",
        [(draft.id, number, text) for number, text in enumerate(draft.versions)],
    )


def next_card(conn: sqlite3.Connection, draft_id: DraftId) -> str:
    """Another message is to show the draft: returns under what it goes into the outbox."""
    row = conn.execute(
        "UPDATE drafts SET cards = cards + 1, card_id = NULL WHERE id = ? RETURNING cards",
        (draft_id,),
    ).fetchone()
    return _card_key(draft_id, row["cards"])


def is_card_key(key: str) -> bool:
    """Whether what is under this key in the outbox is the card of a draft."""
    return _CARD_KEY.fullmatch(key) is not None


def card_arrived(conn: sqlite3.Connection, key: str, message_id: int) -> None:
    """This message shows the draft from now on, if it is its last card and it is not over."""
    if (found := _CARD_KEY.fullmatch(key)) is not None:
        conn.execute(
            "UPDATE drafts SET card_id = ? WHERE id = ? AND cards = ?",
            (message_id, int(found[1]), int(found[2])),
        )


def lose_card(conn: sqlite3.Connection, draft_id: DraftId) -> None:
    """No message shows the draft any more."""
    conn.execute("UPDATE drafts SET card_id = NULL WHERE id = ?", (draft_id,))


def end(conn: sqlite3.Connection, draft_id: DraftId) -> None:
    """The draft was sent or given up; what waits in its scope stays."""
    conn.execute("DELETE FROM drafts WHERE id = ?", (draft_id,))


def clear(conn: sqlite3.Connection, scope: Scope) -> Draft | None:
    """Forget the draft of the scope with everything that waits there; returns what it was."""
    draft = find(conn, scope)
    conn.execute(
        "DELETE FROM draft_jobs WHERE transport = ? AND chat_id = ? AND topic_id IS ?", _here(scope)
    )
    if draft is not None:
        end(conn, draft.id)
    return draft


def add_job(conn: sqlite3.Connection, scope: Scope, new: NewJob) -> Job:
    """Let something wait behind everything else of the scope."""
    row = conn.execute(
        "INSERT INTO draft_jobs (transport, chat_id, topic_id, kind, text, message_id, duration_s,"
        " size_bytes, step) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (
            *_here(scope),
            new.kind,
            new.text,
            new.message_id,
            new.duration_s,
            new.size_bytes,
            new.step,
        ),
    ).fetchone()
    return _job(row)


def jobs(conn: sqlite3.Connection, scope: Scope) -> tuple[Job, ...]:
    """What waits in the scope, in the order in which it came."""
    rows = conn.execute(
        "SELECT * FROM draft_jobs WHERE transport = ? AND chat_id = ? AND topic_id IS ?"
        " ORDER BY id",
        _here(scope),
    )
    return tuple(_job(row) for row in rows)


def set_state(conn: sqlite3.Connection, job_id: JobId, state: JobState, *, why: str = "") -> bool:
    """Say how it stands with a job; False if it is no longer there."""
    changed = conn.execute(
        "UPDATE draft_jobs SET state = ?, why = ? WHERE id = ?", (state, why, job_id)
    )
    return changed.rowcount == 1


def put_transcript(conn: sqlite3.Connection, job_id: JobId, text: str) -> bool:
    """A voice note is a text from now on; False if it is no longer there."""
    changed = conn.execute(
        "UPDATE draft_jobs SET kind = 'text', text = ? WHERE id = ? AND kind = 'voice'",
        (text, job_id),
    )
    return changed.rowcount == 1


def drop_job(conn: sqlite3.Connection, job_id: JobId) -> bool:
    """A job is done; False if somebody has removed it before."""
    return conn.execute("DELETE FROM draft_jobs WHERE id = ?", (job_id,)).rowcount == 1


def busy_scopes(conn: sqlite3.Connection) -> tuple[Scope, ...]:
    """Every scope in which there is a draft, or something waits."""
    rows = conn.execute(
        "SELECT transport, chat_id, topic_id FROM drafts"
        " UNION SELECT transport, chat_id, topic_id FROM draft_jobs"
    )
    return tuple(Scope(row["transport"], row["chat_id"], row["topic_id"]) for row in rows)


def move_chat(conn: sqlite3.Connection, old: Scope, new: Scope) -> None:
    """A chat has a new number: its drafts and what waits go along, without their old messages."""
    there = (new.chat_id, old.transport, old.chat_id)
    conn.execute(
        "UPDATE draft_jobs SET chat_id = ?, message_id = NULL WHERE transport = ? AND chat_id = ?",
        there,
    )
    # A draft that was begun in the new chat already is newer.
    conn.execute(
        "UPDATE OR IGNORE drafts SET chat_id = ?, card_id = NULL"
        " WHERE transport = ? AND chat_id = ?",
        there,
    )
    conn.execute(
        "DELETE FROM drafts WHERE transport = ? AND chat_id = ?", (old.transport, old.chat_id)
    )


def _card_key(draft_id: DraftId, number: int) -> str:
    return f"draft:{draft_id}:{number}"


def _here(scope: Scope) -> tuple[str, int, int | None]:
    return scope.transport, scope.chat_id, scope.topic_id


def _job(row: sqlite3.Row) -> Job:
    new = NewJob(
        kind=row["kind"],
        text=row["text"],
        message_id=row["message_id"],
        duration_s=row["duration_s"],
        size_bytes=row["size_bytes"],
        step=row["step"],
    )
    return Job(JobId(row["id"]), new, state=row["state"], why=row["why"])
