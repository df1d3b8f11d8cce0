"""Secrets go out of bytes that others will see, and everything else stays where it was."""

from __future__ import annotations

from collections.abc import Iterable


def mask(data: bytes, secrets: Iterable[str]) -> bytes:
    """The same bytes, as many of them, with a star for each byte of a secret."""
    for secret in secrets:
        data = data.replace(secret.encode(), b"*" * len(secret.encode()))
    return data


class Mask:
    """The same for bytes that come in pieces: a secret may lie across their edges."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)
        # What may be the beginning of a secret is held until more is known.
        self._held_bytes = max((len(secret.encode()) for secret in self._secrets), default=1) - 1
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What can be shown now that this is known, too."""
        data = mask(self._held + piece, self._secrets)
        shown = max(0, len(data) - self._held_bytes)
        self._held = data[shown:]
        return data[:shown]

    def end(self) -> bytes:
        """The rest."""
        rest, self._held = self._held, b""
        return rest
