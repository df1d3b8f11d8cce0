"""Who is let in, and what is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
import trio

from takopi.core.errors import Unfit
from takopi.web.guard import HEADERS
from takopi.web.token import FILE, keep_token
from tests.web.rig import TOKEN, Rig, open_rig


def stranger(rig: Rig) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=rig.web.address, timeout=None, trust_env=False)


async def test_token_becomes_a_cookie_that_no_script_and_no_other_site_gets(rig: Rig) -> None:
    async with stranger(rig) as client:
        answer = await client.get(f"/?token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], "\u00e4"])
async def test_wrong_token_is_refused(rig: Rig, token: str) -> None:
    async with stranger(rig) as client:
        answer = await client.get("/", params={"token": token})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/history", "/events", "/file/1", "/page/page.js"])
async def test_nothing_is_read_without_the_cookie(rig: Rig, path: str) -> None:
    async with stranger(rig) as client:
        assert (await client.get(path)).status_code == 401


async def test_page_is_at_one_address_of_this_machine_and_no_other(rig: Rig) -> None:
    port = httpx2.URL(rig.web.address).port
    assert port is not None
    await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
    # Who listened at all of them would be reached at this one, too.
    with pytest.raises(OSError, match=r"127\.0\.0\.2"):
        await trio.open_tcp_stream("127.0.0.2", port)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80"])
async def test_foreign_host_is_refused(rig: Rig, host: str) -> None:
    answer = await rig.client.get("/history", headers={"host": host})
    assert answer.status_code == 421
    assert rig.web.address in answer.json()["error"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
async def test_foreign_origin_is_refused(rig: Rig, origin: str) -> None:
    refused = await rig.post("/send", {"text": "hi", "key": "key-0001"}, origin=origin)
    assert refused.status_code == 403
    assert (await rig.client.get("/history", headers={"origin": origin})).status_code == 403
    assert await rig.history() == []


async def test_change_without_an_origin_is_refused(rig: Rig) -> None:
    answer = await rig.client.post("/send", json={"text": "hi", "key": "key-0001"})
    assert answer.status_code == 403


async def test_page_of_another_port_cannot_load_what_is_here(rig: Rig) -> None:
    answer = await rig.client.get("/history", headers={"sec-fetch-site": "same-site"})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/", "/history", "/nowhere"])
async def test_every_answer_forbids_foreign_script_and_framing(rig: Rig, path: str) -> None:
    answer = await rig.client.get(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in answer.headers["content-security-policy"]


async def test_page_has_no_inline_script_or_style(rig: Rig) -> None:
    html = (await rig.client.get("/")).text
    assert "<style" not in html
    assert "style=" not in html
    assert '<script type="module" src="/page/page.js"></script>' in html


@pytest.mark.parametrize("name", ["..%2fserver.py", "%2e%2e/server.py", "server.py", "nothing"])
async def test_only_the_files_of_the_page_are_served(rig: Rig, name: str) -> None:
    assert (await rig.client.get(f"/page/{name}")).status_code == 404


async def test_100_mb_are_refused_before_they_are_sent(rig: Rig) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", int(rig.web.address.rpartition(":")[2]))
    cookie = "; ".join(f"{name}={value}" for name, value in rig.client.cookies.items())
    head = (
        f"POST /send HTTP/1.1\r\nhost: {rig.web.address[7:]}\r\norigin: {rig.web.address}\r\n"
        f"cookie: {cookie}\r\ncontent-type: application/json\r\ncontent-length: 100000000\r\n\r\n"
    )
    async with stream:
        await stream.send_all(head.encode() + b"x" * 1000)
        answer = await stream.receive_some()
    assert answer.startswith(b"HTTP/1.1 413")


async def test_body_that_does_not_say_its_length_is_bounded(rig: Rig) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", int(rig.web.address.rpartition(":")[2]))
    cookie = "; ".join(f"{name}={value}" for name, value in rig.client.cookies.items())
    head = (
        f"POST /send HTTP/1.1\r\nhost: {rig.web.address[7:]}\r\norigin: {rig.web.address}\r\n"
        f"cookie: {cookie}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    async with stream:
        await stream.send_all(head.encode() + b"f4241\r\n" + b"x" * 1_000_001 + b"\r\n")
        answer = await stream.receive_some()
    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "body",
    [
        {"text": "hi"},
        {"text": "   ", "key": "key-0001"},
        {"text": "hi", "key": "short"},
        {"text": "hi", "key": "key-0001", "more": 1},
        {"text": 1, "key": "key-0001"},
        {"text": "hi", "key": "key-0001", "reply_to": -1},
        [],
    ],
)
async def test_what_the_page_would_not_send_is_refused_with_a_sentence(
    rig: Rig, body: object
) -> None:
    answer = await rig.post("/send", body)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


async def test_form_of_another_page_is_refused(rig: Rig) -> None:
    headers = {"origin": rig.web.address, "content-type": "text/plain"}
    answer = await rig.client.post("/send", content=b'{"text":"x"}', headers=headers)
    assert answer.status_code == 415


async def test_port_that_is_taken_is_named(rig: Rig, tmp_path: Path) -> None:
    port = int(rig.web.address.rpartition(":")[2])
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    with pytest.RaisesGroup(pytest.RaisesExc(Unfit, match=str(port)), flatten_subgroups=True):
        async with open_rig(other, port=port):
            pass


def test_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    token = keep_token(tmp_path)
    assert keep_token(tmp_path) == token
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_token_that_others_may_have_read_is_refused(tmp_path: Path) -> None:
    keep_token(tmp_path)
    (tmp_path / FILE).chmod(0o644)
    with pytest.raises(Unfit, match="may be read by others"):
        keep_token(tmp_path)


def test_damaged_token_is_replaced(tmp_path: Path) -> None:
    (tmp_path / FILE).touch(0o600)
    assert len(keep_token(tmp_path)) == 43
