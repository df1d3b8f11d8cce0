"""What a tool returned, as text of bounded size: pictures and sounds are named, not shown."""

from __future__ import annotations

import json
from collections.abc import Iterable


def as_text(content: Iterable[object], structured: object, *, max_bytes: int) -> str:
    """The parts of a result one after the other; its structured form where it has no parts."""
    parts = [_part(part) for part in content]
    if not parts and structured is not None:
        parts = [json.dumps(structured, ensure_ascii=False)]
    return cap("\n\n".join(parts), max_bytes)


def cap(text: str, max_bytes: int) -> str:
    """`text`, cut to that many bytes with a last line that says so."""
    # A character has four bytes at most: what is far too long is never encoded whole.
    data = text[: max_bytes + 1].encode(errors="replace")
    if len(text) <= max_bytes and len(data) <= max_bytes:
        return data.decode()
    kept = data[:max_bytes].decode(errors="ignore")
    return f"{kept}\n[cut after {max_bytes} bytes; it had {len(text)} characters]"


def _part(part: object) -> str:
    kind = getattr(part, "type", "unknown")
    match kind:
        case "text":
            return str(getattr(part, "text", ""))
        case "image" | "audio":
            encoded = len(str(getattr(part, "data", "")))
            mime_type = getattr(part, "mime_type", "of an unknown type")
            return f"[{kind}: {mime_type}, {encoded * 3 // 4} bytes, not shown]"
        case "resource_link":
            return f"[resource: {getattr(part, 'uri', '')}]"
        case "resource":
            resource = getattr(part, "resource", None)
            text = getattr(resource, "text", None)
            return text if isinstance(text, str) else f"[resource: {getattr(resource, 'uri', '')}]"
        case _:
            return f"[{kind}, not shown]"
