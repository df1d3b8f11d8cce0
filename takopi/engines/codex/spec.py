"""How codex is called: every flag before `resume`, which takes few of them, and no text in argv."""

from __future__ import annotations

from typing import Literal

from takopi.config.schema import EngineSettings
from takopi.core.ports import EngineJob
from takopi.engines.codex.translate import ENGINE, LOGIN, CodexDialect
from takopi.engines.spec import EngineSpec


class CodexSettings(EngineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[codex]` table."""

    profile: str | None = None
    """A profile of codex's own configuration."""
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"] = "workspace-write"
    """What the commands of the model may touch."""


def build_argv(settings: CodexSettings, job: EngineJob) -> list[str]:
    """`exec … -` for a new thread, `exec … resume -- <id> -` for a known one."""
    argv = ["exec", "--json", "--skip-git-repo-check", "--sandbox", settings.sandbox]
    if settings.profile:
        argv += ["--profile", settings.profile]
    if model := job.model or settings.model:
        argv += ["--model", model]
    argv += settings.extra_args
    if job.resume is not None:
        # What follows `--` cannot be taken for a flag, whatever a thread is called.
        argv += ["resume", "--", job.resume.value]
    return [*argv, "-"]


def _dialect(settings: CodexSettings, job: EngineJob) -> CodexDialect:
    return CodexDialect(job, model=job.model or settings.model)


SPEC = EngineSpec(
    id=ENGINE,
    settings_type=CodexSettings,
    argv=build_argv,
    dialect=_dialect,
    resume_words=("codex", "resume"),
    install="npm install -g @openai/codex",
    login=LOGIN,
    oldest=(0, 100, 0),
)
