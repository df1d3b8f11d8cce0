"""`takopi service`: takopi as a systemd service of the person, not of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from takopi.cli.errors import hint
from takopi.cli.names import known_names
from takopi.cli.service_unit import home_line, home_of, unit_file, unit_text
from takopi.config.limits import Limits
from takopi.config.load import load, read_bytes
from takopi.config.paths import Home, find_home
from takopi.config.token import VARIABLE
from takopi.core.errors import Refused, Unfit
from takopi.kit.atomic import replace_file

UNIT = "takopi.service"
CALL_S = 60.0
STOP_S = 760.0
"""A stop waits for the runs to end, for as long as a config may ask at most."""

app = typer.Typer(help="Let systemd run takopi.", pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def service(context: typer.Context) -> None:
    """Let systemd run takopi."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("install")
def install(
    *,
    enable: Annotated[
        bool, typer.Option(help="Start it now, and whenever you log in or the machine starts.")
    ] = True,
) -> None:
    """Write the unit, and let systemd start takopi."""
    install_service(find_home(os.environ), path=_path(), enable=enable)


@app.command("uninstall")
def uninstall() -> None:
    """Stop the service and take its unit away. Config and state stay."""
    file, home = _installed(), find_home(os.environ)
    named = home_of(_read(file))
    if named is not None and named != home_line(home):
        raise _other_home(file, named)
    _require_systemd()
    _systemctl("stop", UNIT, wait_s=STOP_S)
    _systemctl("disable", UNIT)
    # One that failed would stay in every list, although nothing is left of it. Most did not.
    _output(["systemctl", "--user", "reset-failed", UNIT])
    file.unlink()
    _systemctl("daemon-reload")
    typer.echo(f"{file} is gone; what takopi keeps is in {home.folder}")


@app.command("status")
def status() -> None:
    """Show what systemd knows of the service; the exit code is 1 when it does not run."""
    _installed()
    _require_systemd()
    code = _show("systemctl", "--user", "--no-pager", "status", UNIT)
    raise typer.Exit(int(code != 0))


@app.command("logs")
def logs(
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on showing new lines.")
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=1, help="How many to begin with.")
    ] = 50,
) -> None:
    """Show what the service has logged."""
    _installed()
    more = ["--follow"] if follow else ["--no-pager"]
    # With --user it would read only files that root and a journal in memory do not have.
    code = _show("journalctl", "--user-unit", UNIT, "--lines", str(lines), *more)
    raise typer.Exit(int(code != 0))


@app.command("print")
def print_unit() -> None:
    """Print the unit that `install` would write; nothing is changed."""
    home = find_home(os.environ)
    text = unit_text(home, path=_path(), limits=_limits(home))
    typer.echo(text, nl=False)


def install_service(home: Home, *, path: str, enable: bool) -> None:
    """Write the unit with this PATH, in which the engines are found, and start it if wanted.

    Refused while the config is not one that takopi could run with: the service would only fail.
    """
    # The service gets the token from the config, whatever this shell has.
    environ = {name: value for name, value in os.environ.items() if name != VARIABLE}
    config = load(home.config_file, known_names(), environ=environ, to_run=True)
    text = unit_text(home, path=path, limits=config.limits)
    file = unit_file(os.environ)
    before = _read(file)
    if before and home_of(before) != home_line(home):
        raise _other_home(file, home_of(before))
    _require_systemd()
    was_running = state() == "active"
    if before != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text.encode())
    _systemctl("daemon-reload")
    typer.echo(f"the unit is {file}")
    if enable:
        # Apart from each other: what enabling says is no reason why a start failed.
        _systemctl("enable", UNIT)
        _systemctl("start", UNIT)
        typer.echo("takopi runs; `takopi service status` and `takopi service logs` look at it")
    else:
        typer.echo(f"start it with: systemctl --user enable --now {UNIT}")
    if was_running and before != text:
        hint(f"it still runs as it was started: systemctl --user restart {UNIT}")
    if lingers() is False:
        hint("systemd ends it when you log out; to keep it: loginctl enable-linger")


def lingers() -> bool | None:
    """Whether the person's services go on when they are logged out; None if nobody knows."""
    said = _output(["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"])
    return {"yes": True, "no": False}.get(said)


def state() -> str:
    """What systemd says of the service, in one word: `active`, `failed`; none if nobody answers."""
    return _output(["systemctl", "--user", "is-active", UNIT])


def _path() -> str:
    """The PATH of this shell, and behind it what a login shell adds: engines may be in either."""
    import trio

    from takopi.cli.setup_discovery import find_paths

    # No child is handed the variable that holds the token, so there is nothing to hide here.
    return trio.run(partial(find_paths, os.environ, secret="")).joined


def _installed() -> Path:
    file = unit_file(os.environ)
    if not file.exists():
        raise Refused("takopi is not installed as a service", way_out="takopi service install")
    return file


def _other_home(file: Path, named: str | None) -> Refused:
    return Refused(
        f"{file} runs another takopi: {named or 'it names no TAKOPI_HOME'}",
        way_out="with the TAKOPI_HOME of that one: takopi service uninstall",
    )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _limits(home: Home) -> Limits:
    if read_bytes(home.config_file) is None:
        return Limits()
    return load(home.config_file, known_names(), environ=os.environ).limits


def _require_systemd() -> None:
    """Refuse, in words, where no systemd of this person can be asked."""
    if shutil.which("systemctl") is None:
        raise Unfit(
            "there is no systemd on this machine",
            way_out="let your own supervisor run `takopi`, or keep it in tmux:"
            " `tmux new-session -d takopi`",
        )
    done = _call(["systemctl", "--user", "show", "--property=Version"])
    if done.returncode:
        raise Unfit(
            f"systemd does not serve you here: {_words(done)}",
            way_out="log in as yourself (not with su or sudo), or keep takopi in tmux:"
            " `tmux new-session -d takopi`",
        )


def _systemctl(*args: str, wait_s: float = CALL_S) -> None:
    done = _call(["systemctl", "--user", *args], wait_s=wait_s)
    if done.returncode:
        raise Unfit(f"systemctl {args[0]} failed: {_words(done)}", way_out="takopi service logs")


def _output(argv: list[str]) -> str:
    return "" if shutil.which(argv[0]) is None else _call(argv).stdout.strip()


def _call(argv: list[str], *, wait_s: float = CALL_S) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv,
            env=_environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=wait_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unfit(
            f"{argv[0]} did not answer within {wait_s:g} seconds", way_out="run it again"
        ) from error


def _show(*argv: str) -> int:
    """Let a program speak to the person itself, for as long as it wants."""
    try:
        return subprocess.run(argv, env=_environ(), check=False).returncode
    except FileNotFoundError:
        raise Unfit(
            f"there is no {argv[0]} on this machine", way_out="it comes with systemd"
        ) from None


def _environ() -> dict[str, str]:
    """What systemd's programs see: not the token, and the way to systemd even without a login."""
    token = os.environ.get(VARIABLE, "").strip()
    environ = {
        name: value
        for name, value in os.environ.items()
        if name != VARIABLE and not (token and token in value)
    }
    own = Path(f"/run/user/{os.getuid()}")
    if not environ.get("XDG_RUNTIME_DIR") and own.is_dir():
        environ["XDG_RUNTIME_DIR"] = str(own)
    if environ.get("NO_COLOR"):
        environ["SYSTEMD_COLORS"] = "0"
    return environ


def _words(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[0] if lines else f"exit code {done.returncode}"
