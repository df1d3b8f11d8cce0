"""Lets in the one private chat that sends the code from this terminal, and nobody else.

The code is good once, for ten minutes, and until the third wrong one, whoever sent it. Nobody but
the one who is let in gets a reply.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import msgspec
import trio

from takopi.cli.setup_token import ANSWER_S
from takopi.core.errors import Conflict, Refused, TakopiError, TryLater, Unreachable
from takopi.core.messages import IncomingMessage
from takopi.core.outgoing import Text
from takopi.kit.supervise import Backoff
from takopi.telegram.api import Api, Me
from takopi.telegram.parse import Bot, parse, update_id

LIFE_S = 600.0
TRIES = 3
DIGITS = 8
POLL_S = 25
"""How long Telegram holds a request for messages that it has none for."""

CONFLICT_S = 10.0
"""Pause while somebody else receives: the two must not chase each other."""

SENSE_S = 1.0
"""At least this is between two requests that brought nothing."""

# A greeting is not a try at the code, and neither is a year or a whole phone number.
_TRY = re.compile(r"[0-9]{6,10}")

Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Pairing:
    """A code that is out, and how many wrong ones it still bears."""

    code: str
    tries_left: int = TRIES


@dataclass(frozen=True, slots=True)
class Paired:
    """The code came from the person in this private chat."""

    chat_id: int


@dataclass(frozen=True, slots=True)
class InGroup:
    """The code came, but where others have read it."""

    chat_id: int
    sender_id: int | None


@dataclass(frozen=True, slots=True)
class Wrong:
    """Somebody tried another code."""


Verdict: TypeAlias = Paired | InGroup | Wrong | None


def new_pairing() -> Pairing:
    """A code that nobody can guess in three tries."""
    return Pairing(f"{secrets.randbelow(10**DIGITS):0{DIGITS}}")


def judge(pairing: Pairing, message: IncomingMessage, *, bot_name: str) -> tuple[Pairing, Verdict]:
    """What a message means for the pairing; most mean nothing."""
    tried = _tried_code(message.text, bot_name)
    if tried is None:
        return pairing, None
    if not secrets.compare_digest(tried, pairing.code):
        return replace(pairing, tries_left=pairing.tries_left - 1), Wrong()
    sender = message.sender_id
    if message.chat_type == "private" and sender == message.chat_id:
        return pairing, Paired(message.chat_id)
    return pairing, InGroup(message.chat_id, sender)


def _tried_code(text: str, bot_name: str) -> str | None:
    mention = f"@{bot_name}".lower()
    aside = {mention, "/start", f"/start{mention}"}
    words = [word for word in text.split() if word.lower() not in aside]
    digits = "".join(words).replace("-", "")
    return digits if _TRY.fullmatch(digits) else None


async def pair(
    api: Api, me: Me, *, show: Callable[[str], None], tell: Tell, life_s: float = LIFE_S
) -> int:
    """The chat of whoever sends the code that `show` is given; `tell` hears what goes wrong.

    Messages from before are forgotten, and so is the one with the code: the daemon must not take it
    for a task. Those after it are left for the daemon.
    """
    post = _Post(api, tell)
    bot = Bot(api.bot_id, me.username)
    with trio.move_on_after(life_s):
        await post.skip_what_waits()
        pairing = new_pairing()
        show(pairing.code)
        while True:
            for update in await post.receive():
                number = update_id(update)
                message = parse(update, bot)
                if number is None or not isinstance(message, IncomingMessage):
                    continue
                pairing, verdict = judge(pairing, message, bot_name=me.username)
                match verdict:
                    case Paired(chat_id):
                        await post.confirm(number)
                        return chat_id
                    case InGroup():
                        raise _spoiled(verdict)
                    case Wrong():
                        _say_wrong(pairing, tell)
                    case None:
                        pass
    raise Refused(
        f"no code came within {life_s / 60:.0f} minutes, and now it is void",
        way_out="`takopi init` makes a new one",
    )


async def greet(api: Api, chat_id: int, text: str) -> bool:
    """Tell the chat that it is let in; False if it cannot be told."""
    try:
        with trio.fail_after(ANSWER_S):
            await api.send_message(chat_id, Text(text))
    except (TakopiError, trio.TooSlowError):
        return False
    return True


def _say_wrong(pairing: Pairing, tell: Tell) -> None:
    if not pairing.tries_left:
        raise Refused(
            f"{TRIES} wrong codes came in, so the right one is void",
            way_out="`takopi init` makes a new one; tell it to nobody",
        )
    more = "one more ends" if pairing.tries_left == 1 else f"{pairing.tries_left} more end"
    tell(f"a wrong code came in; {more} this")


def _spoiled(found: InGroup) -> Refused:
    named = "USER_ID" if found.sender_id is None else found.sender_id
    return Refused(
        "the code was sent in a group, where others read it, so it is void",
        way_out="run `takopi init` again and write to the bot alone; to use the group as well or"
        f" instead, say who may: `takopi init --chat-id {found.chat_id} --allow {named}`",
    )


class _Post:
    """What comes in, in spite of whatever stands in its way; each trouble is told once."""

    def __init__(self, api: Api, tell: Tell) -> None:
        self._api = api
        self._tell = tell
        self._offset: int | None = None
        self._told = ""
        self._backoff = Backoff(cap_s=10.0)

    async def skip_what_waits(self) -> None:
        """Forget what was sent before there was a code."""
        await self._take(partial(self._api.get_updates, -1, timeout_s=0), ANSWER_S)

    async def receive(self) -> Sequence[msgspec.Raw]:
        """What is new; nothing when nothing came for a while."""
        began = trio.current_time()
        poll = partial(self._api.get_updates, self._offset, timeout_s=POLL_S)
        updates = await self._take(poll, POLL_S + ANSWER_S)
        if not updates:
            # A server that does not hold the request must not be asked without end.
            await trio.sleep_until(began + SENSE_S)
        return updates

    async def confirm(self, number: int) -> None:
        """Let Telegram forget everything up to this update, and nothing after it."""
        try:
            with trio.fail_after(ANSWER_S):
                await self._api.get_updates(number + 1, timeout_s=0)
        except (TakopiError, trio.TooSlowError):
            self._tell("Telegram did not confirm the code: takopi may see it as a first message")

    async def _take(
        self, ask: Callable[[], Awaitable[list[msgspec.Raw]]], within_s: float
    ) -> Sequence[msgspec.Raw]:
        while True:
            try:
                with trio.fail_after(within_s):
                    updates = await ask()
            except (Conflict, TryLater, Unreachable, trio.TooSlowError) as error:
                await trio.sleep(self._note(error))
                continue
            self._told = ""
            self._backoff.reset()
            numbers = [number for update in updates if (number := update_id(update)) is not None]
            if numbers:
                self._offset = max(numbers) + 1
            return updates

    def _note(self, error: Conflict | TryLater | Unreachable | trio.TooSlowError) -> float:
        match error:
            case Conflict():
                self._say_once(f"{error.what}; {error.way_out}; this goes on trying")
                return CONFLICT_S
            case TryLater():
                self._say_once(f"Telegram wants to be left alone for {error.retry_after_s:.0f} s")
                return error.retry_after_s
            case Unreachable():
                self._say_once(f"Telegram cannot be reached ({error.what}); this goes on trying")
            case _:
                self._say_once("Telegram cannot be reached (no answer); this goes on trying")
        return self._backoff.pause_s()

    def _say_once(self, sentence: str) -> None:
        if sentence != self._told:
            self._told = sentence
            self._tell(sentence)
