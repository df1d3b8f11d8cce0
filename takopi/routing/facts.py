"""What must be known before a message can be resolved: read by the caller, judged by `resolve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from takopi.core.ids import MessageRef, ResumeToken
from takopi.core.messages import IncomingMessage
from takopi.routing.resume import Resumable, find_resume
from takopi.store.ledger import Run
from takopi.store.scopes import Choices
from takopi.store.threads import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A message, and all that the store knows about what it may refer to.

    `replied_run` and `replied_thread` are those of `reply_ref(message)`. `threads` has what is
    remembered of `replied_thread`, of the scope's thread and of `named_threads(message)`, as far
    as it is known. `chat` has the choices of the chat where `scope` is a topic. `session_run` is
    the last run of the scope where it has not got its thread yet; only `session_mode = "chat"`
    looks at it.
    """

    message: IncomingMessage
    replied_run: Run | None = None
    replied_thread: ResumeToken | None = None
    threads: Mapping[ResumeToken, Thread] = field(default_factory=dict[ResumeToken, Thread])
    scope: Choices = field(default_factory=Choices)
    chat: Choices = field(default_factory=Choices)
    session_run: Run | None = None


def reply_ref(message: IncomingMessage) -> MessageRef | None:
    """The message that this one replies to.

    In a topic every message formally replies to the one that opened it: that is not a reply.
    """
    if message.reply_to_message_id == message.thread_id:
        return None
    return message.reply_ref


def reply_text(message: IncomingMessage) -> str:
    """The text of the message that this one replies to; empty, if it does not or that has none."""
    return "" if reply_ref(message) is None else message.reply_to_text or ""


def named_threads(
    message: IncomingMessage, engines: Sequence[Resumable]
) -> tuple[ResumeToken, ...]:
    """The threads that the message, or the text that it replies to, names by a resume line."""
    found = (find_resume(engines, text) for text in (message.text, reply_text(message)))
    return tuple(token for token in found if token is not None)
