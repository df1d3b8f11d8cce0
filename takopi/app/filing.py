"""A message becomes a run with what it carries: its voice note heard, its files in the project."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

import structlog
import trio

from takopi.app.drafting import Ear
from takopi.core.errors import Refused, Rejected, TakopiError, TryLater, Unreachable
from takopi.core.ids import InboxId, Scope
from takopi.core.messages import Document, IncomingMessage
from takopi.files.names import safe_name
from takopi.files.prompt import read_force, with_files
from takopi.files.shelf import Shelf, check_name, check_size
from takopi.kit.supervise import Backoff
from takopi.present.cards import refusal
from takopi.projects.checkout import exclude, find_checkout
from takopi.projects.git import git_deadline
from takopi.projects.registry import find_project
from takopi.routing.resolve import Resolved
from takopi.runs.request import Requests
from takopi.runs.workshop import Workshop

FETCH_S = 120.0
"""How long the chat's server may take for one file."""

TRIES = 4
GIT_S = 20.0
OFF = "set `files.enabled = true` in takopi.toml"

Fetch: TypeAlias = Callable[[Scope, str], Awaitable[BinaryIO]]
"""Opens a file that a person sent, by the transport's own name for it; the caller closes it."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.app")


@dataclass(frozen=True, slots=True)
class Intake:
    """The door for messages that are run."""

    shop: Workshop
    requests: Requests
    ear: Ear
    fetch: Fetch

    async def start(self, message: IncomingMessage, inbox_id: InboxId) -> None:
        """Start what the message asks for, once; `Refused` says why it cannot be had."""
        heard = await self.ear.read(message)
        if not message.documents:
            await self.requests.from_message(heard, inbox_id)
        elif self.shop.config().files.enabled:
            bring = partial(self._bring, heard)
            await self.requests.from_message(heard, inbox_id, amend=bring)
        elif heard.text.strip():
            await self._leave(heard, inbox_id, _files_are_off(heard))
            await self.requests.from_message(heard, inbox_id)
        else:
            raise _files_are_off(message)

    async def leave_files(self, message: IncomingMessage, inbox_id: InboxId) -> None:
        """Say of a message that is no prompt that the files which it carries are left alone."""
        if message.documents:
            why = Refused(f"{_not_taken(message)}: the words with it do not become a run")
            await self._leave(message, inbox_id, why)

    async def _leave(self, message: IncomingMessage, inbox_id: InboxId, why: Refused) -> None:
        key = f"not_taken:{inbox_id}"
        await self.shop.tell(message.scope, refusal(why), reply_to=message.message_id, key=key)

    async def _bring(self, message: IncomingMessage, resolved: Resolved) -> Resolved:
        """Save the files where the run will work, and name them in its prompt."""
        files = self.shop.config().files
        for document in message.documents:
            check_size(document.name, document.size_bytes or 0)
            check_name(document.name, files.uploads_dir, deny=files.deny)
        force, prompt = read_force(resolved.prompt)
        # A branch is not made for a message that comes to nothing.
        with ExitStack() as stack:
            fetched: list[tuple[str, BinaryIO]] = []
            for document in message.documents:
                file = await fetch_patiently(self.fetch, message.scope, document)
                fetched.append((document.name, stack.enter_context(file)))
            folder = await find_folder(self.shop, resolved, make=True)
            shelf = shelf_of(self.shop, folder)
            await _hide(folder / shelf.uploads_dir, folder)
            paths: list[str] = []
            for name, file in fetched:
                save = partial(shelf.save, name, file, force=force, keep=tuple(paths))
                paths.append(await trio.to_thread.run_sync(save))
        return replace(resolved, prompt=with_files(prompt, paths), cwd_hint=folder)


async def find_folder(shop: Workshop, resolved: Resolved, *, make: bool) -> Path:
    """The folder that a run of this kind would work in; without `make` one that there is."""
    if resolved.cwd_hint is not None and await trio.Path(resolved.cwd_hint).is_dir():
        return resolved.cwd_hint
    if resolved.context is None:
        return shop.start_cwd
    project = find_project(shop.config(), resolved.context.project)
    branch = resolved.context.branch
    if make or branch is None:
        return await shop.worktrees.prepare(project, branch)
    place = await shop.worktrees.find(project, branch)
    if place is None:
        raise Refused(
            f"there is no worktree for @{branch}",
            way_out=f"look at how it is spelled, or begin work there: `/{project.alias} @{branch}`",
        )
    return place


def shelf_of(shop: Workshop, folder: Path) -> Shelf:
    """The files of a folder, as the config lets people have them."""
    config = shop.config()
    keys = (config.bot_token_file, config.voice.api_key_file, config.oneshot.api_key_file)
    private = (*shop.private, *(key for key in keys if key is not None))
    return Shelf(folder, config.files.uploads_dir, config.files.deny, private=private)


async def fetch_patiently(fetch: Fetch, scope: Scope, document: Document) -> BinaryIO:
    """A file that a person sent, for the caller to close.

    A server that stumbles is asked again for a while.
    """
    name, backoff = safe_name(document.name), Backoff(cap_s=10.0)
    failure: TakopiError | None = None
    with trio.move_on_after(FETCH_S):
        for _ in range(TRIES):
            try:
                return await fetch(scope, document.file_id)
            except (Unreachable, TryLater) as error:
                failure = error
                known = error.retry_after_s if isinstance(error, TryLater) else None
                pause_s = backoff.pause_s() if known is None else known
                log.warning("file.not_fetched", why=error.what, pause_s=round(pause_s, 1))
            except Rejected as error:
                raise _not_fetched(name, error) from error
            await trio.sleep(pause_s)
    raise _not_fetched(name, failure)


def _not_fetched(name: str, failure: TakopiError | None) -> Refused:
    why = "it took too long" if failure is None else failure.what
    return Refused(f"{name} could not be fetched: {why}", way_out="send it again")


def _files_are_off(message: IncomingMessage) -> Refused:
    return Refused(f"{_not_taken(message)}: files are off here", way_out=OFF)


def _not_taken(message: IncomingMessage) -> str:
    names = ", ".join(safe_name(document.name) for document in message.documents)
    verb = "was" if len(message.documents) == 1 else "were"
    return f"{names} {verb} not taken"


async def _hide(folder: Path, root: Path) -> None:
    """Keep git from seeing what comes in; a git that has trouble is no reason to stop."""
    try:
        with git_deadline(GIT_S):
            checkout = await find_checkout(root)
            if checkout is not None:
                await exclude(checkout, folder)
    except (OSError, TakopiError) as error:
        log.warning("uploads.not_hidden", why=str(error))
