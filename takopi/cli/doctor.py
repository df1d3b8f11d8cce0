"""`takopi doctor`: looks at everything that takopi depends on, at once, and says what mends it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from takopi.cli.doctor_finding import Finding, Level, Patient
from takopi.cli.errors import GREEN, RED, YELLOW, coloured, printable
from takopi.config.load import find_problems, mode_problems, parse, read_bytes
from takopi.config.paths import Home, find_home
from takopi.core.errors import ConfigInvalid, TakopiError

if TYPE_CHECKING:
    from takopi.config.loaded import Config, Names

CHECK_S = 30.0
"""How long one check may take: a CLI that starts for the first time takes its time."""

ENGINE_S = 20.0
"""How long one engine may take of that, so that the others are told of whatever it does."""

_ORDER: tuple[Level, ...] = ("ok", "warning", "error")
_COLOURS: Mapping[Level, int] = {"ok": GREEN, "warning": YELLOW, "error": RED}

Check = Callable[[Patient], Awaitable[list[Finding]]]


def doctor(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False
) -> None:
    """Look for what would keep takopi from working. Exit code 1: warnings, 2: errors."""
    import trio

    from takopi.kit.log import Redactor

    if sys.stderr.isatty():
        typer.echo("looking around, for about 12 seconds …", err=True)
    findings, secrets = trio.run(_examine, find_home(os.environ))
    # Whatever a program or a server has said, the token is not shown.
    hidden = Redactor(secrets)
    report = _as_json(findings) if as_json else _as_lines(findings)
    typer.echo(hidden.clean(report.encode()).decode())
    raise typer.Exit(_ORDER.index(_worst(findings)))


async def _examine(home: Home) -> tuple[list[Finding], tuple[str, ...]]:
    from takopi.app.commands.table import NAMES
    from takopi.cli import doctor_engines, doctor_machine, doctor_telegram
    from takopi.config.loaded import Names
    from takopi.engines.catalog import load_catalog
    from takopi.kit.proc import open_keeper

    catalog = load_catalog(home.folder)
    names = Names(engines=catalog.settings_types(), commands=NAMES)
    checks: tuple[tuple[str, Check], ...] = (
        ("telegram", doctor_telegram.check_telegram),
        ("receiver", doctor_telegram.check_rival),
        ("engines", partial(doctor_engines.check_engines, within_s=ENGINE_S)),
        ("git", doctor_machine.check_git),
        ("projects", doctor_machine.check_projects),
        ("disk", doctor_machine.check_disk),
        ("state", doctor_machine.check_state),
        ("service", doctor_machine.check_service),
        ("tmux", doctor_machine.check_tmux),
        ("voice", doctor_machine.check_voice),
    )
    config, findings = _look_at_config(home, names)
    async with open_keeper(on_lost=lambda: None) as keeper:
        patient = Patient(home, os.environ, config, catalog, keeper)
        findings += await run_checks(checks, patient, within_s=CHECK_S)
        return findings, patient.secrets


async def run_checks(
    checks: Sequence[tuple[str, Check]], patient: Patient, *, within_s: float
) -> list[Finding]:
    """What all checks come to, made at the same time, in their order."""
    import trio

    found: dict[str, list[Finding]] = {}

    async def run(name: str, check: Check) -> None:
        late = f"the check did not end within {within_s:g} seconds"
        found[name] = [Finding(name, "error", late, "look for what hangs, and run it again")]
        with trio.move_on_after(within_s):
            try:
                found[name] = await check(patient)
            except TakopiError as error:
                found[name] = [Finding(name, "error", error.what, error.way_out)]
            except OSError as error:
                found[name] = [Finding(name, "error", error.strerror or str(error))]

    async with trio.open_nursery() as nursery:
        for name, check in checks:
            nursery.start_soon(run, name, check)
    return [finding for name, _ in checks for finding in found[name]]


def _look_at_config(home: Home, names: Names) -> tuple[Config | None, list[Finding]]:
    """The config, if it can be read, and everything that is wrong with it."""
    path = home.config_file
    try:
        data = read_bytes(path)
    except ConfigInvalid as error:
        return None, [Finding("config", "error", p.what, p.way_out) for p in error.problems]
    if data is None:
        return None, [Finding("config", "error", f"there is no {path}", "takopi init")]
    problems = (
        *mode_problems(path),
        *find_problems(data, names, environ=os.environ, to_run=True),
    )
    findings = [
        Finding("config", "error", f"{p.key}: {p.what}" if p.key else p.what, p.way_out)
        for p in problems
    ]
    config = None
    with contextlib.suppress(ConfigInvalid):
        config = parse(data, names, environ=os.environ)
    return config, findings or [Finding("config", "ok", str(path))]


def _worst(findings: Sequence[Finding]) -> Level:
    levels: set[Level] = {finding.level for finding in findings}
    return max(levels, key=_ORDER.index) if levels else "ok"


def _as_json(findings: Sequence[Finding]) -> str:
    rows = [
        {"check": f.check, "level": f.level, "what": f.what, "way_out": f.way_out or None}
        for f in findings
    ]
    whole = {"level": _worst(findings), "findings": rows}
    return json.dumps(whole, indent=2, ensure_ascii=False)


def _as_lines(findings: Sequence[Finding]) -> str:
    lines: list[str] = []
    for finding in findings:
        level = coloured(f"{finding.level:<7}", _COLOURS[finding.level], stream=sys.stdout)
        lines.append(f"{level}  {finding.check:<8}  {printable(finding.what)}")
        if finding.level != "ok" and finding.way_out:
            lines.append(f"{'':7}  {'':8}  {printable(finding.way_out)}")
    return "\n".join(lines)
