"""/trigger: which messages of a group are for takopi."""

from __future__ import annotations

from dataclasses import replace

from takopi.app.commands.choices import change_choices, look
from takopi.app.desk import Call, Desk, answer
from takopi.app.pickers import PickPress, digest, find, gone, offer, pick_button, settle
from takopi.app.tap import Tap
from takopi.core.errors import Refused
from takopi.core.outgoing import Card
from takopi.present.cards import notice
from takopi.present.compose import prose
from takopi.present.wording import one_line
from takopi.store.scopes import TriggerMode

MODES: dict[str, TriggerMode] = {"all": "all", "mention": "mention"}
LABELS: dict[TriggerMode, str] = {"all": "All messages", "mention": "Only those to me"}
USAGE = "use `/trigger all` or `/trigger mention`"


async def run(desk: Desk, call: Call) -> None:
    """Choose between all messages and those that speak to the bot."""
    if call.message.chat_type == "private":
        raise Refused("in a private chat every message is for me")
    word = call.args.lower()
    if word and word not in MODES:
        raise Refused(f"/trigger knows no {one_line(word, 40)}", way_out=USAGE)
    if word:
        mode = MODES[word]
        await desk.shop.db.write(
            lambda conn: change_choices(
                conn, call.scope, lambda own: replace(own, trigger_mode=mode)
            )
        )
        await answer(desk, call, _chosen(mode))
        return
    here = await look(desk, call.scope)
    now = here.own.trigger_mode or here.chat.trigger_mode or "mention"
    buttons = [
        pick_button(call, "trigger", digest(mode), label=label) for mode, label in LABELS.items()
    ]
    await offer(desk, call, prose(_sentence(now)), buttons=buttons)


async def picked(tap: Tap, pick: PickPress) -> None:
    """Choose by a button."""
    scope = tap.press.scope
    word = find(MODES, pick.value)
    if word is None:
        gone(tap)
        return
    mode = MODES[word]
    await settle(
        tap,
        pick,
        lambda conn: change_choices(conn, scope, lambda own: replace(own, trigger_mode=mode)),
        said=_chosen(mode),
    )


def _sentence(mode: TriggerMode) -> str:
    if mode == "all":
        return "Every message here is for me."
    return "Only messages that mention me, reply to me or begin with a command are for me."


def _chosen(mode: TriggerMode) -> Card:
    hint = " Telegram hands them over only to an admin, or with /setprivacy off at @BotFather."
    return notice(_sentence(mode) + (hint if mode == "all" else ""))
