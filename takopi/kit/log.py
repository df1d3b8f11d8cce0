"""Log lines with fields, in which no known secret can appear.

Secrets are taken out of the final bytes, after every formatter has had its say, so it does not
matter whether one came in a field, a traceback or a message of another library.
"""

from __future__ import annotations

import json
import logging
import sys
import urllib.parse
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import BinaryIO, Protocol

import structlog

HIDDEN = b"[hidden]"
QUIET = ("httpx2", "httpcore2", "trio", "hypercorn", "mcp", "anthropic")
"""Libraries that log at INFO what we would not: addresses with tokens in them, for one."""


class ByteSink(Protocol):
    """Where the bytes end up."""

    def write(self, data: bytes, /) -> object:
        """Take the bytes of one or more whole lines."""
        ...

    def flush(self) -> None:
        """Let them go."""
        ...


class Redactor:
    """Takes known secrets out of bytes, in every spelling in which a log may hold them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._spellings: list[bytes] = []
        for secret in secrets:
            self.hide(secret)

    def hide(self, secret: str) -> None:
        """Never let this through from now on."""
        if not secret:
            return
        spellings = {
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            repr(secret)[1:-1],
            urllib.parse.quote(secret, safe=""),
            urllib.parse.quote(secret),
        }
        self._spellings += [spelling.encode() for spelling in spellings]
        # The longest first: none of them may leave half of another behind.
        self._spellings.sort(key=len, reverse=True)

    def clean(self, data: bytes) -> bytes:
        """The same bytes without the secrets."""
        for spelling in self._spellings:
            if spelling in data:
                data = data.replace(spelling, HIDDEN)
        return data


class _CleanWriter:
    """The text stream that every logger writes to: each write is a whole line."""

    def __init__(self, sink: ByteSink, redactor: Redactor) -> None:
        self._sink = sink
        self._redactor = redactor

    def write(self, text: str) -> int:
        self._sink.write(self._redactor.clean(text.encode(errors="backslashreplace")))
        return len(text)

    def flush(self) -> None:
        self._sink.flush()


def configure(
    *,
    level: str = "info",
    secrets: Sequence[str] = (),
    sink: BinaryIO | ByteSink | None = None,
    as_json: bool = False,
    colors: bool = False,
) -> Redactor:
    """Send every logger of this process, ours and others', through one clean line writer.

    Uncaught exceptions go the same way, so that a traceback cannot show a secret either.
    """
    redactor = Redactor(secrets)
    writer = _CleanWriter(sink or sys.stderr.buffer, redactor)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=colors, exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(writer)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    sys.excepthook = _log_uncaught
    return redactor


def _log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    structlog.get_logger("takopi").critical("process.crashed", exc_info=(kind, error, traceback))
