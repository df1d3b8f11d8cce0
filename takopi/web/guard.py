"""The door of the page: only this machine's address, only the page itself, only with the token.

Everything is refused here before any of it reaches a route: another Host (a name that somebody
made to point at this machine), another Origin (a page of somebody else in the same browser), and
whoever has neither the token nor the cookie that it was changed into.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""On every answer. No script and no style but the page's own files."""

CLOSED = "Open the address that takopi printed when it started: it holds the key to this page."
MISTAKEN = "This is not the token of this takopi. " + CLOSED
FOREIGN = "This was asked by another page, and is refused."

_READS = frozenset({"GET", "HEAD"})
_YEAR_S = 365 * 24 * 3600


class Guard:
    """Stands before `app`."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app = app
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._token = token
        # Cookies are not told apart by port, and two takopis may run on one machine.
        self._cookie = f"takopi-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, exchange the token for a cookie, or let through."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
                return
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._judge(scope)
        await (answer or self._app)(scope, receive, send_guarded)

    def _judge(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            addresses = " or ".join(f"http://{host}" for host in sorted(self._hosts))
            return refusal(scope, 421, f"This page answers only at {addresses}.")
        if not _is_own(scope, headers, host=hosts[0].lower()):
            return refusal(scope, 403, FOREIGN)
        if scope["path"] == "/" and scope["method"] == "GET":
            given = QueryParams(scope["query_string"]).get("token")
            if given is not None:
                return self._exchange(scope, given)
        if not any(_same(value, self._token) for value in _cookies(headers, self._cookie)):
            return refusal(scope, 401, CLOSED)
        return None

    def _exchange(self, scope: Scope, given: str) -> Response:
        if not _same(given, self._token):
            return refusal(scope, 403, MISTAKEN)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self._cookie, self._token, max_age=_YEAR_S, httponly=True, samesite="strict"
        )
        return answer


def refusal(scope: Scope, status: int, sentence: str) -> Response:
    """A sentence for whoever asked: text for a person, JSON for the page."""
    if scope["path"] == "/":
        return PlainTextResponse(sentence, status)
    return JSONResponse({"error": sentence}, status)


def _is_own(scope: Scope, headers: Headers, *, host: str) -> bool:
    origins = headers.getlist("origin")
    if origins:
        return origins == [f"http://{host}"]
    if scope["method"] not in _READS:
        # Every browser names the origin of what changes something.
        return False
    # A link from elsewhere may open the page; nothing else of it can be taken from elsewhere.
    site = headers.get("sec-fetch-site", "none")
    return scope["path"] == "/" or site in {"none", "same-origin"}


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


def _cookies(headers: Headers, name: str) -> Iterable[str]:
    for line in headers.getlist("cookie"):
        for pair in line.split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                yield value
