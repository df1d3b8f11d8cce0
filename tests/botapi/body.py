"""The parameters of a request, however they were sent: JSON, form, multipart or query string."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tests.botapi.refusal import bad_request
from tests.botapi.schema import Upload, read_form
from tests.wire.http import HttpRequest


def read_parameters(method: str, request: HttpRequest) -> dict[str, Any]:
    """Raises `Refused` for a body that cannot be read."""
    query = urlsplit(request.target).query
    values: dict[str, str | Upload] = _read_pairs(query) if query else {}
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if not request.body:
        return read_form(method, values)
    if kind == "application/json":
        try:
            parameters = msgspec.json.decode(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise bad_request("can't parse JSON object") from None
        if not isinstance(parameters, dict):
            raise bad_request("object expected as JSON body")
        return {**read_form(method, values), **parameters}
    if kind == "application/x-www-form-urlencoded":
        values |= _read_pairs(_decode(request.body))
    elif kind == "multipart/form-data":
        if "content-length" not in request.headers:
            raise bad_request("a file whose length is not told is not taken")
        values |= _read_multipart(content_type, request.body)
    else:
        raise bad_request(f"content type {kind or 'missing'} is not read")
    return read_form(method, values)


def _read_pairs(text: str) -> dict[str, str | Upload]:
    return dict(parse_qsl(text, keep_blank_values=True))


def _read_multipart(content_type: str, body: bytes) -> dict[str, str | Upload]:
    found = re.search(r'boundary="?([^";]+)"?', content_type)
    if not found:
        raise bad_request("boundary expected")
    mark = b"--" + found[1].encode()
    sections = (b"\r\n" + body).split(b"\r\n" + mark)
    if len(sections) < 2 or sections[-1].strip() != b"--":
        raise bad_request("can't parse multipart body")
    values: dict[str, str | Upload] = {}
    for section in sections[1:-1]:
        head, gap, data = section.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = _attribute(_decode(head), "name")
        if not gap or name is None:
            raise bad_request("can't parse multipart body")
        file_name = _attribute(_decode(head), "filename")
        if file_name is None:
            values[name] = _decode(data)
        else:
            kind = re.search(r"(?im)^content-type:\s*(\S+)", _decode(head))
            values[name] = Upload(file_name, data, kind[1] if kind else "text/plain")
    return values


def _attribute(head: str, name: str) -> str | None:
    found = re.search(rf'(?i)content-disposition:[^\r\n]*[; ]{name}="([^"\r\n]*)"', head)
    return found[1] if found else None


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise bad_request("strings must be encoded in UTF-8") from None
