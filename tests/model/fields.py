"""Typed access to JSON that others wrote: a value of the wrong shape is refused with its name."""

from __future__ import annotations

from typing import Any, cast


class Malformed(Exception):
    """A request that the API it was sent to would not accept."""


def table(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"{name}: an object is required")
    return cast("dict[str, Any]", value)


def rows(value: object, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise Malformed(f"{name}: a list is required")
    return [table(row, name) for row in cast("list[object]", value)]


def string(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{name}: a string is required")
    return value


def texts(content: object, name: str) -> list[str]:
    """The texts of a content field, which is a string or a list of parts."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    return [string(part["text"], name) for part in rows(content, name) if "text" in part]
