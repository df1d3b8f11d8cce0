"""/topic: a forum topic of its own for a project and a branch."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import trio

from takopi.app.commands.choices import change_choices, read_context
from takopi.app.desk import Call, Desk
from takopi.core.errors import Refused
from takopi.core.outgoing import Outgoing
from takopi.present.cards import notice
from takopi.runs.deliver import where
from takopi.runs.workshop import put

TOPIC_S = 20.0
"""How long the chat's server may take to make a topic."""

USAGE = "use `/topic <project> @branch`"


async def run(desk: Desk, call: Call) -> None:
    """Make the topic, bind it, and say so in both places."""
    context = read_context(desk.config, call.args, usage=USAGE)
    name = where(context, None)
    transport = desk.shop.transport(call.scope)
    try:
        with trio.fail_after(TOPIC_S):
            topic = await transport.create_topic(call.scope.chat, name)
    except trio.TooSlowError:
        raise Refused(
            "the topic was not made in time",
            way_out="if it is there all the same, write `/ctx set` in it",
        ) from None
    made = Outgoing(notice(f"The topic `{name}` is there."), reply_to=call.message.message_id)
    hello = Outgoing(notice(f"This topic is bound to `{name}`. Send a message to start a run."))

    def bind(conn: sqlite3.Connection) -> None:
        change_choices(conn, topic, lambda own: replace(own, context=context))
        put(conn, topic, hello, kind="notice")
        put(conn, call.scope, made, kind="notice")

    await desk.shop.db.write(bind)
    transport.wake(call.scope.chat)
