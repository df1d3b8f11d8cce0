"""The shape of takopi.toml: every key, its type, its bounds and its default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from takopi.config.limits import Limits

# Telegram promises that an id fits into 52 bits.
UserId = Annotated[int, Meta(ge=1, le=2**52, description="the number of a person")]
ChatId = Annotated[int, Meta(ge=-(2**52), le=2**52, description="the number of a chat")]
Text = Annotated[str, Meta(min_length=1)]
SessionMode = Literal["reply", "chat"]
Transport = Literal["telegram", "web"]

API_URL = "https://api.telegram.org"


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that every engine's table has. An engine adds its own by subclassing."""

    command: str = ""
    """Path or name of the program; empty means the engine's own name on PATH."""
    model: str | None = None
    extra_args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class ProjectTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[projects.<alias>]` table."""

    path: Path
    worktrees_dir: Text = ".worktrees"
    """Where worktrees go; relative to `path`."""
    default_engine: str | None = None
    worktree_base: Text | None = None
    """What new branches start from; without it, what the repository says."""
    chat_id: ChatId | None = None
    """A group that belongs to this project."""


class Oneshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[oneshot]` table: short questions to a model, beside the engines' runs."""

    backend: Literal["auto", "api", "cli"] = "auto"
    model: Text | None = None
    api_key_file: Path | None = None
    base_url: Text | None = None
    timeout_s: Annotated[float, Meta(gt=0, le=600)] = 120


class ConfigTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file, except the engines' tables: which there are is not known here."""

    bot_token: Text | None = None
    bot_token_file: Path | None = None
    chat_id: ChatId | None = None
    allowed_user_ids: tuple[UserId, ...] = ()
    admin_user_ids: tuple[UserId, ...] = ()
    default_engine: str | None = None
    default_project: str | None = None
    session_mode: SessionMode = "reply"
    api_url: Text = API_URL
    transports: Annotated[tuple[Transport, ...], Meta(min_length=1)] = ("telegram",)
    projects: dict[str, ProjectTable] = {}
    oneshot: Oneshot = Oneshot()
    limits: Limits = Limits()
