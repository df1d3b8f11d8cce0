"""Inline keyboards, as strict as Telegram is about them."""

from __future__ import annotations

from typing import Any

from tests.botapi.chats import Json
from tests.botapi.refusal import bad_request
from tests.botapi.text import units, url_problem

ACTIONS = (
    "url", "callback_data", "web_app", "login_url", "switch_inline_query",
    "switch_inline_query_current_chat", "switch_inline_query_chosen_chat", "copy_text",
    "callback_game", "pay",
)  # fmt: skip
TEXTS = frozenset({"url", "callback_data"})
MOST_BUTTONS = 100
MOST_IN_A_ROW = 8
MOST_DATA_BYTES = 64


def read_markup(parameters: Json) -> Json | None:
    """The keyboard of a request, without its empty rows; None when there is nothing to show."""
    markup: dict[str, Any] | None = parameters.get("reply_markup")
    if markup is None:
        return None
    if "inline_keyboard" not in markup:
        raise bad_request("inline keyboard expected")
    rows: list[list[Json]] = [row for row in markup["inline_keyboard"] if row]
    buttons = [button for row in rows for button in row]
    if len(buttons) > MOST_BUTTONS:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    if any(len(row) > MOST_IN_A_ROW for row in rows):
        raise bad_request(f"a row of buttons is longer than {MOST_IN_A_ROW}")
    for button in buttons:
        _check_button(button)
    return {"inline_keyboard": rows} if rows else None


def _check_button(button: Json) -> None:
    if not button["text"].strip():
        raise bad_request("inline keyboard button text must be non-empty")
    # Empty data is as good as none.
    actions = [name for name in ACTIONS if button.get(name) or name in button.keys() - TEXTS]
    if not actions:
        raise bad_request(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
        )
    if len(actions) > 1:
        raise bad_request(
            f"can't parse inline keyboard button: more than one action: {', '.join(actions)}"
        )
    if len(button.get("callback_data", "").encode()) > MOST_DATA_BYTES:
        raise bad_request("BUTTON_DATA_INVALID")
    if actions[0] in {"pay", "callback_game"}:
        raise bad_request("BUTTON_TYPE_INVALID")
    if "copy_text" in button and not 1 <= units(button["copy_text"]["text"]) <= 256:
        raise bad_request("BUTTON_COPY_TEXT_INVALID")
    if "url" in button:
        problem = url_problem(button["url"])
        if problem:
            raise bad_request(f"inline keyboard button URL '{button['url']}' is invalid: {problem}")
