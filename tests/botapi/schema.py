"""The shape of every request: unknown, missing and mistyped fields are refused by their names.

`methods.json` holds the methods that are served and the types that their fields have. A type that
begins with `!` is required.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from tests.botapi.refusal import bad_request

Check: TypeAlias = Callable[[object, str], str | None]
"""What is wrong with a value that goes by a name, if anything is."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came in a multipart body."""

    name: str
    data: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter of a method, or one field of a type."""

    type: str
    required: bool
    check: Check


def method_fields(method: str) -> Mapping[str, Field] | None:
    """The parameters of a method; None for one that is not served."""
    return METHODS.get(method)


def check_parameters(method: str, parameters: Mapping[str, object]) -> None:
    """Raises `Refused` for what the method does not take."""
    problem = _check_fields(METHODS[method], parameters, "")
    if problem:
        raise bad_request(problem)


def read_form(method: str, values: Mapping[str, str | Upload]) -> dict[str, Any]:
    """The values of a form or a query string as their types, where they can be read as such."""
    fields = METHODS[method]
    return {
        name: _read_value(fields[name].type, value)
        if name in fields and isinstance(value, str)
        else value
        for name, value in values.items()
    }


def _read_value(type_: str, value: str) -> Any:
    if type_ == "String" or (type_ == "Integer|String" and value.startswith("@")):
        return value
    if type_ == "InputFile|String":
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _check_fields(fields: Mapping[str, Field], values: Mapping[str, object], at: str) -> str | None:
    for name, value in values.items():
        field = fields.get(name)
        if field is None:
            return f'unknown field "{at}{name}"'
        problem = field.check(value, f"{at}{name}")
        if problem:
            return problem
    for name, field in fields.items():
        if field.required and name not in values:
            return f'can\'t find field "{at}{name}"' if at else f"{name} is empty"
    return None


def _check_integer(value: object, name: str) -> str | None:
    return None if type(value) is int else _must_be(name, "Integer")


def _check_float(value: object, name: str) -> str | None:
    return None if type(value) in {int, float} else _must_be(name, "Float")


def _check_string(value: object, name: str) -> str | None:
    return None if type(value) is str else _must_be(name, "String")


def _check_boolean(value: object, name: str) -> str | None:
    return None if type(value) is bool else _must_be(name, "Boolean")


def _check_file(value: object, name: str) -> str | None:
    return None if isinstance(value, Upload) else _must_be(name, "InputFile")


def _must_be(name: str, type_: str) -> str:
    return f'field "{name}" must be of type {type_}'


PLAIN: Mapping[str, Check] = {
    "Integer": _check_integer,
    "Float": _check_float,
    "String": _check_string,
    "Boolean": _check_boolean,
    "InputFile": _check_file,
}


def _compile(type_: str) -> Check:
    if "|" in type_:
        return _compile_union(type_, type_.split("|"))
    if type_.startswith("Array of "):
        return _compile_array(_compile(type_.removeprefix("Array of ")))
    if type_ in PLAIN:
        return PLAIN[type_]
    shape = SHAPES["types"][type_]
    if isinstance(shape, list):
        return _compile_kinds(type_, cast("list[str]", shape))
    return _compile_object(type_, cast("dict[str, str]", shape))


def _compile_union(type_: str, names: list[str]) -> Check:
    checks = [_compile(name) for name in names]

    def check(value: object, name: str) -> str | None:
        problems: list[str] = []
        for one in checks:
            problem = one(value, name)
            if problem is None:
                return None
            problems.append(problem)
        # An object is told what is wrong with its likeliest shape, anything else what it may be.
        return problems[0] if isinstance(value, dict) else _must_be(name, type_)

    return check


def _compile_kinds(type_: str, names: list[str]) -> Check:
    """An object whose `type` says which of the kinds it is, in the words of their names."""
    kinds = {
        re.sub(r"(?<!^)([A-Z])", r"_\1", name.removeprefix(type_)).lower(): _compile(name)
        for name in names
    }

    def check(value: object, name: str) -> str | None:
        if not isinstance(value, dict):
            return _must_be(name, type_)
        kind = kinds.get(str(cast("dict[str, object]", value).get("type")))
        return kind(cast("object", value), name) if kind else f'unknown "{name}.type"'

    return check


def _compile_array(item: Check) -> Check:
    def check(value: object, name: str) -> str | None:
        if not isinstance(value, list):
            return _must_be(name, "Array")
        for index, one in enumerate(cast("list[object]", value)):
            problem = item(one, f"{name}[{index}]")
            if problem:
                return problem
        return None

    return check


def _compile_object(type_: str, shape: Mapping[str, str]) -> Check:
    fields: dict[str, Field] = {}

    def check(value: object, name: str) -> str | None:
        if not isinstance(value, dict):
            return _must_be(name, type_)
        if not fields:
            # Compiled on first use: types may hold themselves.
            fields.update(_compile_fields(shape))
        return _check_fields(fields, cast("dict[str, object]", value), f"{name}.")

    return check


def _compile_fields(shape: Mapping[str, str]) -> dict[str, Field]:
    return {
        name: Field(type_.lstrip("!"), type_.startswith("!"), _compile(type_.lstrip("!")))
        for name, type_ in shape.items()
    }


SHAPES: dict[str, Any] = json.loads(Path(__file__).with_name("methods.json").read_text("utf-8"))
METHODS: Mapping[str, Mapping[str, Field]] = {
    method: _compile_fields(shape) for method, shape in SHAPES["methods"].items()
}
