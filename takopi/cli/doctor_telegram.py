"""The checks of `takopi doctor` on Telegram: it answers, knows the bot, and no rival receives."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import trio

from takopi.app.lock import is_held
from takopi.cli.doctor_finding import Finding, Patient
from takopi.config.loaded import Config
from takopi.core.errors import BadToken, Conflict, TakopiError
from takopi.kit.http import Body, HttpClient, Reply, open_http
from takopi.telegram.api import Api

SKEW_S = 60.0
"""By more than this the clocks may not differ: fresh messages would be taken for stale ones."""

RIVAL_S = 12
"""A takopi elsewhere that was interrupted receives again after 10 seconds, and is seen then."""


class _Dated(HttpClient):
    """Notes the time that the server tells with its replies."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http
        self.date = ""

    async def request(
        self,
        method: str,
        url: str,
        *,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        reply = await self._http.request(method, url, body=body, headers=headers)
        self.date = reply.headers.get("date", "")
        return reply


async def check_telegram(patient: Patient) -> list[Finding]:
    """Whether the bot answers, and what time it is there."""
    config = _telegram(patient)
    if config is None:
        return []
    async with open_http() as http:
        dated = _Dated(http)
        try:
            me = await Api(dated, url=config.api_url, token=config.bot_token).get_me()
        except BadToken as error:
            bot = Finding("token", "error", error.what, error.way_out)
        except TakopiError as error:
            what = f"{config.api_url} gives no answer: {error.what}"
            look = f"look at the network, and at HTTPS_PROXY: curl --head {config.api_url}"
            return [Finding("telegram", "error", what, look)]
        else:
            bot = Finding("token", "ok", f"it is the one of @{me.username}")
        reached = Finding("telegram", "ok", f"{config.api_url} answers")
        return [reached, bot, *judge_clock(dated.date, now_s=time.time())]


def judge_clock(date: str, *, now_s: float) -> list[Finding]:
    """What the server's `Date` says about our clock; nothing, if it is none."""
    try:
        ahead_s = now_s - parsedate_to_datetime(date).timestamp()
    except ValueError:
        return []
    if abs(ahead_s) <= SKEW_S:
        return [Finding("clock", "ok", "it is right to the minute")]
    way = "fast" if ahead_s > 0 else "slow"
    what = f"this machine's clock is {abs(ahead_s):.0f} s {way}"
    return [Finding("clock", "warning", what, "timedatectl set-ntp true")]


async def check_rival(patient: Patient) -> list[Finding]:
    """Whether somebody else receives what is meant for this bot. Nothing is taken from anybody."""
    config = _telegram(patient)
    if config is None:
        return []
    if is_held(config.bot_token.partition(":")[0]):
        await trio.lowlevel.checkpoint()
        # Looking would interrupt it; and it says in the chat when somebody else receives.
        return [Finding("receiver", "ok", "takopi is running, and receives")]
    async with open_http() as http:
        api = Api(http, url=config.api_url, token=config.bot_token)
        try:
            waiting = await api.get_updates(None, timeout_s=RIVAL_S)
        except Conflict as error:
            return [Finding("receiver", "error", error.what, error.way_out)]
        except TakopiError:
            # Another check tells of it.
            return []
    if waiting:
        # They come at once: a rival had no time to show itself.
        return [Finding("receiver", "ok", "messages wait; nobody seems to receive them")]
    return [Finding("receiver", "ok", "nobody else receives this bot's messages")]


def _telegram(patient: Patient) -> Config | None:
    config = patient.config
    return config if config and "telegram" in config.transports and config.bot_token else None
