"""Decodes one line of a CLI's JSONL: what is known becomes data, what is unknown becomes nothing.

A line that is not of the CLI's language raises `msgspec.MsgspecError`, whatever is wrong with it.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, get_args

import msgspec

T = TypeVar("T")


class Head(Protocol):
    """As much of a line as tells its kind."""

    @property
    def known(self) -> bool:
        """Whether the line is of a kind that the schema describes."""
        ...


H = TypeVar("H", bound=Head)


def decode_line(
    line: bytes, decoder: msgspec.json.Decoder[T], *, head: msgspec.json.Decoder[H]
) -> T | H:
    """The line as `decoder` reads it; its head alone, if it is of an unknown kind.

    Known kinds are decoded once. Only a line that does not fit is looked at again.
    """
    try:
        return decode_part(line, decoder)
    except msgspec.ValidationError:
        found = decode_part(line, head)
        if found.known:
            raise
        return found


def tags_of(union: Any) -> frozenset[str]:
    """The tags of a union of tagged structs."""
    return frozenset(str(member.__struct_config__.tag) for member in get_args(union))


def decode_part(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
    """`data` as `decoder` reads it, or `msgspec.MsgspecError`."""
    try:
        return decoder.decode(data)
    except (UnicodeError, RecursionError) as error:
        # msgspec lets these two through: bytes that are no UTF-8, and nesting without end.
        raise msgspec.DecodeError(f"not JSON: {type(error).__name__}") from error
