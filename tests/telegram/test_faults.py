from __future__ import annotations

import pytest

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
from takopi.telegram.faults import bot_api_fault, foreign_fault


@pytest.mark.parametrize(
    ("code", "description", "kind"),
    [
        (401, "Unauthorized", BadToken),
        (404, "Not Found", BadToken),
        (409, "Conflict: terminated by other getUpdates request", Conflict),
        (409, "Conflict: can't use getUpdates method while webhook is active", Conflict),
        (429, "Too Many Requests: retry after 3", TryLater),
        (500, "Internal Server Error", Unreachable),
        (502, "Bad Gateway", Unreachable),
        (403, "Forbidden: bot was blocked by the user", ChatGone),
        (403, "Forbidden: bot was kicked from the supergroup chat", ChatGone),
        (403, "Forbidden: user is deactivated", ChatGone),
        (400, "Bad Request: chat not found", ChatGone),
        (400, "Bad Request: not enough rights to send text messages to the chat", ChatGone),
        (400, "Bad Request: PEER_ID_INVALID", ChatGone),
        (413, "Request Entity Too Large", Rejected),
        (400, "Bad Request: message is too long", Rejected),
        (400, "", Rejected),
    ],
)
def test_each_refusal_has_the_class_of_what_can_be_done_about_it(
    code: int, description: str, kind: type[TakopiError]
) -> None:
    assert type(bot_api_fault(code, description)) is kind


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ("message is not modified: specified new message content and …", "not_modified"),
        ("message to edit not found", "not_found"),
        ("message to delete not found", "not_found"),
        ("message can't be edited", "not_found"),
        ("message can't be deleted for everyone", "not_found"),
        ("MESSAGE_ID_INVALID", "not_found"),
        ("there is no text in the message to edit", "no_text"),
        ("message thread not found", "topic_gone"),
        ("TOPIC_DELETED", "topic_gone"),
        ("TOPIC_CLOSED", "topic_closed"),
        (
            "query is too old and response timeout expired or query ID is invalid",
            "query_too_old",
        ),
        ("QUERY_ID_INVALID", "query_too_old"),
        ("can't parse entities: Can't find end of the entity", "other"),
        ("message text is empty", "other"),
    ],
)
def test_a_rejection_says_why(description: str, reason: Rejection) -> None:
    error = bot_api_fault(400, f"Bad Request: {description}")

    assert isinstance(error, Rejected)
    assert (error.reason, error.what) == (reason, f"Bad Request: {description}")


def test_a_chat_that_moved_names_where_to() -> None:
    error = bot_api_fault(
        400,
        "Bad Request: group chat was upgraded to a supergroup chat",
        migrate_to_chat_id=-1001,
    )

    assert isinstance(error, ChatMoved)
    assert error.chat_id == -1001


@pytest.mark.parametrize(("told_s", "pause_s"), [(40, 40), (None, 5), (0, 5), (-3, 5)])
def test_a_pause_is_as_long_as_told_and_never_none(told_s: float | None, pause_s: float) -> None:
    error = bot_api_fault(429, "Too Many Requests", retry_after_s=told_s)

    assert isinstance(error, TryLater)
    assert error.retry_after_s == pause_s


@pytest.mark.parametrize("status", [200, 302, 401, 404, 409, 500, 502])
def test_a_page_of_somebody_else_says_nothing_about_token_or_request(status: int) -> None:
    error = foreign_fault(status, retry_after=None)

    assert isinstance(error, Unreachable)
    assert error.maybe_applied


@pytest.mark.parametrize(("header", "pause_s"), [("7", 7), (None, 5), ("soon", 5), ("²", 5)])
def test_a_gateway_may_ask_for_a_pause_too(header: str | None, pause_s: float) -> None:
    error = foreign_fault(429, retry_after=header)

    assert isinstance(error, TryLater)
    assert error.retry_after_s == pause_s


def test_a_body_that_is_too_large_is_rejected_by_whomever() -> None:
    assert isinstance(foreign_fault(413, retry_after=None), Rejected)


def test_the_words_of_the_server_are_kept_short_and_in_one_line() -> None:
    error = bot_api_fault(400, "Bad\nRequest: " + "x" * 5000)

    assert error.what.startswith("Bad Request: x")
    assert len(error.what) == 200


def test_a_bad_token_ends_the_daemon_for_good_and_says_the_way_out() -> None:
    error = bot_api_fault(401, "Unauthorized")

    assert error.exit_code == 78
    assert "@BotFather" in error.way_out
