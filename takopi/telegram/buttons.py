"""What a button carries is typed on both sides: forged or stale data decodes to nothing.

The data of a press reads `<prefix>:<field>:<field>`, at most 64 bytes. A prefix belongs to one
feature, which says with a frozen dataclass what its fields are.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from takopi.core.messages import Press

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_BYTES = 64

Prefix = Literal["iq", "dr", "pv", "rn", "ak", "wt", "pk", "in"]
"""Interview, drafts, plan review, runs, asks, worktrees, pickers, stale and recovered messages."""

T = TypeVar("T", bound="DataclassInstance")

_INT = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""What a database holds: a forged number must not be an error of ours."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    words: frozenset[str] | None
    number: bool

    def read(self, part: str) -> str | int:
        if self.number:
            if not _INT.fullmatch(part):
                raise ValueError(f"{self.name} is not a number")
            return int(part)
        if self.words is not None and part not in self.words:
            raise ValueError(f"{self.name} is none of {sorted(self.words)}")
        return part


class Codec(Generic[T]):
    """Between the presses of one feature and the data on its buttons.

    The fields of `shape` are `str`, `int` or a `Literal` of texts. Only the last may hold a colon.
    """

    def __init__(self, prefix: Prefix, shape: type[T]) -> None:
        self.prefix: str = prefix
        self.shape = shape
        hints = get_type_hints(shape)
        self._fields = tuple(_field(f.name, hints[f.name]) for f in dataclasses.fields(shape))

    def encode(self, press: T) -> str:
        """The data for a button. What does not fit is a mistake of the caller: `ValueError`."""
        parts = [self.prefix, *(str(getattr(press, field.name)) for field in self._fields)]
        data = ":".join(parts)
        if self.decode(data) != press:
            raise ValueError(f"{press!r} does not survive on a button")
        if len(data.encode()) > MAX_BYTES:
            raise ValueError(f"{press!r} is over {MAX_BYTES} bytes on a button")
        return data

    def decode(self, data: str) -> T | None:
        """What was pressed; None for anything that `encode` would not have made."""
        prefix, *parts = data.split(":", len(self._fields))
        if prefix != self.prefix or len(parts) != len(self._fields):
            return None
        try:
            read = [field.read(part) for field, part in zip(self._fields, parts, strict=True)]
        except ValueError:
            return None
        return self.shape(*read)


Handler = Callable[[Press, T], Awaitable[None]]


class Registry:
    """Which feature hears of which press: each prefix is registered once."""

    def __init__(self) -> None:
        self._routes: dict[str, Callable[[Press], Callable[[], Awaitable[None]] | None]] = {}

    def add(self, codec: Codec[T], handle: Handler[T]) -> None:
        """Let `handle` hear of every press that `codec` can read; a prefix twice is a mistake."""
        if codec.prefix in self._routes:
            raise ValueError(f"two features want the buttons that begin with {codec.prefix}:")

        def route(press: Press) -> Callable[[], Awaitable[None]] | None:
            what = codec.decode(press.data)
            return None if what is None else partial(handle, press, what)

        self._routes[codec.prefix] = route

    def route(self, press: Press) -> Callable[[], Awaitable[None]] | None:
        """What to call for this press; None when no feature can read its data."""
        route = self._routes.get(press.data.partition(":")[0])
        return None if route is None else route(press)


def _field(name: str, hint: Any) -> _Field:
    # A NewType, such as RunId, is read as what it stands for.
    hint = getattr(hint, "__supertype__", hint)
    if hint is int:
        return _Field(name, words=None, number=True)
    if hint is str:
        return _Field(name, words=None, number=False)
    words = get_args(hint)
    if get_origin(hint) is Literal and all(isinstance(word, str) for word in words):
        return _Field(name, words=frozenset(words), number=False)
    raise TypeError(f"a button cannot carry {name}: {hint!r}")
