"""What the daemon holds at most while big files go through it, beyond what it held before."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import trio

from tests.bench.readings import forget_peak, peak_mib, rss_mib
from tests.botapi.person import Attached
from tests.e2e.rig import WITHIN_S, Rig

OUT_BYTES = 50 * 1024 * 1024
IN_BYTES = 20 * 1024 * 1024
ALBUM = 10

ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/\?token=\S+")
CONFIG = 'files.enabled = true\ntransports = ["telegram", "web"]\nweb.port = 0\n'


async def warm_up(rig: Rig) -> None:
    """Let everything that is loaded once be loaded, and a small file go each way."""
    (rig.cwd / "small").write_bytes(b"small")
    await rig.reply(await rig.say("/file get small"), "small")
    await rig.ending(await rig.ada.document(rig.chat, Attached("s", b"s", caption="say: s")))


async def added_by_sending(rig: Rig) -> float:
    """`/file get` of the biggest file that is sent."""
    (rig.cwd / "big").write_bytes(bytes(OUT_BYTES))
    before = _begin(rig)
    sent = await rig.reply(await rig.say("/file get big"), "big")
    added = _peak(rig) - before
    assert len(rig.api.world.files[sent.fields["document"]["file_id"]].data) == OUT_BYTES
    return added


async def added_by_taking(rig: Rig, files: int = 1) -> float:
    """The biggest file that is taken, or an album of them."""
    before = _begin(rig)
    album = [Attached(f"{files}-{n}", bytes([n]) * IN_BYTES) for n in range(files)]
    album[0] = Attached(album[0].name, album[0].data, caption="say: taken")
    if files == 1:
        sent = await rig.ada.document(rig.chat, album[0])
    else:
        sent = (await rig.ada.album(rig.chat, album))[0]
    await rig.ending(sent)
    saved = [rig.cwd / ".uploads" / file.name for file in album]
    assert [file.stat().st_size for file in saved] == [IN_BYTES] * files
    return _peak(rig) - before


@asynccontextmanager
async def browsing(rig: Rig) -> AsyncGenerator[httpx2.AsyncClient, None]:
    """A browser that the page has let in."""
    await rig.until_so(lambda: ADDRESS.search(rig.log) is not None)
    found = ADDRESS.search(rig.log)
    assert found is not None
    async with httpx2.AsyncClient(base_url=found[1], timeout=None, trust_env=False) as client:
        client.headers["origin"] = found[1]
        await client.get(found[0])
        yield client


async def added_by_page_file(rig: Rig) -> float:
    """`/file get` of the file that was sent, on the page, which downloads it."""
    async with browsing(rig) as page:
        await _ask(page, "/file get small")
        before = _begin(rig)
        number = await _ask(page, "/file get big")
        async with page.stream("GET", f"/file/{number}") as download:
            size = sum([len(piece) async for piece in download.aiter_bytes()])
        assert size == OUT_BYTES
        return _peak(rig) - before


async def added_by_page_upload(rig: Rig) -> float:
    """The biggest file that the page takes, until a run has it."""
    async with browsing(rig) as page:
        before = _begin(rig)
        name = secrets.token_hex(8)
        headers = {"content-type": "application/octet-stream"}
        there = f"/upload?name={name}&key={name}"
        upload = await page.post(there, content=bytes(IN_BYTES), headers=headers)
        body = {"text": "say: taken", "key": name, "files": [upload.json()["id"]]}
        assert (await page.post("/send", json=body)).status_code == 200
        await rig.until_so((rig.cwd / ".uploads" / name).exists)
        return _peak(rig) - before


async def _ask(page: httpx2.AsyncClient, text: str) -> int:
    """The message of the page that brings a file in answer."""
    body = {"text": text, "key": secrets.token_hex(8)}
    asked = (await page.post("/send", json=body)).json()["id"]
    with trio.fail_after(WITHIN_S):
        # Each time it is asked, the daemon reads its history.
        while True:
            for entry in (await page.get("/history")).json()["messages"]:
                if entry["reply_to"] == asked and entry["file"]:
                    return entry["id"]
            await trio.sleep(0.05)


def _begin(rig: Rig) -> float:
    assert rig.process is not None
    forget_peak(rig.process.pid)
    return rss_mib(rig.process.pid)


def _peak(rig: Rig) -> float:
    assert rig.process is not None
    return peak_mib(rig.process.pid)
