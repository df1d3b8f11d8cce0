"""Files that are handed to the page: bounded, kept, and part of the message that names them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import trio

from takopi.core.messages import Document, IncomingMessage
from tests.web.rig import Rig, open_rig

BYTES = "application/octet-stream"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig, None]:
    async with open_rig(tmp_path, takes_files=True) as rig:
        yield rig


async def upload(
    rig: Rig, data: bytes, name: str = "a.txt", *, key: str = "file-0001", kind: str = BYTES
) -> httpx2.Response:
    return await rig.client.post(
        "/upload",
        params={"name": name, "key": key},
        content=data,
        headers={"origin": rig.web.address, "content-type": kind},
    )


async def test_upload_becomes_a_document_of_the_message_that_names_it(rig: Rig) -> None:
    number = (await upload(rig, b"hello", "日記 1.md")).json()["id"]
    await rig.say("look", files=[number])
    what = (await rig.next_arrival()).what
    assert isinstance(what, IncomingMessage)
    assert what.documents == (Document(str(number), "日記 1.md", size_bytes=5),)
    with await rig.web.fetch(what.documents[0].file_id) as file:
        assert file.read() == b"hello"
    (shown,) = await rig.history()
    assert shown["uploads"] == [{"id": number, "name": "日記 1.md", "size_bytes": 5}]
    answer = await rig.client.get(f"/upload/{number}")
    assert (answer.content, answer.headers["content-type"]) == (b"hello", BYTES)
    assert answer.headers["content-disposition"].startswith("attachment; ")


async def test_files_alone_are_a_message_and_nothing_at_all_is_none(rig: Rig) -> None:
    number = (await upload(rig, b"hello")).json()["id"]
    assert (await rig.say("", files=[number])).status_code == 200
    assert (await rig.say("", key="key-0002")).status_code == 400


async def test_same_upload_again_is_the_same_file(rig: Rig) -> None:
    first = await upload(rig, b"hello")
    assert first.json() == (await upload(rig, b"hello")).json()
    assert first.json() != (await upload(rig, b"hello", key="file-0002")).json()
    assert len(list((rig.db.path.parent / "spool").iterdir())) == 2


async def test_uploads_and_messages_that_name_them_survive_a_restart(tmp_path: Path) -> None:
    async with open_rig(tmp_path, takes_files=True) as rig:
        number = (await upload(rig, b"hello")).json()["id"]
        await rig.say("look", files=[number])
    async with open_rig(tmp_path) as rig:
        what = (await rig.next_arrival()).what
        assert isinstance(what, IncomingMessage)
        with await rig.web.fetch(what.documents[0].file_id) as file:
            assert file.read() == b"hello"


MOST = 20 * 1024 * 1024


@asynccontextmanager
async def sending(
    rig: Rig, length: str, *, kind: str = BYTES
) -> AsyncGenerator[trio.SocketStream, None]:
    """An upload whose head is on its way."""
    host = rig.web.address.removeprefix("http://")
    cookie = "; ".join(f"{name}={value}" for name, value in rig.client.cookies.items())
    head = (
        f"POST /upload?name=a&key=file-0009 HTTP/1.1\r\nhost: {host}\r\n"
        f"origin: {rig.web.address}\r\ncookie: {cookie}\r\n"
        f"content-type: {kind}\r\n{length}\r\n\r\n"
    )
    async with await trio.open_tcp_stream("127.0.0.1", int(host.rpartition(":")[2])) as stream:
        await stream.send_all(head.encode())
        yield stream


async def test_file_of_20_mb_is_taken(rig: Rig) -> None:
    number = (await upload(rig, bytes(MOST))).json()["id"]
    with await rig.web.fetch(str(number)) as file:
        assert file.seek(0, 2) == MOST


async def test_file_of_one_byte_more_is_refused_before_it_is_sent(rig: Rig) -> None:
    async with sending(rig, f"content-length: {MOST + 1}") as stream:
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 413")


async def test_body_that_hides_its_length_is_cut_off(rig: Rig) -> None:
    megabyte = b"100000\r\n" + bytes(1024 * 1024) + b"\r\n"
    async with sending(rig, "transfer-encoding: chunked") as stream:
        for _ in range(20):
            await stream.send_all(megabyte)
        await stream.send_all(b"1\r\nx\r\n")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 413")
    assert list((rig.db.path.parent / "spool").iterdir()) == []


async def test_refused_upload_in_many_small_pieces_does_not_hang(rig: Rig) -> None:
    async with sending(rig, "transfer-encoding: chunked", kind="text/plain") as stream:
        await stream.send_all(b"1\r\nx\r\n" * 500)
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 415")
        while await stream.receive_some():
            pass


@pytest.mark.parametrize(
    ("name", "key", "kind", "status"),
    [
        ("", "file-0001", BYTES, 400),
        ("x" * 301, "file-0001", BYTES, 400),
        ("a", "short", BYTES, 400),
        ("a", "file-0001", "text/plain", 415),
        ("a", "file-0001", "multipart/form-data", 415),
    ],
)
async def test_upload_that_is_not_what_the_page_sends_is_refused(
    rig: Rig, name: str, key: str, kind: str, status: int
) -> None:
    assert (await upload(rig, b"x", name, key=key, kind=kind)).status_code == status


async def test_message_with_a_file_that_is_not_there_is_refused_whole(rig: Rig) -> None:
    assert (await rig.say("look", files=[77])).status_code == 409
    assert (await rig.say("look", files=list(range(1, 12)), key="key-0002")).status_code == 400
    assert await rig.history() == []


async def test_files_are_refused_where_they_are_off(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        answer = await upload(rig, b"x")
        assert (answer.status_code, "files.enabled" in answer.json()["error"]) == (409, True)
        assert (await rig.client.get("/history")).json()["files"] is False


async def test_upload_from_another_page_is_refused(rig: Rig) -> None:
    answer = await rig.client.post(
        "/upload?name=a&key=file-0001",
        content=b"x",
        headers={"origin": "http://evil.example", "content-type": BYTES},
    )
    assert answer.status_code == 403
