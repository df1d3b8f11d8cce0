"""Every command of the chat, and what it does."""

from __future__ import annotations

from takopi.app.commands import (
    agent,
    cancel,
    ctx,
    help_,
    model,
    new,
    runs,
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
    "cancel": cancel.run,
    "new": new.run,
    "ctx": ctx.run,
    "topic": topic.run,
    "agent": agent.run,
    "model": model.run,
    "trigger": trigger.run,
    "worktrees": worktrees.run,
}
