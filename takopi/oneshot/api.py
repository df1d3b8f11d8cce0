"""Asks over the Messages API, and costs next to nothing until the first question.

The SDK takes a second to import and tens of MiB to hold, so that is done in a thread, on first use.
It is handed a client without timeouts and redirects: the caller's deadline ends a call and closes
its connection, and the key goes to no address but the configured one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import NotConfigured, TakopiError, Unreachable
from takopi.kit.http import FAULTS, BareClient, open_client
from takopi.kit.late import load
from takopi.oneshot.backend import (
    MAX_ANSWER_CHARS,
    MAX_RETRIES,
    check_stop,
    fault_of,
    too_long,
)
from takopi.oneshot.key import SET_FILE, VARIABLE, find_key

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic

DEFAULT_MODEL = "claude-sonnet-5-5"
MAX_TOKENS = 32_000

_BASE_URL = "https://api.anthropic.com"
_OTHER_KEY = f"check the key in oneshot.api_key_file or {VARIABLE}"
# Errors that come after the reply has begun with 200 have no status of their own.
_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}


@dataclass(slots=True)
class Api:
    """Asks with a key of one's own, which is looked up for each question."""

    settings: Settings
    http: BareClient
    environ: Mapping[str, str]

    async def complete(self, system: str, user: str) -> str:
        """The text that the model streams, once it has come to its end."""
        key = await trio.to_thread.run_sync(find_key, self.settings, self.environ)
        if key is None:
            raise NotConfigured("there is no API key", way_out=f"{SET_FILE}, or set {VARIABLE}")
        await load("anthropic")
        from anthropic import AnthropicError, APIConnectionError, APIStatusError, AsyncAnthropic

        client = AsyncAnthropic(
            api_key=key,
            base_url=self.settings.base_url or self.environ.get("ANTHROPIC_BASE_URL") or _BASE_URL,
            http_client=self.http,
            timeout=None,
            max_retries=MAX_RETRIES,
            open_telemetry=False,
        )
        try:
            return await _stream(client, system, user=user, model=self.settings.model)
        except APIStatusError as error:
            raise _explain(error) from None
        except APIConnectionError as error:
            raise _no_reply(error.__cause__ or error) from None
        # The SDK lets through what httpx2 raises in mid-reply, and ValueError for what is no JSON.
        except (AnthropicError, ValueError, *FAULTS) as error:
            raise _no_reply(error) from None


@asynccontextmanager
async def open_api(settings: Settings, environ: Mapping[str, str]) -> AsyncGenerator[Api, None]:
    """A way to the API for as long as the block lasts."""
    async with open_client() as http:
        yield Api(settings, http, environ)


async def _stream(client: AsyncAnthropic, system: str, *, user: str, model: str | None) -> str:
    from anthropic import omit
    from anthropic.types import (
        RawContentBlockDeltaEvent,
        RawMessageDeltaEvent,
        RawMessageStopEvent,
        RefusalStopDetails,
        TextDelta,
    )
    from anthropic.types.raw_message_delta_event import Delta

    pieces: list[str] = []
    size = 0
    stop = explanation = None
    whole = False
    async with await client.messages.create(
        model=model or DEFAULT_MODEL,
        max_tokens=MAX_TOKENS,
        system=system or omit,
        messages=[{"role": "user", "content": user}],
        stream=True,
    ) as events:
        async for event in events:
            # The SDK does not check what it decodes, so every value is matched by its type.
            match event:
                case RawContentBlockDeltaEvent(delta=TextDelta(text=str(piece))):
                    pieces.append(piece)
                    size += len(piece)
                    if size > MAX_ANSWER_CHARS:
                        raise too_long()
                case RawMessageDeltaEvent(delta=Delta(stop_reason=str(reason), stop_details=why)):
                    stop = reason
                    match why:
                        case RefusalStopDetails(explanation=str(told)):
                            explanation = told
                        case _:
                            pass
                case RawMessageStopEvent():
                    whole = True
                case _:
                    pass
    if not whole:
        raise Unreachable("the model's answer was cut off", maybe_applied=True)
    check_stop(stop, explanation=explanation)
    return "".join(pieces)


def _explain(error: APIStatusError) -> TakopiError:
    status = error.status_code
    if status == 200:
        status = _STATUS_OF.get(str(error.type))
    return fault_of(status, str(error.api_message or ""), way_in=_OTHER_KEY)


def _no_reply(error: BaseException) -> Unreachable:
    # Its text may quote an address; its kind tells enough.
    return Unreachable(f"the API gave no usable reply ({type(error).__name__})", maybe_applied=True)
