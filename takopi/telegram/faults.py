"""The only place where the Bot API's status codes and sentences become errors of takopi.

Only an answer in the Bot API's own form is believed. A page of a proxy, a cut body or a status
without a body says nothing about what became of the request.
"""

from __future__ import annotations

from takopi.core.errors import (
    BadToken,
    ChatGone,
    ChatMoved,
    Conflict,
    Rejected,
    Rejection,
    TakopiError,
    TryLater,
    Unreachable,
)

_DEFAULT_PAUSE_S = 5.0
_MAX_WORDS = 200

# Parts of sentences, in lower case, because Telegram changes what stands around them.
_GONE = (
    "chat not found",
    "user not found",
    "peer_id_invalid",
    "group chat was deactivated",
    "not enough rights to send",
    "have no rights to send",
    "chat_write_forbidden",
    "need administrator rights",
)
_REASONS: tuple[tuple[str, Rejection], ...] = (
    ("message is not modified", "not_modified"),
    ("message to edit not found", "not_found"),
    ("message to delete not found", "not_found"),
    ("message can't be edited", "not_found"),
    ("message can't be deleted", "not_found"),
    ("message_id_invalid", "not_found"),
    ("there is no text in the message to edit", "no_text"),
    ("message thread not found", "topic_gone"),
    ("topic_deleted", "topic_gone"),
    ("topic_id_invalid", "topic_gone"),
    ("topic_closed", "topic_closed"),
    ("query is too old", "query_too_old"),
    ("query_id_invalid", "query_too_old"),
)


def bot_api_fault(
    code: int,
    description: str,
    *,
    retry_after_s: float | None = None,
    migrate_to_chat_id: int | None = None,
) -> TakopiError:
    """What a refusal of the Bot API means: one class for each thing that can be done about it."""
    words = " ".join(description.split())[:_MAX_WORDS] or f"error {code}"
    if migrate_to_chat_id is not None:
        return ChatMoved(words, chat_id=migrate_to_chat_id)
    if code == 429:
        return TryLater(words, retry_after_s=_pause_s(retry_after_s))
    if code >= 500:
        return Unreachable(words, maybe_applied=True)
    if code == 409:
        return Conflict(
            f"another program receives this bot's messages ({words})",
            way_out="stop the other one, or shut it out: /revoke at @BotFather gives a new token,"
            " and `takopi config set bot_token …` takes it",
        )
    if code in {401, 404}:
        return BadToken(
            f"Telegram does not know this bot ({words})",
            way_out="copy the token again from @BotFather: `takopi config set bot_token …`",
        )
    spoken = words.lower()
    if code == 403 or any(gone in spoken for gone in _GONE):
        return ChatGone(words)
    for part, reason in _REASONS:
        if part in spoken:
            return Rejected(words, reason=reason)
    return Rejected(words)


def foreign_fault(status: int, *, retry_after: str | None) -> TakopiError:
    """What an answer means that is not in the Bot API's form."""
    if status == 429:
        told = retry_after or ""
        return TryLater(
            "too many requests", retry_after_s=_pause_s(float(told) if told.isdecimal() else None)
        )
    if status == 413:
        return Rejected("the request is too large")
    return Unreachable(f"not an answer of the Bot API (status {status})", maybe_applied=True)


def _pause_s(told_s: float | None) -> float:
    return _DEFAULT_PAUSE_S if told_s is None or told_s <= 0 else told_s
