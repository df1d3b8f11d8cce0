"""Every method of the Bot API that takopi calls, typed; the token stays in here.

Nothing waits or retries by itself, and deadlines are the caller's. A request ends with its
result or with one of the errors that `faults.py` tells apart.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, TypeVar

import msgspec
import trio

from takopi.core.errors import Refused, Unreachable
from takopi.core.outgoing import Attachment, Button, Card, Text
from takopi.files.spool import Spool, lost
from takopi.kit.http import Body, HttpClient, Reply
from takopi.kit.mask import Mask, mask
from takopi.kit.pieces import pieces_of, pour
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
    """The methods of one bot, over one HTTP client. Without a `spool` it sends no file of it."""

    def __init__(
        self, http: HttpClient, *, url: str, token: str, spool: Spool | None = None
    ) -> None:
        self._http = http
        self._spool = spool
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
        head, tail, content_type = _multipart(fields, "document", attachment.name)
        post = partial(self._post, "sendDocument", _Sent, content_type=content_type)
        if isinstance(attachment.data, bytes):
            return (await post(body=head + attachment.data + tail)).message_id
        if self._spool is None:
            raise lost(attachment.name)
        opening = partial(self._spool.open, attachment.data, shown=attachment.name)
        with await trio.to_thread.run_sync(opening) as file:
            whole = _Whole(head, attachment.name, file, attachment.data.size_bytes, tail)
            async with aclosing(whole.pieces(Mask((self._token,)))) as body:
                return (await post(body=body, length=whole.size_bytes)).message_id

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

    async def download(
        self, file_id: str, write: Callable[[bytes], object], *, max_bytes: int
    ) -> None:
        """Hand the content of a file to `write`, which blocks, in pieces.

        Refused when it is over `max_bytes` or no longer there.
        """
        found = await self._call("getFile", _File, file_id=file_id)
        too_big = Refused(
            f"the file is over {max_bytes // (1024 * 1024)} MB", way_out="send a smaller one"
        )
        if found.file_size is not None and found.file_size > max_bytes:
            raise too_big
        if found.file_path is None:
            raise Refused("Telegram no longer has this file", way_out="send it again")
        async with self._http.stream("GET", self._files_url + found.file_path) as reply:
            if reply.status == 404:
                raise Refused("Telegram no longer has this file", way_out="send it again")
            if reply.status != 200:
                raise foreign_fault(reply.status, retry_after=reply.headers.get("retry-after"))
            await pour(reply.pieces, write, max_bytes=max_bytes, too_big=too_big)

    async def _call(self, method: str, returns: type[T], **fields: Any) -> T:
        body = msgspec.json.encode(_present(**fields))
        return await self._post(method, returns, body=body, content_type="application/json")

    async def _post(
        self,
        method: str,
        returns: type[T],
        *,
        body: Body,
        content_type: str,
        length: int | None = None,
    ) -> T:
        """Ask; a body that comes in pieces is masked already, and its length is known."""
        if isinstance(body, bytes):
            # Whatever an agent or a terminal has shown: as many characters, so that marks still
            # fit.
            body = mask(body, (self._token,))
        headers = {"content-type": content_type}
        if length is not None:
            headers["content-length"] = str(length)
        url = self._methods_url + method
        return _result(await self._http.request("POST", url, body=body, headers=headers), returns)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A body with a file in it that is read while it is sent."""

    head: bytes
    name: str
    file: BinaryIO
    file_bytes: int
    tail: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.head) + self.file_bytes + len(self.tail)

    async def pieces(self, mask: Mask) -> AsyncGenerator[bytes, None]:
        """All of it, as it may be seen; refused when the file is not as it was."""
        yield mask.feed(self.head)
        missing = self.file_bytes
        try:
            async for piece in pieces_of(self.file):
                missing -= len(piece)
                yield mask.feed(piece)
        except OSError:
            raise lost(self.name) from None
        if missing:
            raise lost(self.name)
        yield mask.feed(self.tail) + mask.end()


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
    fields: Mapping[str, Any], file_field: str, file_name: str
) -> tuple[bytes, bytes, str]:
    """What stands before the content of the file, what behind it, and the kind of the whole."""
    boundary = secrets.token_hex(16)
    parts: list[bytes] = []
    for name, value in fields.items():
        text = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
        head = f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n'
        parts += [head.encode(), text, b"\r\n"]
    # As browsers do: the only characters that could end the name early.
    file_name = sound(file_name).replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = (
        f'--{boundary}\r\ncontent-disposition: form-data; name="{file_field}";'
        f' filename="{file_name}"\r\ncontent-type: application/octet-stream\r\n\r\n'
    )
    tail = f"\r\n--{boundary}--\r\n"
    kind = f"multipart/form-data; boundary={boundary}"
    return b"".join((*parts, head.encode())), tail.encode(), kind
