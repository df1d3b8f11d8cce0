"""Finds the JSON in what a model said, and takes it only if it is exactly what was asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import TypeVar

import msgspec

from takopi.core.errors import UnusableAnswer

T = TypeVar("T")

_FENCED = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_OBJECT = re.compile(r'\{\s*"')
_scan = json.JSONDecoder().raw_decode


def read_json(answer: str, schema: type[T]) -> T:
    """The value in `answer`: bare, in a code fence, or as the first object among words."""
    not_json = unfit = None
    for text in _candidates(answer):
        try:
            return msgspec.json.decode(text, type=schema)
        except msgspec.ValidationError as error:
            unfit = unfit or error
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            not_json = not_json or error
    if unfit:
        # What is wrong with the JSON tells more than that the words around it are none.
        raise UnusableAnswer(f"the model's JSON does not fit: {unfit}") from unfit
    raise UnusableAnswer(f"the model's answer is not JSON: {not_json}") from not_json


def _candidates(answer: str) -> Generator[str]:
    yield answer.strip()
    if fenced := _FENCED.search(answer):
        yield fenced[1]
    # An object that is broken is not replaced by one inside it, which may fit by accident.
    if begun := _OBJECT.search(answer):
        try:
            _, end = _scan(answer, begun.start())
        except (ValueError, RecursionError):
            return
        yield answer[begun.start() : end]
