"""The config as the rest of takopi sees it: whole, checked, with every path made absolute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from takopi.config.limits import Limits
from takopi.config.schema import (
    Drafts,
    EngineSettings,
    Files,
    Interview,
    Mcp,
    Oneshot,
    SessionMode,
    Sessions,
    Transport,
    Voice,
    Web,
)


@dataclass(frozen=True, slots=True)
class Names:
    """What a config may name: the engines with their settings, and the commands of the chat."""

    engines: Mapping[str, type[EngineSettings]]
    commands: frozenset[str]


@dataclass(frozen=True, slots=True)
class Project:
    """A repository, or any folder, that goes by an alias."""

    alias: str
    path: Path
    worktrees_dir: Path
    default_engine: str | None = None
    worktree_base: str | None = None
    chat_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that is configured. Secrets stay out of its repr.

    `bot_token` is empty and `chat_id` None only where the telegram transport is off or the config
    was loaded for something else than running. `default_project` is spelled as the project is.
    """

    bot_token: str = field(repr=False)
    bot_token_file: Path | None = None
    chat_id: int | None
    allowed_user_ids: frozenset[int]
    admin_user_ids: frozenset[int]
    default_engine: str | None
    default_project: str | None
    session_mode: SessionMode
    api_url: str
    transports: tuple[Transport, ...]
    projects: Mapping[str, Project]
    oneshot: Oneshot
    interview: Interview = field(default_factory=Interview)
    mcp: Mcp = field(default_factory=Mcp, repr=False)
    limits: Limits
    drafts: Drafts = field(default_factory=Drafts)
    voice: Voice = field(default_factory=Voice)
    files: Files = field(default_factory=Files)
    sessions: Sessions = field(default_factory=Sessions)
    engines: Mapping[str, EngineSettings] = field(repr=False)
    web: Web = field(default_factory=Web)

    def project(self, alias: str) -> Project | None:
        """The project that goes by this alias, in whatever case it was written."""
        wanted = alias.lower()
        return next((p for p in self.projects.values() if p.alias.lower() == wanted), None)

    def project_of_chat(self, chat_id: int) -> Project | None:
        """The project that a group belongs to."""
        return next((p for p in self.projects.values() if p.chat_id == chat_id), None)
