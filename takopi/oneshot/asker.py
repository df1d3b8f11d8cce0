"""Asks a model over any backend; JSON that does not fit is asked for once more, and only once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, overload

import msgspec
import structlog

from takopi.core.errors import Refused, UnusableAnswer
from takopi.oneshot.backend import Backend
from takopi.oneshot.extract import read_json

T = TypeVar("T")
log: structlog.stdlib.BoundLogger = structlog.get_logger("takopi.oneshot")

QUOTED_CHARS = 20_000
"""How much of a bad answer the model gets to see again."""

_FORM = """\
Answer with one JSON value and nothing else: no words around it, no code fence. \
It must fit this JSON Schema:
{schema}"""

_AGAIN = """\
{user}

You have answered this once:
{answer}

That cannot be used: {why}. Answer again, with nothing but JSON that fits the schema."""


@dataclass(frozen=True, slots=True)
class Asker:
    """The `Oneshot` that takopi uses."""

    backend: Backend

    @overload
    async def ask(self, system: str, user: str, *, schema: None = None) -> str: ...

    @overload
    async def ask(self, system: str, user: str, *, schema: type[T]) -> T: ...

    async def ask(self, system: str, user: str, *, schema: type[T] | None = None) -> str | T:
        """The answer as text, or with a schema as a value of it."""
        if not user.strip():
            raise Refused("there is nothing to ask: the question is empty")
        if schema is None:
            answer = await self._complete(system, user)
            if not answer.strip():
                raise UnusableAnswer("the model's answer is empty", way_out="ask again")
            return answer
        form = msgspec.json.encode(msgspec.json.schema(schema)).decode()
        system = f"{system}\n\n{_FORM.format(schema=form)}".lstrip()
        answer = await self._complete(system, user)
        try:
            return read_json(answer, schema)
        except UnusableAnswer as error:
            log.info("answer.repeated", why=type(error.__cause__).__name__)
            again = _AGAIN.format(user=user, answer=answer[:QUOTED_CHARS], why=error.what)
        return read_json(await self._complete(system, again), schema)

    async def _complete(self, system: str, user: str) -> str:
        return _encodable(await self.backend.complete(_encodable(system), _encodable(user)))


def _encodable(text: str) -> str:
    """`text` without halves of characters, which no wire can carry."""
    return text.encode(errors="replace").decode()
