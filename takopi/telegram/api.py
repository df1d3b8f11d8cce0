"""Every method of the Bot API that takopi calls, typed; the token stays in here.

Nothing waits or retries by itself, and deadlines are the caller's. A request ends with its
result or with one of the errors that `faults.py` tells apart.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from takopi.core.errors import Refused, Unreachable
from takopi.core.outgoing import Attachment, Button, Card, Text
from takopi.kit.http import HttpClient, Reply
from takopi.kit.mask import mask
from takopi.telegram.faults import bot_api_fault, foreign_fault
from takopi.telegram.render import caption, cut, entities, keyboard, sound

T = TypeVar("T")

ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
MAX_TOPIC_NAME = 128
MAX_TOAST_UNITS = 200
"""The longest text that is shown as the answer to a press."""

_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NO_PREVIEW = {"is_disabled": True}


class Me(msgspec.Struct, frozen=True):
    """Who the bot is."""

    id: int
    username: str


class Command(msgspec.Struct, frozen=True):
    """One line of the command menu."""

    command: str
    description: str


class _Sent(msgspec.Struct, frozen=True):
    message_id: int


class _Topic(msgspec.Struct, frozen=True):
    message_thread_id: int


class _Member(msgspec.Struct, frozen=True):
    status: str


class _File(msgspec.Struct, frozen=True):
    file_path: str | None = None
    file_size: int | None = None


class _Parameters(msgspec.Struct, frozen=True):
    retry_after: float | None = None
    migrate_to_chat_id: int | None = None


class _Envelope(msgspec.Struct, frozen=True):
    ok: bool
    result: msgspec.Raw = msgspec.Raw()
    error_code: int = 0
    description: str = ""
    parameters: _Parameters = _Parameters()


_decode_envelope = msgspec.json.Decoder(_Envelope).decode


class Api:
    """The methods of one bot, over one HTTP client."""

    def __init__(self, http: HttpClient, *, url: str, token: str) -> None:
        self._http = http
        self._token = token
        self._methods_url = f"{url}/bot{token}/"
        self._files_url = f"{url}/file/bot{token}/"
        # The part before the colon is the bot's own number.
        self.bot_id = int(token.partition(":")[0])

    async def get_me(self) -> Me:
        """Who the bot is."""
        return await self._call("getMe", Me)

    async def get_updates(self, offset: int | None, *, timeout_s: int) -> list[msgspec.Raw]:
        """What is new, each update in its own bytes; the server waits up to `timeout_s` for it."""
        return await self._call(
            "getUpdates",
            list[msgspec.Raw],
            offset=offset,
            timeout=timeout_s,
            allowed_updates=ALLOWED_UPDATES,
        )

    async def send_message(
        self,
        chat_id: int,
        text: Text,
        *,
        buttons: Sequence[Sequence[Button]] = (),
        topic_id: int | None = None,
        reply_to: int | None = None,
        silent: bool = False,
    ) -> int:
        """Send a text and return the message's number."""
        sent = await self._call(
            "sendMessage",
            _Sent,
            chat_id=chat_id,
            message_thread_id=topic_id,
            text=sound(text.text),
            entities=entities(text),
            link_preview_options=_NO_PREVIEW,
            disable_notification=silent or None,
            reply_parameters=_reply(reply_to),
            reply_markup=keyboard(buttons),
        )
        return sent.message_id

    async def send_document(
        self,
        chat_id: int,
        attachment: Attachment,
        *,
        text: Text,
        buttons: Sequence[Sequence[Button]] = (),
        topic_id: int | None = None,
        reply_to: int | None = None,
        silent: bool = False,
    ) -> int:
        """Send a file with as much of the text as a caption holds; returns the message's number."""
        below = caption(text)
        fields = _present(
            chat_id=chat_id,
            message_thread_id=topic_id,
            caption=below.text or None,
            caption_entities=entities(below),
            disable_notification=silent or None,
            reply_parameters=_reply(reply_to),
            reply_markup=keyboard(buttons),
        )
        body, content_type = _multipart(fields, "document", attachment)
        sent = await self._post("sendDocument", _Sent, body=body, content_type=content_type)
        return sent.message_id

    async def edit_message_text(self, chat_id: int, message_id: int, *, card: Card) -> None:
        """Let a message of the bot read as the card does; without buttons, it loses its own."""
        await self._call(
            "editMessageText",
            msgspec.Raw,
            chat_id=chat_id,
            message_id=message_id,
            text=sound(card.text.text),
            entities=entities(card.text),
            link_preview_options=_NO_PREVIEW,
            reply_markup=keyboard(card.buttons),
        )

    async def edit_message_reply_markup(
        self, chat_id: int, message_id: int, *, buttons: Sequence[Sequence[Button]]
    ) -> None:
        """Change the buttons of a message and nothing else."""
        await self._call(
            "editMessageReplyMarkup",
            msgspec.Raw,
            chat_id=chat_id,
            message_id=message_id,
            reply_markup=keyboard(buttons),
        )

    async def delete_message(self, chat_id: int, message_id: int) -> None:
        """Remove a message."""
        await self._call("deleteMessage", msgspec.Raw, chat_id=chat_id, message_id=message_id)

    async def answer_callback_query(
        self, query_id: str, text: str = "", *, alert: bool = False
    ) -> None:
        """End the press, and show a text for a moment or until it is closed."""
        await self._call(
            "answerCallbackQuery",
            msgspec.Raw,
            callback_query_id=query_id,
            text=cut(text, MAX_TOAST_UNITS) or None,
            show_alert=alert or None,
        )

    async def set_my_commands(self, commands: Sequence[Command]) -> None:
        """Replace the command menu."""
        await self._call("setMyCommands", msgspec.Raw, commands=list(commands))

    async def create_forum_topic(self, chat_id: int, name: str) -> int:
        """Make a topic and return its number."""
        topic = await self._call(
            "createForumTopic", _Topic, chat_id=chat_id, name=cut(name, MAX_TOPIC_NAME)
        )
        return topic.message_thread_id

    async def get_chat_member(self, chat_id: int, user_id: int) -> str:
        """What somebody is in a chat: `creator`, `administrator`, `member`, `left` and so on."""
        member = await self._call("getChatMember", _Member, chat_id=chat_id, user_id=user_id)
        return member.status

    async def download(self, file_id: str, *, max_bytes: int) -> bytes:
        """The content of a file; refused when it is over `max_bytes` or no longer there."""
        found = await self._call("getFile", _File, file_id=file_id)
        too_big = Refused(
            f"the file is over {max_bytes // (1024 * 1024)} MB", way_out="send a smaller one"
        )
        if found.file_size is not None and found.file_size > max_bytes:
            raise too_big
        if found.file_path is None:
            raise Refused("Telegram no longer has this file", way_out="send it again")
        reply = await self._http.request("GET", self._files_url + found.file_path)
        if reply.status == 404:
            raise Refused("Telegram no longer has this file", way_out="send it again")
        if reply.status != 200:
            raise foreign_fault(reply.status, retry_after=reply.headers.get("retry-after"))
        if len(reply.body) > max_bytes:
            raise too_big
        return reply.body

    async def _call(self, method: str, returns: type[T], **fields: Any) -> T:
        body = msgspec.json.encode(_present(**fields))
        return await self._post(method, returns, body=body, content_type="application/json")

    async def _post(self, method: str, returns: type[T], *, body: bytes, content_type: str) -> T:
        # Whatever an agent or a terminal has shown: as many characters, so that marks still fit.
        body = mask(body, (self._token,))
        reply = await self._http.request(
            "POST", self._methods_url + method, body=body, headers={"content-type": content_type}
        )
        return _result(reply, returns)


def _result(reply: Reply, returns: type[T]) -> T:
    try:
        envelope = _decode_envelope(reply.body)
    except _NOT_JSON:
        raise foreign_fault(reply.status, retry_after=reply.headers.get("retry-after")) from None
    if not envelope.ok:
        raise bot_api_fault(
            envelope.error_code or reply.status,
            envelope.description,
            retry_after_s=envelope.parameters.retry_after,
            migrate_to_chat_id=envelope.parameters.migrate_to_chat_id,
        )
    try:
        return msgspec.json.decode(envelope.result, type=returns)
    except _NOT_JSON:
        raise Unreachable("the answer lacks what was asked for", maybe_applied=True) from None


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _reply(message_id: int | None) -> dict[str, Any] | None:
    if message_id is None:
        return None
    # A person may have deleted what is replied to: the answer still has to arrive.
    return {"message_id": message_id, "allow_sending_without_reply": True}


def _multipart(
    fields: Mapping[str, Any], file_field: str, attachment: Attachment
) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    parts: list[bytes] = []
    for name, value in fields.items():
        text = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
        head = f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n'
        parts += [head.encode(), text, b"\r\n"]
    # As browsers do: the only characters that could end the name early.
    file_name = sound(attachment.name).replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = (
        f'--{boundary}\r\ncontent-disposition: form-data; name="{file_field}";'
        f' filename="{file_name}"\r\ncontent-type: application/octet-stream\r\n\r\n'
    )
    parts += [head.encode(), attachment.data, f"\r\n--{boundary}--\r\n".encode()]
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"
