"""Drafts that go to a tmux window."""

from __future__ import annotations

import signal

from tests.drafts.claude_stand_in import StandIn
from tests.drafts.tmux_server import Server
from tests.e2e.drafting import text, versions
from tests.e2e.rig import Rig


async def attach(rig: Rig, master: StandIn, tmux: Server) -> None:
    """Bind Ada's chat to a window whose program writes down what it is typed."""
    tmux.start()
    rig.configure(f'claude.command = "{master.path}"\ndrafts.tmux_socket = "{tmux.name}"')
    await rig.start()
    await rig.reply(await rig.say("/attach work:0"), "Bound to the tmux window")
    await rig.until_so(lambda: "ready" in tmux.tmux("capture-pane", "-p", "-t", "work:0"))


async def test_run_types_the_draft_into_the_bound_window(
    rig: Rig, master: StandIn, server: Server
) -> None:
    await attach(rig, master, server)
    await rig.say("fix `it`")
    await rig.say("and $that")
    card = await rig.sees(lambda m: m.text.startswith(text("fix `it`", "and $that")))
    assert card.text.endswith("tmux: work:0")
    await rig.press(card, "Run")
    await rig.until(lambda _: card.text.endswith("Sent to the tmux window work:0"))
    typed = await server.until(b"\x1b[201~\r")
    assert typed == b"\x1b[200~* fix `it`\r* and $that\x1b[201~\r"
    assert rig.rows("SELECT count(*) FROM runs") == [(0,)]
    shown = await rig.say("/screen")
    await rig.reply(shown, "ready")


async def test_detach_clears_the_draft(rig: Rig, master: StandIn, server: Server) -> None:
    await attach(rig, master, server)
    await rig.say("one")
    card = await rig.sees(lambda m: m.labels == ("Run", "Reset"))
    await rig.reply(await rig.say("/detach"), "Detached from work:0")
    await rig.until(lambda _: card.labels == ())
    assert versions(rig) == []
    await rig.answer("say: at once")


async def test_window_that_is_killed_detaches_with_a_notice(
    rig: Rig, master: StandIn, server: Server
) -> None:
    await attach(rig, master, server)
    await rig.say("one")
    card = await rig.sees(lambda m: m.labels == ("Run", "Reset"))
    server.tmux("kill-window", "-t", "work:0")
    await rig.sees_text("The tmux window work:0 is gone", "its draft is cleared")
    await rig.until(lambda _: card.labels == ())
    assert versions(rig) == []


async def test_target_and_draft_survive_kill_9(rig: Rig, master: StandIn, server: Server) -> None:
    await attach(rig, master, server)
    await rig.say("one")
    card = await rig.sees(lambda m: m.labels == ("Run", "Reset"))
    # What it showed last, the next process does not know.
    rig.api.expect_rejection("message is not modified")
    await rig.stop(signal.SIGKILL)
    await rig.start()
    await rig.press(card, "Run")
    await server.until(b"* one\x1b[201~\r")


async def test_attach_offers_the_windows_that_are_open(
    rig: Rig, master: StandIn, server: Server
) -> None:
    server.start()
    rig.configure(f'drafts.tmux_socket = "{server.name}"')
    await rig.start()
    card = await rig.reply(await rig.say("/attach"), "bound to no tmux window")
    await rig.press(card, next(label for label in card.labels if label.startswith("work:0")))
    await rig.until(lambda _: card.text.startswith("Bound to the tmux window work:0"))
