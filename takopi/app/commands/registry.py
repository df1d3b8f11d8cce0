"""Every command of the chat, and what it does."""

from __future__ import annotations

from takopi.app.commands import (
    agent,
    attach,
    cancel,
    ctx,
    detach,
    draft,
    file_,
    help_,
    model,
    new,
    plan,
    preview,
    runs,
    screen,
    session,
    status,
    topic,
    trigger,
    worktrees,
)
from takopi.app.desk import Command

COMMANDS: dict[str, Command] = {
    "start": help_.run,
    "help": help_.run,
    "status": status.run,
    "runs": runs.run,
    "plan": plan.run,
    "session": session.run,
    "preview": preview.run,
    "cancel": cancel.run,
    "new": new.run,
    "ctx": ctx.run,
    "topic": topic.run,
    "agent": agent.run,
    "model": model.run,
    "trigger": trigger.run,
    "worktrees": worktrees.run,
    "draft": draft.run,
    "file": file_.run,
    "attach": attach.run,
    "detach": detach.run,
    "screen": screen.run,
}
