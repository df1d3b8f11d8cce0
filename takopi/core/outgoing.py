"""What takopi says, in words that no transport owns: text with its marks, buttons, a file.

Offsets and lengths count UTF-16 units, as chats do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MarkKind = Literal[
    "bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "link", "quote"
]


@dataclass(frozen=True, slots=True)
class Mark:
    """How a stretch of text looks. `extra` is the address of a link, or the language of `pre`."""

    kind: MarkKind
    offset: int
    length: int
    extra: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Text as it is read, and its marks in the order of their offsets."""

    text: str
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Button:
    """What a person can press; `data` comes back with the press and has at most 64 bytes."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class Card:
    """A message that can be edited: its text, and rows of buttons below it."""

    text: Text
    buttons: tuple[tuple[Button, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Spooled:
    """A file that lies on the disk under a name of takopi's own until it has been sent."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file to be sent, with the card as its caption.

    What takopi has written itself is here; what it has read from the disk is on the disk.
    """

    name: str
    data: bytes | Spooled

    @property
    def size_bytes(self) -> int:
        """How big it is."""
        return len(self.data) if isinstance(self.data, bytes) else self.data.size_bytes

    @property
    def spooled(self) -> str | None:
        """The name that it has on the disk, if it is there."""
        return self.data.name if isinstance(self.data, Spooled) else None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message on its way out.

    `reply_to` and `removes` are messages of the same chat; what it `removes` goes once this one
    has arrived. A silent message does not make the phone ring.
    """

    card: Card
    attachment: Attachment | None = None
    reply_to: int | None = None
    removes: int | None = None
    silent: bool = False
