"""/plan: what is unclear about a task is asked first, and one run starts with all the answers."""

from __future__ import annotations

from dataclasses import replace

from takopi.app.desk import Call, Desk, answer
from takopi.interview.session import Order
from takopi.interview.view import USAGE
from takopi.present.cards import notice


async def run(desk: Desk, call: Call) -> None:
    """Begin an interview about the task; where and by whom it is done is fixed now."""
    message = replace(call.message, text=call.args)
    if not call.args:
        await answer(desk, call, notice(USAGE))
        return
    resolved = await desk.requests.resolve(message)
    task = resolved.prompt.strip()
    if not task:
        await answer(desk, call, notice(USAGE))
        return
    # A plan begins a conversation of its own, unless it replies to one.
    thread = resolved.thread if resolved.session_cwd is None else None
    order = Order(
        task=task,
        message_id=message.message_id,
        engine=resolved.engine,
        model=resolved.model,
        thread=None if thread is None else thread.value,
        context=resolved.context,
        cwd=None if resolved.cwd_hint is None else str(resolved.cwd_hint),
    )
    user_id = message.sender_id or message.chat_id
    await desk.interviews.plan(order, message.scope, user_id=user_id)
