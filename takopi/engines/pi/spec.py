"""How pi is called: the prompt on stdin, the system text by its flag where it fits."""

from __future__ import annotations

from takopi.config.schema import EngineSettings
from takopi.core.ports import EngineJob
from takopi.engines.pi.translate import ENGINE, PiDialect, system_argument
from takopi.engines.spec import EngineSpec


class PiSettings(EngineSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[pi]` table."""


def build_argv(settings: PiSettings, job: EngineJob) -> list[str]:
    """`--print --mode json`, continuing a session, by id or file, where there is one."""
    # pi takes the word after --session as it is, even one that looks like a flag.
    argv = ["--print", "--mode", "json"]
    if job.resume is not None:
        argv += ["--session", job.resume.value]
    if model := job.model or settings.model:
        argv += ["--model", model]
    if system := system_argument(job):
        argv += ["--append-system-prompt", system]
    return [*argv, *settings.extra_args]


def _dialect(settings: PiSettings, job: EngineJob) -> PiDialect:
    return PiDialect(job, model=job.model or settings.model)


SPEC = EngineSpec(
    id=ENGINE,
    settings_type=PiSettings,
    argv=build_argv,
    dialect=_dialect,
    resume_words=("pi", "--session"),
    install="npm install -g @earendil-works/pi-coding-agent",
    login="pi, then /login",
    oldest=(0, 73, 1),
    takes_system=True,
)
