"""`takopi prompt preview`: what a message would be sent as, without a chat and without sending."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from takopi.cli.errors import hint
from takopi.cli.names import known_names
from takopi.config.load import load
from takopi.config.paths import find_home
from takopi.core.errors import Refused

if TYPE_CHECKING:
    from takopi.config.loaded import Config
    from takopi.engines.registry import Engines
    from takopi.routing.resolve import Resolved
    from takopi.runs.tooling import Prepared

app = typer.Typer(
    help="Look at the prompts that engines are sent.",
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)

Part = Literal["system", "message"]


@app.callback()
def prompt() -> None:
    """Look at the prompts that engines are sent."""


@app.command("preview")
def preview(
    message: Annotated[
        str, typer.Argument(help="What you would write in the chat; - reads it from stdin.")
    ],
    *,
    part: Annotated[Part | None, typer.Option(help="Print this part alone, byte for byte.")] = None,
) -> None:
    """Print what a message would be sent as in a new conversation; nothing is sent."""
    import trio

    text = sys.stdin.read() if message == "-" else message
    resolved, prepared = trio.run(partial(_prepare, text))
    for problem in prepared.offer.problems:
        hint(problem)
    made = prepared.prompt
    if part is not None:
        chosen = made.user if part == "message" else made.system or ""
        sys.stdout.buffer.write(chosen.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
        return
    from takopi.app.commands.preview import describe

    named = (resolved.engine, None if resolved.context is None else resolved.context.project)
    typer.echo(" · ".join(filter(None, named)))
    typer.echo(f"about {made.metadata.token_estimate} tokens; {describe(made)}")
    if made.system:
        typer.echo(f"\n--- system prompt ---\n{made.system}")
    typer.echo(f"\n--- message ---\n{made.user}")


async def _prepare(text: str) -> tuple[Resolved, Prepared]:
    """The prompt, by the config and the same steps that a run takes."""
    import trio

    from takopi.engines.catalog import load_catalog
    from takopi.engines.registry import open_engines
    from takopi.interview.signal import INSTRUCTION
    from takopi.kit import log
    from takopi.kit.proc import open_keeper
    from takopi.mcp.servers import McpServers, Surroundings
    from takopi.runs.tooling import prepare

    home = find_home(os.environ)
    config = load(home.config_file, known_names(), environ=os.environ)
    secrets = (config.bot_token,) if config.bot_token else ()
    log.configure(level="warning", secrets=secrets)
    async with (
        open_keeper(on_lost=lambda: None) as keeper,
        open_engines(
            load_catalog(home.folder), keeper=keeper, environ=os.environ, secrets=secrets
        ) as engines,
    ):
        engines.configure(config.engines)
        resolved = _resolve(text, config, engines)
        async with trio.open_nursery() as nursery:
            around = Surroundings(
                keeper, dict(os.environ), secrets, home.folder, config.limits.grace_s
            )
            prepared = await prepare(
                McpServers(nursery, around, lambda: config.mcp),
                resolved.prompt,
                engine=resolved.engine,
                context=resolved.context,
                system=INSTRUCTION if config.interview.auto else None,
            )
            nursery.cancel_scope.cancel()
    return resolved, prepared


def _resolve(text: str, config: Config, engines: Engines) -> Resolved:
    """What the message asks for in a chat where nobody has chosen anything."""
    from takopi.core.ids import EngineId
    from takopi.core.messages import IncomingMessage
    from takopi.routing.facts import Facts
    from takopi.routing.resolve import resolve
    from takopi.runs.request import FALLBACKS

    known = (EngineId(name) for name in FALLBACKS)
    resolved = resolve(
        Facts(message=IncomingMessage("cli", 0, 0, text, None, None, None)),
        config,
        engines=tuple(engines),
        bot_name=None,
        fallback_engine=next((each for each in known if engines.is_installed(each)), None),
    )
    if resolved.thread is not None:
        raise Refused(
            "this goes on with a conversation, which only its chat knows",
            way_out="write `/preview` in front of it there",
        )
    return resolved
