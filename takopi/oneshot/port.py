"""What a feature asks a model through: one usable answer, or one error that says what to do.

    with answer_within(config.oneshot.timeout_s):
        batch = await oneshot.ask(SYSTEM, text, schema=Batch)

`NotConfigured`    no model can be asked: show the way out
`RefusedByModel`   this question will not be answered: say so
`Unreachable`      no answer came, or none in time: offer to try again
`UnusableAnswer`   the answer is empty, too long, or twice not the JSON that was asked for

The caller sets the deadline, and `ask` ends with it wherever it is. `answer_within` is such a
deadline; being late is then `Unreachable`, like every other way of not getting an answer.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar, overload

import trio

from takopi.core.errors import Unreachable

T = TypeVar("T")


class Oneshot(Protocol):
    """A model that is asked once and remembers nothing."""

    @overload
    async def ask(self, system: str, user: str, *, schema: None = None) -> str: ...

    @overload
    async def ask(self, system: str, user: str, *, schema: type[T]) -> T: ...

    async def ask(self, system: str, user: str, *, schema: type[T] | None = None) -> str | T:
        """The answer: its text, or with a schema (any type msgspec can decode) a value of it."""
        ...


@contextmanager
def answer_within(seconds: float) -> Generator[None]:
    """A deadline for what is asked inside; missing it is `Unreachable`."""
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        what = f"the model did not answer within {seconds:g} s"
        raise Unreachable(what, maybe_applied=True) from None
