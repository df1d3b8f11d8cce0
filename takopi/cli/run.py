"""`takopi` and `takopi <engine>`: the daemon, in the foreground."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from takopi.config.load import load
from takopi.config.loaded import Names
from takopi.config.paths import Home, find_home

if TYPE_CHECKING:
    from takopi.app.daemon import Launch


def run(*, engine: str | None, verbose: bool, debug: bool) -> None:
    """Run the daemon until it is stopped."""
    import trio

    from takopi.app.daemon import run_daemon
    from takopi.kit.lean import load_without

    # HTTP/2, which is only there because the page's server brings it, would be a MiB.
    load_without("httpcore2", refused=["h2"])
    trio.run(run_daemon, prepare(engine=engine, verbose=verbose, debug=debug))


def prepare(*, engine: str | None, verbose: bool, debug: bool) -> Launch:
    """Read what the daemon needs from this process's surroundings, and let it log."""
    from takopi.app.commands.table import NAMES
    from takopi.app.daemon import Launch
    from takopi.engines.catalog import load_catalog
    from takopi.kit import log
    from takopi.kit.notify import take_notifier
    from takopi.web.token import keep_token

    notifier = take_notifier(os.environ)
    home = find_home(os.environ)
    catalog = load_catalog(home.folder)
    names = Names(engines=catalog.settings_types(), commands=NAMES)
    read = partial(load, home.config_file, names, environ=os.environ, to_run=True)
    config = read()
    level = "debug" if debug else "info" if verbose else "warning"
    web_token = keep_token(home.folder) if "web" in config.transports else ""
    log.configure(level=level, secrets=(config.bot_token, web_token))
    return Launch(
        home=home,
        config=config,
        catalog=catalog,
        load=read,
        environ=dict(os.environ),
        cwd=Path.cwd(),
        engine=engine,
        web_token=web_token,
        announce=partial(_announce_to_journal, home) if notifier.is_heard else _announce,
        # systemd has a status line for this.
        tell=_ignore if notifier.is_heard else _say,
        notifier=notifier,
    )


def _announce(address: str) -> None:
    """The start line on a terminal: whoever reads it may open the page."""
    _say(f"takopi is at {address}")


def _announce_to_journal(home: Home, address: str) -> None:
    """The start line of a service: others may read it, and the token never changes."""
    from takopi.web.token import FILE

    hidden = address.partition("=")[0]
    _say(f"takopi is at {hidden}=TOKEN, and the TOKEN is in {home.folder / FILE}")


def _ignore(_line: str) -> None:
    """Nobody is there to read it."""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
