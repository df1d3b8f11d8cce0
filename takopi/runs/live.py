"""A run that is queued or working in this process, and how it reads on its card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import trio

from takopi.core.events import Event, Started
from takopi.core.ids import ResumeToken, RunId
from takopi.core.outgoing import Card
from takopi.present.cards import progress_card
from takopi.present.progress import Progress
from takopi.runs.buttons import run_button
from takopi.runs.edits import Face
from takopi.runs.workshop import Workshop
from takopi.store.ledger import Run

Stage = Literal["queued", "preparing worktree", "working", "waiting for you", "cancelling"]

SAID_CHARS = 20_000
"""How much of what an engine said on its way is kept for the case that it is stopped."""


@dataclass(slots=True, eq=False)
class Live:
    """One run. `waits_for` and `session_cwd` are what `routing.Resolved` says they are.

    With `keeps_session`, its thread becomes the one that its chat or topic goes on with.
    """

    run: Run
    shop: Workshop
    on_thread: Callable[[Live, ResumeToken], None]
    waits_for: RunId | None = None
    session_cwd: Path | None = None
    notes: list[str] = field(default_factory=list[str])
    stage: Stage = "queued"
    place: int = 0
    progress: Progress = field(default_factory=Progress)
    thread: ResumeToken | None = None
    cwd: Path | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    face: Face = field(init=False)
    began_at: float | None = None
    heard_at: float = 0.0
    asking: int = 0
    said: list[str] = field(default_factory=list[str])
    said_chars: int = 0
    threaded: trio.Event = field(default_factory=trio.Event)
    keeps_session: bool = True

    def __post_init__(self) -> None:
        self.thread = self.run.thread

    @property
    def id(self) -> RunId:
        """The run's number."""
        return self.run.id

    @property
    def elapsed_s(self) -> float | None:
        """How long it has been working; None before it began."""
        return None if self.began_at is None else trio.current_time() - self.began_at

    def turn(self, stage: Stage) -> None:
        """Let the card say what it does now."""
        self.stage = stage
        self.face.touch()

    def hear(self, event: Event) -> None:
        """Take in what the engine says: cheap, because engines can be fast."""
        self.heard_at = trio.current_time()
        self.progress.add(event)
        if isinstance(event, Started):
            self.thread = event.resume
            self.on_thread(self, event.resume)
            self.threaded.set()
        elif event.kind == "note" and self.said_chars < SAID_CHARS:
            text = event.detail or event.title
            self.said.append(text)
            self.said_chars += len(text)
        self.face.touch()

    def card(self) -> Card:
        """How the run reads now."""
        transport = self.shop.transport(self.run.scope)
        buttons = () if self.stage == "cancelling" else ((run_button("cancel", self.id),),)
        return progress_card(
            self.progress,
            engine=self.run.engine,
            state=self.stage,
            max_units=transport.max_units,
            elapsed_s=self.elapsed_s,
            place=self.place if self.stage == "queued" and self.place else None,
            notes=self.notes,
            footer=self.shop.footer(self.run.engine, self.run.context, self.thread),
            buttons=buttons,
        )
