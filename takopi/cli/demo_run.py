"""The demo as a process: whatever ends it, its processes are gone, and so is its folder."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import webbrowser
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from takopi.app.commands.table import NAMES
from takopi.app.daemon import Launch, run_daemon
from takopi.cli.demo_page import open_page
from takopi.cli.demo_project import ALIAS, TOOLS, make_project
from takopi.cli.demo_script import play
from takopi.cli.errors import hint
from takopi.config.edit import to_toml
from takopi.config.load import load
from takopi.config.loaded import Names
from takopi.config.paths import PRIVATE_FILE, Home, make_home
from takopi.engines.catalog import load_catalog
from takopi.kit import log
from takopi.web.token import keep_token

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The daemon heeds the first two by itself, while it runs; the third is a closed terminal."""

CONFIG = """\
transports = ["web"]
default_engine = "demo"
default_project = "{alias}"
web.port = {port}
limits.drain_s = 0
drafts.backend = "demo"
files.enabled = true
projects.{alias}.path = {path}
projects.{tools}.path = {path}
mcp.servers.sample.command = {python}
mcp.servers.sample.args = ["-m", "takopi.mcp.sample"]
mcp.servers.sample.projects = ["{tools}"]
"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was asked for on the command line. Port 0 is any that is free."""

    port: int
    level: str
    opens_page: bool


async def serve(wishes: Wishes, *, greet: Callable[[str], None]) -> None:
    """Run until somebody ends it; `greet` is told the address once the page is there."""
    async with _throw_away_folder() as folder, _run(folder, wishes) as url:
        greet(url)
        if wishes.opens_page:
            await trio.to_thread.run_sync(_open_browser, url, abandon_on_cancel=True)
        await trio.sleep_forever()


async def play_once(wishes: Wishes, *, tell: Callable[[str], None]) -> None:
    """Have the scripted conversation with the daemon, over HTTP, and tell it line by line."""
    is_played = False
    async with _throw_away_folder() as folder, _run(folder, wishes) as url:
        async with open_page(url, tell=tell) as page:
            await play(page, announce=tell)
        is_played = True
    if not is_played:
        raise KeyboardInterrupt


def _open_browser(url: str) -> None:
    """Show the page to the person, if their machine knows how to."""
    if not webbrowser.open(url):
        hint("there is no browser to be opened here; open the address yourself")


@asynccontextmanager
async def _throw_away_folder() -> AsyncGenerator[Path, None]:
    """A private folder for as long as the block lasts; a signal ends the block."""
    with trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_at, signals, nursery.cancel_scope)
            folder = _make_folder()
            try:
                yield folder
            finally:
                shutil.rmtree(folder, onerror=_tell_what_is_left)
            nursery.cancel_scope.cancel()


def _make_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="takopi-demo-")).resolve()


async def _cancel_at(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()


def _tell_what_is_left(_function: object, path: str, fault: tuple[object, object, object]) -> None:
    hint(f"{path} could not be removed: {fault[1]}")


@asynccontextmanager
async def _run(folder: Path, wishes: Wishes) -> AsyncGenerator[str, None]:
    """The daemon, for as long as the block lasts, and the address of its page.

    It hears the signals itself. Once it has ended, the block is cancelled.
    """
    urls, pages = trio.open_memory_channel[str](1)
    launch = await _prepare(folder, wishes, announce=urls.send_nowait)
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await run_daemon(launch)
            nursery.cancel_scope.cancel()

        nursery.start_soon(run)
        try:
            yield await pages.receive()
        finally:
            nursery.cancel_scope.cancel()


async def _prepare(folder: Path, wishes: Wishes, *, announce: Callable[[str], None]) -> Launch:
    """Furnish the folder: a home with its config, and the sample project."""
    home, project = Home(folder / "home"), folder / ALIAS
    make_home(home)
    home.config_file.touch(PRIVATE_FILE)
    text = CONFIG.format(
        alias=ALIAS,
        tools=TOOLS,
        port=wishes.port,
        path=to_toml(str(project)),
        python=to_toml(sys.executable),
    )
    home.config_file.write_text(text, encoding="utf-8")
    await make_project(project)
    # The person's own takopi, its home and its bot are none of the demo's business.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TAKOPI_")}
    environ["TAKOPI_HOME"] = str(home.folder)
    catalog = load_catalog(home.folder)
    names = Names(engines=catalog.settings_types(), commands=NAMES)
    read = partial(load, home.config_file, names, environ=environ, to_run=True)
    token = keep_token(home.folder)
    log.configure(level=wishes.level, secrets=(token,))
    return Launch(
        home=home,
        config=read(),
        catalog=catalog,
        load=read,
        environ=environ,
        cwd=project,
        web_token=token,
        announce=announce,
    )
