"""One whole exchange with a child: fed, drained and read all at once, to one clear ending.

In sequence, two full pipes are enough for a deadlock; so nothing here is in sequence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from takopi.kit.proc import Child, Command, Keeper

STDERR_BYTES = 64 * 1024
"""How much of the end of stderr is kept."""

LINGER_S = 5.0
"""How long a child may go on after its last word, or its pipes after its end."""

Feed = Callable[[trio.abc.SendStream], Awaitable[None]]
Read = Callable[[trio.abc.ReceiveStream], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended: `code` is its exit status, or a signal as a negative number.

    `stopped` says that it did not end by itself, `stderr` is the last of what it wrote there.
    """

    code: int
    stderr: bytes
    stopped: bool


def feed_bytes(payload: bytes) -> Feed:
    """Write everything, then end of file. A child that does not read it is not an error."""

    async def feed(stdin: trio.abc.SendStream) -> None:
        try:
            await stdin.send_all(payload)
        except trio.BrokenResourceError:
            return
        await stdin.aclose()

    return feed


async def exchange(
    keeper: Keeper,
    command: Command,
    *,
    feed: Feed,
    read: Read,
    grace_s: float,
    linger_s: float = LINGER_S,
) -> Ending:
    """Run a child from start to end, and return when it and all its descendants are gone.

    `read` returns at the end of stdout, or earlier when it has all it needs; then the child has
    `linger_s` to end before it is stopped. What `feed` or `read` raise is raised, as it is.
    """
    tail = bytearray()

    async def drain(stderr: trio.abc.ReceiveStream) -> None:
        async for chunk in stderr:
            tail.extend(chunk)
            del tail[:-STDERR_BYTES]

    async with keeper.child(command, grace_s=grace_s) as child:
        await _run_all(child, feed, drain=drain, read=read, linger_s=linger_s)
        ended_alone = child.code is not None
    return Ending(await child.wait(), bytes(tail), stopped=not ended_alone)


async def _run_all(child: Child, feed: Feed, *, drain: Read, read: Read, linger_s: float) -> None:
    failures: list[Exception] = []
    read_all, drained, gone, closing = (trio.Event() for _ in range(4))

    async def part(done: tuple[trio.Event, ...], work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:  # ruff: ignore[blind-except] carried out whole, not as a group
            failures.append(error)
            nursery.cancel_scope.cancel()
        for event in done:
            event.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(part, (), lambda: feed(child.stdin))
        nursery.start_soon(part, (drained,), lambda: drain(child.stderr))
        nursery.start_soon(part, (read_all, closing), lambda: read(child.stdout))
        nursery.start_soon(part, (gone, closing), child.wait_cleared)
        await closing.wait()
        with trio.move_on_after(linger_s):
            for event in (read_all, gone, drained):
                await event.wait()
        nursery.cancel_scope.cancel()
    if failures:
        raise failures[0]
