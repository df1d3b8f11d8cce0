"""How opencode is called: the prompt on stdin, and its own configuration for the rest."""

from __future__ import annotations

from takopi.config.schema import EngineSettings
from takopi.core.ports import EngineJob
from takopi.engines.opencode.translate import ENGINE, LOGIN, OpencodeDialect
from takopi.engines.spec import EngineSpec


class OpencodeSettings(EngineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[opencode]` table."""


def build_argv(settings: OpencodeSettings, job: EngineJob) -> list[str]:
    """`run --format json`, continuing a session where there is one."""
    argv = ["run", "--format", "json"]
    if job.resume is not None:
        # In one word, so that no session's name can be taken for a flag.
        argv.append(f"--session={job.resume.value}")
    if model := job.model or settings.model:
        argv.append(f"--model={model}")
    return [*argv, *settings.extra_args]


def build_environ(_settings: OpencodeSettings, env: dict[str, str]) -> dict[str, str]:
    """Without PWD: opencode believes it rather than the folder that it was started in."""
    return {name: value for name, value in env.items() if name != "PWD"}


def _dialect(settings: OpencodeSettings, job: EngineJob) -> OpencodeDialect:
    return OpencodeDialect(job, model=job.model or settings.model)


SPEC = EngineSpec(
    id=ENGINE,
    settings_type=OpencodeSettings,
    argv=build_argv,
    dialect=_dialect,
    resume_words=("opencode", "--session"),
    install="npm install -g opencode-ai",
    login=LOGIN,
    oldest=(1, 1, 0),
    environ=build_environ,
)
