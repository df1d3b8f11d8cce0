"""The nursery tree: who starts whom, and who stops when.

    services     stops last: the store, what goes out, the keeper of the asyncio plugins
    └ runs       stops second, with `drain_s` to end by themselves
      └ front    stops first: receiving, the router, the config

The first SIGTERM or SIGINT drains: nothing new comes in, what runs may end. The second cancels.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog
import trio

from takopi.app.commands.registry import COMMANDS
from takopi.app.desk import Desk
from takopi.app.drafting import draft_ports, open_parts
from takopi.app.filing import Intake
from takopi.app.interviewing import InterviewHost, open_questions
from takopi.app.lines import Lines, open_lines
from takopi.app.lock import hold
from takopi.app.notices import Troubles
from takopi.app.presses import register
from takopi.app.pulse import Pulse
from takopi.app.reload import Reload
from takopi.app.router import Router
from takopi.app.state import Settings
from takopi.app.turns import Turns
from takopi.app.welcome import tell_of_start
from takopi.config.loaded import Config
from takopi.config.paths import Home
from takopi.core.errors import BadToken, StoreUnfit, TakopiError
from takopi.drafts.service import Drafts
from takopi.engines.catalog import Catalog
from takopi.engines.registry import Engines, open_engines
from takopi.files.spool import Spool
from takopi.interview.service import Interviews
from takopi.interview.store import Files
from takopi.kit.clock import now_ms
from takopi.kit.notify import Notifier
from takopi.kit.proc import open_keeper
from takopi.mcp.servers import McpServers, Surroundings
from takopi.projects.worktrees import Worktrees
from takopi.runs.asks import Asks
from takopi.runs.recover import Recovered, recover, resubmit
from takopi.runs.request import Requests
from takopi.runs.schedule import Schedule
from takopi.runs.workshop import Workshop
from takopi.store import outbox, upkeep
from takopi.store.database import Database, open_database
from takopi.telegram.times import Times
from takopi.telegram.transport import TelegramTransport

FLUSH_S = 3.0
"""How long what is on its way out may take at the end."""

PRUNE_EVERY_S = 24 * 60 * 60

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.app")


@dataclass(frozen=True, slots=True)
class Launch:
    """How the daemon was started. `on_commit` is the store's own; `times` are Telegram's.

    `web_token` opens the page, where there is one; `announce` is told its address once it listens.
    `tell` is told what a person at the terminal wants to know.
    """

    home: Home
    config: Config
    catalog: Catalog
    load: Callable[[], Config]
    environ: Mapping[str, str]
    cwd: Path
    engine: str | None = None
    on_commit: Callable[[], None] | None = None
    times: Times | None = None
    web_token: str = field(default="", repr=False)
    announce: Callable[[str], None] = lambda _address: None
    tell: Callable[[str], None] = lambda _line: None
    notifier: Notifier = field(default_factory=Notifier)


class Stop:
    """Whether to go on: `begun` once somebody wants an end, `now` once they want it at once."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.now = trio.Event()
        self.reason: Exception | None = None

    def begin(self, reason: Exception | None = None) -> None:
        """Drain; the second time, do not wait."""
        if self.begun.is_set():
            self.now.set()
            return
        self.reason = reason
        self.begun.set()


async def run_daemon(launch: Launch) -> None:
    """Run until it is stopped; raises what made it stop, if that was an error."""
    bot_id = launch.config.bot_token.partition(":")[0] or None
    stop = Stop()
    with (
        hold(launch.home.folder, bot_id),
        trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals,
    ):
        try:
            async with trio.open_nursery() as heeding:
                heeding.start_soon(_heed, signals, stop)
                async with (
                    open_store(launch.home.state_file, on_commit=launch.on_commit) as db,
                    _open_engines(launch) as engines,
                ):
                    await _run(launch, stop, db, engines)
                heeding.cancel_scope.cancel()
        except* TakopiError as group:
            # One error is what a person can read; the nurseries it passed through are not.
            stop.reason = _first(group)
    if stop.reason is not None:
        raise stop.reason


def _first(group: BaseExceptionGroup[TakopiError]) -> TakopiError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


@asynccontextmanager
async def open_store(
    path: Path, *, on_commit: Callable[[], None] | None = None
) -> AsyncGenerator[Database, None]:
    """The database, served until everything that writes to it has stopped."""
    async with open_database(path, on_commit=on_commit) as db, trio.open_nursery() as nursery:
        await nursery.start(db.serve)
        try:
            yield db
        finally:
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def _open_engines(launch: Launch) -> AsyncGenerator[Engines, None]:
    secrets = (launch.config.bot_token,) if launch.config.bot_token else ()
    async with (
        open_keeper(on_lost=lambda: log.error("keeper.lost")) as keeper,
        open_engines(
            launch.catalog, keeper=keeper, environ=launch.environ, secrets=secrets
        ) as engines,
    ):
        engines.configure(launch.config.engines)
        yield engines


async def _run(launch: Launch, stop: Stop, db: Database, engines: Engines) -> None:
    settings = Settings(launch.config, engine=launch.engine)
    troubles = Troubles()
    pulse = Pulse(launch.notifier)
    spool = Spool(launch.home.spool, db)
    await spool.prepare()
    async with (
        open_lines(
            launch.config,
            db,
            spool=spool,
            allows=settings.allows,
            hooks=replace(troubles.hooks(), on_poll_end=pulse.poll_ended),
            times=launch.times,
            web_token=launch.web_token,
            takes_files=lambda: settings.config().files.enabled,
        ) as lines,
        trio.open_nursery() as services,
    ):
        shop = Workshop(
            db=db,
            engines=engines,
            worktrees=Worktrees(),
            transports=lines.transports,
            config=settings.config,
            start_cwd=launch.cwd,
            spool=spool,
            mcp=_servers(launch, services, settings, engines),
            # The config may be a link to a file elsewhere.
            private=(
                launch.home.folder,
                launch.home.spool,
                launch.home.sessions,
                launch.home.config_file,
            ),
        )
        troubles.tell(services, shop)
        recovered = await recover(shop)
        await lines.start(services)
        services.start_soon(_prune_daily, shop)
        await _run_runs(launch, stop, shop, settings, lines, recovered, troubles, pulse)
        with trio.move_on_after(FLUSH_S):
            await lines.flush()
        services.cancel_scope.cancel()


def _servers(
    launch: Launch, services: trio.Nursery, settings: Settings, engines: Engines
) -> McpServers:
    """The MCP servers of the config, none of which is started yet."""
    around = Surroundings(
        keeper=engines.keeper,
        environ=launch.environ,
        secrets=(launch.config.bot_token,) if launch.config.bot_token else (),
        cwd=launch.home.folder,
        grace_s=launch.config.limits.grace_s,
    )
    return McpServers(services, around, lambda: settings.config().mcp)


async def _run_runs(
    launch: Launch,
    stop: Stop,
    shop: Workshop,
    settings: Settings,
    lines: Lines,
    recovered: Recovered,
    troubles: Troubles,
    pulse: Pulse,
) -> None:
    secrets = (launch.config.bot_token,) if launch.config.bot_token else ()
    async with (
        open_parts(shop, lines.telegram, environ=launch.environ, secrets=secrets) as parts,
        open_questions(shop, environ=launch.environ, secrets=secrets) as oneshot,
        trio.open_nursery() as runs,
    ):
        asks = Asks(shop)
        schedule = Schedule(runs, shop, asks)
        resubmit(schedule, shop, recovered.queued)
        requests = Requests(shop, schedule)
        drafts = Drafts(runs, draft_ports(shop, schedule, requests, parts=parts))
        turns = Turns(
            runs, shop, parts.admins, oneshot=oneshot, environ=launch.environ, secrets=secrets
        )
        troubles.watch(drafts, turns)
        interviews = Interviews(
            runs,
            shop.db,
            files=Files(launch.home.sessions),
            oneshot=oneshot,
            host=InterviewHost(shop, requests, turns),
        )
        schedule.signals = interviews
        desk = Desk(
            shop=shop,
            schedule=schedule,
            requests=requests,
            asks=asks,
            drafts=drafts,
            interviews=interviews,
            turns=turns,
            ear=parts.ear,
            intake=Intake(shop, requests, parts.ear, lines.fetch),
            started_at=trio.current_time(),
            last_poll_s=lines.last_poll_s,
            reread=lines.reread,
        )

        async def go_on() -> None:
            await tell_of_start(shop, recovered, set_aside=shop.db.set_aside)
            await drafts.resume()
            await turns.recover()
            await interviews.recover()

        await _unless(stop.begun, go_on)
        if not stop.begun.is_set():
            router = Router(desk, COMMANDS, register(desk))
            async with trio.open_nursery() as front:
                for incoming in lines.incoming:
                    front.start_soon(router.serve, incoming)
                if lines.telegram is not None:
                    front.start_soon(_poll, lines.telegram, stop)
                    launch.tell("takopi runs: write to your bot in Telegram. Ctrl-C ends it.")
                if lines.web is not None:
                    front.start_soon(lines.web.listen)
                    launch.announce(lines.web.url)
                if lines.telegram is None:
                    front.start_soon(pulse.beat)
                reload = Reload(launch.load, shop, settings, schedule, lines.show_menu)
                front.start_soon(interviews.serve)
                front.start_soon(_watch_store, shop.db, stop)
                front.start_soon(reload.watch, launch.home.config_file, launch.config)
                reload.show_menu()
                log.info("daemon.ready", engines=[engine.id for engine in shop.engines])
                await stop.begun.wait()
                pulse.stopping(running=schedule.running)
                front.cancel_scope.cancel()
        drain_s = settings.config().limits.drain_s
        if schedule.running and drain_s:
            launch.tell(_waiting_words(schedule.running, drain_s))
        await _drain(stop, schedule, turns, drain_s=drain_s)
        runs.cancel_scope.cancel()


def _waiting_words(running: int, drain_s: float) -> str:
    """What the end of takopi waits for."""
    runs = "1 run" if running == 1 else f"{running} runs"
    it = "it" if running == 1 else "them"
    return f"waiting for {runs}, {drain_s:g} s at most; Ctrl-C again ends {it} at once"


async def _drain(stop: Stop, schedule: Schedule, turns: Turns, *, drain_s: float) -> None:
    """Let the runs and the turns end by themselves, until the time is over or somebody insists."""
    log.info("daemon.draining", running=schedule.running, queued=schedule.queued)

    async def drain() -> None:
        await schedule.drain()
        await turns.drain()

    with trio.move_on_after(drain_s):
        await _unless(stop.now, drain)


async def _unless(event: trio.Event, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work, unless this happens first."""
    async with trio.open_nursery() as nursery:

        async def give_up() -> None:
            await event.wait()
            nursery.cancel_scope.cancel()

        nursery.start_soon(give_up)
        await work()
        nursery.cancel_scope.cancel()


async def _heed(signals: AsyncIterator[int], stop: Stop) -> None:
    async for number in signals:
        log.info("signal.received", signal=signal.Signals(number).name)
        stop.begin()


async def _poll(telegram: TelegramTransport, stop: Stop) -> None:
    """Receive; what no waiting mends stops the daemon, in good order."""
    try:
        await telegram.poll()
    except StoreUnfit:
        pass  # who watches the store has heard of it
    except BadToken as error:
        log.error("poll.stopped", why=error.what)
        stop.begin(error)


async def _watch_store(db: Database, stop: Stop) -> None:
    """Whoever comes upon damage: it is the next start that sets the file aside."""
    error = await db.wait_damaged()
    log.error("store.damaged", why=error.what)
    stop.begin(error)


async def _prune_daily(shop: Workshop) -> None:
    while True:
        days = shop.config().limits.keep_days
        try:
            expired = await shop.db.write(lambda conn: outbox.expire(conn, now_ms=now_ms()))
            if expired:
                log.warning("sends.given_up", count=len(expired))
            await shop.db.write(
                lambda conn, days=days: upkeep.prune(conn, keep_days=days, now_ms=now_ms())
            )
            await shop.spool.sweep()
        except TakopiError as error:
            log.warning("store.not_pruned", why=error.what)
        await trio.sleep(PRUNE_EVERY_S)
