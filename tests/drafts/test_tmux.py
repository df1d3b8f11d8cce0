from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from takopi.core.errors import Refused
from takopi.drafts.tmux import Target, Tmux, WindowGone, read_target
from takopi.kit.proc import Keeper
from tests.drafts.tmux_server import WITHIN_S, Server

PROMPT = "first 'line' with \"quotes\"\n! $HOME `id` $(id) \\ * ~ 🐙\n\tlast; line & more"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.end()


@pytest.fixture
def tmux(server: Server, keeper: Keeper) -> Tmux:
    return Tmux(keeper, os.environ, lambda: server.name)


async def ready(tmux: Tmux) -> Target:
    """The only window, once its program listens."""
    (window,) = await tmux.windows()
    with trio.fail_after(WITHIN_S):
        while True:
            if "ready" in await tmux.screen(window.target):
                return window.target
            await trio.sleep(0.02)


async def until_none(tmux: Tmux) -> None:
    with trio.fail_after(WITHIN_S):
        while True:
            if not await tmux.windows():
                return
            await trio.sleep(0.02)


async def test_prompt_arrives_literally_and_is_entered_once(server: Server, tmux: Tmux) -> None:
    server.start()
    target = await ready(tmux)
    await tmux.type_in(target, PROMPT)
    typed = await server.until(b"\x1b[201~\r")
    # Inside a bracketed paste tmux sends the line ends of a terminal.
    pasted = PROMPT.replace("\n", "\r").encode()
    assert typed == b"\x1b[200~" + pasted + b"\x1b[201~\r"


async def test_text_cannot_end_its_own_paste(server: Server, tmux: Tmux) -> None:
    server.start()
    target = await ready(tmux)
    await tmux.type_in(target, "one\x1b[201~\x03two")
    typed = await server.until(b"\x1b[201~\r")
    assert typed == b"\x1b[200~one[201~two\x1b[201~\r"


async def test_window_is_found_after_it_was_renamed_and_moved(server: Server, tmux: Tmux) -> None:
    server.start()
    target = await ready(tmux)
    server.tmux("rename-window", "-t", target.window, "other")
    server.tmux("rename-session", "-t", "work", "elsewhere")
    assert read_target(str(target)) == target
    await tmux.type_in(target, "still here")
    await server.until(b"still here")


async def test_window_of_the_same_id_on_a_new_server_is_another(server: Server, tmux: Tmux) -> None:
    server.start()
    target = await ready(tmux)
    server.tmux("kill-server")
    await until_none(tmux)
    server.start()
    assert (await ready(tmux)).window == target.window
    with pytest.raises(WindowGone):
        await tmux.type_in(target, "lost")
    assert server.typed.read_bytes() == b""


async def test_end_of_a_window_is_noticed(server: Server, tmux: Tmux) -> None:
    server.start()
    target = await ready(tmux)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tmux.wait_gone, target)
        await trio.testing.wait_all_tasks_blocked()
        server.tmux("kill-window", "-t", target.window)
        nursery.cancel_scope.deadline = trio.current_time() + WITHIN_S
    assert not nursery.cancel_scope.cancelled_caught


async def test_nothing_is_typed_into_a_shell(server: Server, tmux: Tmux) -> None:
    server.start("sh")
    (window,) = await tmux.windows()
    with pytest.raises(Refused, match="sh is what runs in work:0"):
        await tmux.type_in(window.target, f"touch {server.folder / 'made'}")
    assert not (server.folder / "made").exists()


async def test_windows_are_named_by_session_and_window(server: Server, tmux: Tmux) -> None:
    server.start()
    await ready(tmux)
    server.tmux("new-window", "-d", "-t", "work", "-n", "second", "sleep", "1000")
    assert (await tmux.named("work:1")).name == "second"
    assert (await tmux.named("work:second")).target.label == "work:1"
    with pytest.raises(Refused, match="several windows"):
        await tmux.named("work")
    with pytest.raises(Refused, match="no tmux window play"):
        await tmux.named("play")


async def test_no_server_has_no_windows(tmux: Tmux) -> None:
    assert await tmux.windows() == ()


async def test_window_that_is_scrolled_back_gets_the_prompt_all_the_same(
    server: Server, tmux: Tmux
) -> None:
    server.start()
    target = await ready(tmux)
    server.tmux("copy-mode", "-t", target.window)
    assert (await tmux.find(target)).in_mode
    await tmux.type_in(target, "no scrolling q")
    assert await server.until(b"\x1b[201~\r") == b"\x1b[200~no scrolling q\x1b[201~\r"
    assert not (await tmux.find(target)).in_mode
