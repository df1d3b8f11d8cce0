"""The check of `takopi doctor` on the engines: there, new enough, and logged in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import trio

from takopi.cli.doctor_finding import Finding, Patient, ask, ask_version, dotted
from takopi.core.errors import TakopiError
from takopi.engines.spec import EngineSpec


@dataclass(frozen=True, slots=True)
class _Login:
    """How a CLI is asked for its login, and since when: it ends with 0 if there is one."""

    args: tuple[str, ...]
    since: tuple[int, ...]


_LOGINS = {
    "claude": _Login(("auth", "status"), (2, 1, 50)),
    "codex": _Login(("login", "status"), (0, 100)),
}


async def check_engines(patient: Patient, *, within_s: float) -> list[Finding]:
    """One finding for each engine that is there or asked for, and one for all others.

    One that gives no answer within `within_s`, or fails, takes nothing away from the others.
    """
    specs = [
        entry
        for entry in patient.catalog.entries.values()
        # The demo brings its own program.
        if isinstance(entry, EngineSpec) and not entry.program
    ]
    wanted = _wanted(patient)
    found: dict[str, Finding] = {}
    async with trio.open_nursery() as nursery:

        async def examine(spec: EngineSpec[Any]) -> None:
            is_wanted = spec.id in wanted
            late = f"{spec.id} gave no answer within {within_s:g} seconds"
            look = f"look at what `{spec.id} --version` does"
            judged: Finding | None = _trouble(spec, late, look, is_wanted=is_wanted)
            with trio.move_on_after(within_s):
                try:
                    judged = await _examine(patient, spec, is_wanted=is_wanted)
                except TakopiError as error:
                    judged = _trouble(spec, error.what, error.way_out, is_wanted=is_wanted)
                except OSError as error:
                    what = error.strerror or str(error)
                    judged = _trouble(spec, what, is_wanted=is_wanted)
            if judged is not None:
                found[spec.id] = judged

        for spec in specs:
            nursery.start_soon(examine, spec)
    findings = [found[spec.id] for spec in specs if spec.id in found]
    findings += [
        Finding("engines", "error", f"the plugin {broken.name} cannot be used: {broken.reason}")
        for broken in patient.catalog.broken
    ]
    missing = [spec for spec in specs if spec.id not in found]
    if missing and len(missing) == len(specs) and not wanted:
        what = f"no engine is installed: {', '.join(spec.id for spec in specs)} would do"
        findings.append(Finding("engines", "error", what, missing[0].install))
    elif missing:
        names = ", ".join(spec.id for spec in missing)
        findings.append(Finding("engines", "ok", f"not installed, and not asked for: {names}"))
    return findings


def _wanted(patient: Patient) -> set[str]:
    """The engines that the config names: without them, messages fail."""
    if patient.config is None:
        return set()
    projects = patient.config.projects.values()
    named = {patient.config.default_engine, *(project.default_engine for project in projects)}
    set_up = (engine for engine, table in patient.config.engines.items() if table.command)
    return {*filter(None, named), *set_up}


def _trouble(spec: EngineSpec[Any], what: str, way_out: str = "", *, is_wanted: bool) -> Finding:
    """Only what the config names is needed."""
    return Finding(spec.id, "error" if is_wanted else "warning", what, way_out)


async def _examine(patient: Patient, spec: EngineSpec[Any], *, is_wanted: bool) -> Finding | None:
    config = patient.config
    settings = (config.engines.get(spec.id) if config else None) or spec.settings_type()
    program = settings.command or spec.id
    trouble = partial(_trouble, spec, is_wanted=is_wanted)
    if not patient.finds(program):
        if not is_wanted:
            return None
        named = "" if program == spec.id else f", which the config names as {program},"
        what = f"{spec.id}{named} is not installed"
        return Finding(spec.id, "error", what, spec.install)
    env = spec.environ(settings, patient.child_environ(settings.env))
    version = await ask_version(patient, [program, "--version"], env=env)
    if version is None:
        return trouble(f"{program} does not tell its version", spec.install)
    if version < spec.oldest:
        need = dotted(spec.oldest)
        what = f"{spec.id} {dotted(version)} is too old, takopi needs {need} or newer"
        return trouble(what, spec.install)
    login = _LOGINS.get(spec.id)
    if login is None or version < login.since:
        return Finding(spec.id, "ok", f"{spec.id} {dotted(version)}")
    code, _ = await ask(patient, [program, *login.args], env=env)
    if code != 0:
        what = f"{spec.id} {dotted(version)} is not logged in"
        return trouble(what, spec.login)
    return Finding(spec.id, "ok", f"{spec.id} {dotted(version)}, logged in")
