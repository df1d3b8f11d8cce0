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

    backend: Literal["auto", "api", "cli", "demo"] = "auto"
    model: Text | None = None
    api_key_file: Path | None = None
    base_url: Text | None = None
    timeout_s: Annotated[float, Meta(gt=0, le=600)] = 120


class Drafts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[drafts]` table: prompts that are put together from several messages."""

    backend: Literal["cli", "api", "demo"] = "cli"
    """Who puts them together: `claude -p`, the Anthropic API, or takopi itself, as a list."""
    timeout_s: Annotated[float, Meta(gt=0, le=600)] = 120
    tmux_socket: Text | None = None
    """The name of a tmux server of one's own, as in `tmux -L`."""


class Voice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[voice]` table: how voice notes become text."""

    base_url: Text | None = None
    """A server that speaks the API of OpenAI, up to and with its `/v1`."""
    api_key_file: Path | None = None
    model: Text = "whisper-1"
    command: tuple[str, ...] = ()
    """A program of this machine instead; `{file}` in it is the recording."""
    timeout_s: Annotated[float, Meta(gt=0, le=600)] = 60
    max_s: Annotated[int, Meta(ge=1, le=3600)] = 600
    """The longest voice note that is taken, in seconds."""


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An `[mcp.servers.<name>]` table: a program that speaks over stdio, or an address."""

    command: Text | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: Text | None = None
    projects: tuple[Text, ...] = ()
    """The projects whose runs are offered its tools; empty means every run."""
    allow: tuple[Text, ...] = ()
    """Patterns of `server__tool` names that run without asking."""


class Mcp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[mcp]` table: tools of the person's own that engines may call."""

    servers: dict[str, McpServer] = {}
    max_iterations: Annotated[int, Meta(ge=1, le=100)] = 10
    """Rounds of tool calls in one run before it is stopped."""
    max_output_bytes: Annotated[int, Meta(ge=1024, le=4 * 1024 * 1024)] = 64 * 1024
    """How much of one result an engine gets to see."""
    start_s: Annotated[float, Meta(gt=0, le=600)] = 30
    """How long a server may take until it has said which tools it has."""
    call_s: Annotated[float, Meta(gt=0, le=3600)] = 120
    """How long one call may take."""


class Interview(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[interview]` table: the questions of /plan."""

    auto: bool = True
    """Whether runs are told how to ask back, and their questions become an interview."""
    max_rounds: Annotated[int, Meta(ge=1, le=5)] = 3
    dir: Text = ".claude/todos"
    """Where briefs go; relative to the folder that is worked in."""
    on_confirm: Literal["run", "session"] = "run"
    """What a confirmed plan becomes: one run, or a session whose first turn is planned with it."""
    ttl_s: Annotated[float, Meta(gt=0, le=2592000)] = 86400


class Sessions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[sessions]` table: work in turns, each with a plan, an approval and a report."""

    max_file_bytes: Annotated[int, Meta(ge=1024, le=16 * 1024 * 1024)] = 256 * 1024
    """How much of one file an agent gets to see."""
    strict_context: Literal["turn", "any", "off"] = "turn"
    """Where a file must be listed before a plan may edit it."""
    max_replans: Annotated[int, Meta(ge=0, le=10)] = 3
    research_command: tuple[str, ...] = ()
    """A program that answers a question, which comes as its last argument."""


class Files(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[files]` table: files that people send, and fetch with /file get."""

    enabled: bool = False
    uploads_dir: Text = ".uploads"
    """Where files come into; relative to the folder that is worked in, and never outside of it."""
    deny: tuple[Text, ...] = (
        ".git",
        ".env",
        ".env.*",
        ".envrc",
        ".netrc",
        ".ssh",
        ".gnupg",
        ".aws",
        "*.pem",
        "*.key",
    )
    """Patterns of paths that are neither fetched nor written, after symlinks."""


class Web(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[web]` table: the page on this machine."""

    port: Annotated[int, Meta(ge=0, le=65535)] = 8737
    """0 takes any that is free."""


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
    web: Web = Web()
    oneshot: Oneshot = Oneshot()
    interview: Interview = Interview()
    mcp: Mcp = Mcp()
    drafts: Drafts = Drafts()
    voice: Voice = Voice()
    files: Files = Files()
    sessions: Sessions = Sessions()
    limits: Limits = Limits()
