"""How opencode is called: the prompt on stdin, and its own configuration for the rest.

It says nothing while it tries a failing API again, which can take more than a minute.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from takopi.config.schema import EngineSettings
from takopi.core.ids import ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.opencode.translate import ENGINE, LOGIN, OpencodeDialect
from takopi.engines.spec import EngineSpec, Whereabouts

# Its lines name the cause of some failures only by a number, its log in words.
_LOG = {"OPENCODE_PRINT_LOGS": "1", "OPENCODE_LOG_LEVEL": "ERROR"}
_DIRECTORY = re.compile(rb'"directory":\s*("(?:[^"\\]|\\.)+")')


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
    return {name: value for name, value in (_LOG | env).items() if name != "PWD"}


def export_argv(thread: ResumeToken) -> list[str]:
    """The call that prints a session, its folder near the beginning."""
    return ["export", f"--sessionID={thread.value}"]


def folder_of(exported: bytes) -> Path | None:
    """The folder of an exported session, of which the beginning is enough."""
    found = _DIRECTORY.search(exported)
    try:
        return Path(msgspec.json.decode(found[1], type=str)) if found else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


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
    # Resumed in another folder, opencode works in the session's own and then waits for ever.
    whereabouts=Whereabouts(export_argv, folder_of),
)
