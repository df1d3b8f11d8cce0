"""Hands to the sessions what they need: a planner, a bench, admins, and the folder of a chat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trio

from takopi.app.drafting import Admins
from takopi.config.loaded import Config
from takopi.core.context import Context
from takopi.core.ids import Scope
from takopi.oneshot.key import find_key
from takopi.oneshot.port import Oneshot, answer_within
from takopi.projects.registry import find_project
from takopi.routing.ctx import format_ctx
from takopi.runs.workshop import Workshop
from takopi.turns import demo_planner
from takopi.turns.actions import Bench
from takopi.turns.ports import Place, Ports
from takopi.turns.service import Rules


def turn_ports(
    shop: Workshop,
    admins: Admins,
    *,
    oneshot: Oneshot,
    environ: Mapping[str, str],
    secrets: tuple[str, ...] = (),
) -> Ports:
    """What `TurnChat` is handed."""

    async def ask(system: str, user: str) -> str:
        config = shop.config()
        if await trio.to_thread.run_sync(_is_demo, config, environ):
            return demo_planner.plan(system, user)
        with answer_within(config.oneshot.timeout_s):
            return await oneshot.ask(system, user)

    def bench(root: Path) -> Bench:
        config = shop.config()
        return Bench(
            root=root,
            keeper=shop.engines.keeper,
            environ=environ,
            secrets=secrets,
            grace_s=config.limits.grace_s,
            research_command=config.sessions.research_command,
        )

    return Ports(
        db=shop.db,
        transport=lambda scope: shop.transports.get(scope.transport),
        is_admin=admins.is_admin,
        ask=ask,
        rules=lambda: _rules(shop.config()),
        bench=bench,
        environ=environ,
    )


async def find_place(
    shop: Workshop, scope: Scope, context: Context | None, *, cwd: Path | None
) -> Place:
    """The folder of a session in this context; its worktree is made if it is missing."""
    words = "" if context is None else format_ctx(context)
    if cwd is not None and await trio.Path(cwd).is_dir():
        return Place(scope, cwd, words)
    if context is None:
        return Place(scope, shop.start_cwd)
    project = find_project(shop.config(), context.project)
    root = await shop.worktrees.prepare(project, context.branch)
    return Place(scope, root, words)


def _rules(config: Config) -> Rules:
    table, settings = config.sessions, config.oneshot
    return Rules(
        max_file_bytes=table.max_file_bytes,
        strict_context=table.strict_context,
        max_replans=table.max_replans,
        model=settings.model or ("demo" if settings.backend == "demo" else ""),
    )


def _is_demo(config: Config, environ: Mapping[str, str]) -> bool:
    """Whether a script plans: where it was chosen, or where the engine is one and no key is set."""
    settings = config.oneshot
    if settings.backend == "auto" and config.default_engine == "demo":
        return find_key(settings, environ) is None
    return settings.backend == "demo"
