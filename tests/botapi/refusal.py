"""How the Bot API says no."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """A request that is answered with an error, in Telegram's words."""

    def __init__(
        self, status: int, description: str, *, parameters: dict[str, Any] | None = None
    ) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "ok": False,
            "error_code": self.status,
            "description": self.description,
        }
        if self.parameters:
            body["parameters"] = self.parameters
        return body


def bad_request(what: str) -> Refused:
    return Refused(400, f"Bad Request: {what}")


def forbidden(what: str) -> Refused:
    return Refused(403, f"Forbidden: {what}")


def conflict(what: str) -> Refused:
    return Refused(409, f"Conflict: {what}")


def too_many_requests(retry_after_s: int) -> Refused:
    return Refused(
        429,
        f"Too Many Requests: retry after {retry_after_s}",
        parameters={"retry_after": retry_after_s},
    )
