"""Whether the arguments of a call are what its tool asks for; a reason for the engine if not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from takopi.core.errors import Refused

MAX_BYTES = 1024 * 1024
REASON_CHARS = 500


def check_arguments(schema: Mapping[str, Any], arguments: object) -> dict[str, Any]:
    """The arguments as they are sent; `Refused` says what is wrong with them."""
    if not isinstance(arguments, dict):
        raise Refused("the arguments must be a JSON object")
    fields = cast("dict[str, Any]", arguments)
    try:
        if len(json.dumps(fields, ensure_ascii=False).encode()) > MAX_BYTES:
            raise Refused(f"the arguments have more than {MAX_BYTES} bytes")
    except UnicodeEncodeError:
        raise Refused("the arguments hold text that is not Unicode") from None
    _check_schema(schema, fields)
    return fields


def _check_schema(schema: Mapping[str, Any], fields: dict[str, Any]) -> None:
    # They come with the SDK, and like it are imported only where there are servers.
    from jsonschema import exceptions
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(dict(schema))
    try:
        usable = _without_patterns(schema)
        kind.check_schema(usable)
        # An empty registry: what a schema refers to elsewhere is not fetched.
        checker = kind(usable, registry=Registry())
        error = cast(
            "exceptions.ValidationError | None",
            exceptions.best_match(  # pyright: ignore[reportUnknownMemberType] it is untyped
                checker.iter_errors(fields)
            ),
        )
    except (exceptions.SchemaError, Unresolvable, RecursionError) as problem:
        raise Refused("the tool's own schema cannot be used") from problem
    if error is not None:
        where = "".join(f"[{part!r}]" for part in error.absolute_path)
        said = error.message[:REASON_CHARS]
        raise Refused(f"bad arguments{f' at {where}' if where else ''}: {said}")


def _without_patterns(schema: Any) -> Any:
    """The schema without regular expressions, and without what cannot be checked without them.

    One that a server chose could take for ever, and nothing else runs while it does: not even
    another thread. The server checks the arguments by them itself.
    """
    if isinstance(schema, list):
        return [_without_patterns(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    fields = cast("Mapping[str, Any]", schema)
    dropped = {"unevaluatedProperties"}
    # An argument may have this name, and is a schema then.
    if isinstance(fields.get("pattern"), str):
        dropped.add("pattern")
    if "patternProperties" in fields:
        dropped |= {"patternProperties", "additionalProperties"}
    return {name: _without_patterns(each) for name, each in fields.items() if name not in dropped}
