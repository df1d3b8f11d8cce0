"""How claude is called: its settings, its arguments, and what it must not inherit."""

from __future__ import annotations

from typing import Literal

from takopi.config.schema import EngineSettings
from takopi.core.ports import EngineJob
from takopi.engines.claude.ending import LOGIN
from takopi.engines.claude.translate import CLAUDE, ClaudeDialect
from takopi.engines.spec import EngineSpec

PermissionMode = Literal["ask", "accept-edits", "plan", "bypass"]

_MODES: dict[PermissionMode, str] = {
    "ask": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "bypass": "bypassPermissions",
}
_API_KEY = "ANTHROPIC_API_KEY"
# With it the CLI says when it is idle: a result alone does not tell, while subagents go on.
_STATE_EVENTS = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"


class ClaudeSettings(EngineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[claude]` table."""

    permission_mode: PermissionMode = "ask"
    allowed_tools: tuple[str, ...] = ()
    """Tools that need no approval, as claude writes them: "Read", "Bash(git status:*)"."""
    append_system_prompt: str | None = None
    use_api_billing: bool = False
    """Whether claude inherits ANTHROPIC_API_KEY; without it, it uses its own login."""


def build_argv(settings: ClaudeSettings, job: EngineJob) -> list[str]:
    """The arguments of one run. The prompt is not among them: it goes to stdin."""
    argv = ["-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
    argv += ["--permission-prompt-tool", "stdio"]
    if settings.allowed_tools:
        argv += ["--allowedTools", ",".join(settings.allowed_tools)]
    argv += ["--permission-mode", _MODES[settings.permission_mode]]
    if model := job.model or settings.model:
        argv += ["--model", model]
    if system := "\n\n".join(filter(None, (settings.append_system_prompt, job.system))):
        argv += ["--append-system-prompt", system]
    if job.resume:
        # In one word, so that no id can be taken for an option.
        argv += [f"--resume={job.resume.value}"]
    return [*argv, *settings.extra_args]


def build_environ(settings: ClaudeSettings, env: dict[str, str]) -> dict[str, str]:
    """`env` without a key that is not to pay; what the settings name stays."""
    dropped: set[str] = set() if settings.use_api_billing else {_API_KEY}
    kept = {name: env[name] for name in env if name in settings.env or name not in dropped}
    return kept if _STATE_EVENTS in settings.env else kept | {_STATE_EVENTS: "1"}


SPEC = EngineSpec(
    id=CLAUDE,
    settings_type=ClaudeSettings,
    argv=build_argv,
    dialect=ClaudeDialect,
    resume_words=("claude", "--resume"),
    install="npm install -g @anthropic-ai/claude-code",
    login=LOGIN,
    oldest=(2, 0, 0),
    asks=True,
    takes_system=True,
    environ=build_environ,
)
