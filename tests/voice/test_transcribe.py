from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from takopi.config.schema import Voice
from takopi.core.errors import NotConfigured, Refused, TakopiError, Unreachable, UnusableAnswer
from takopi.kit.http import open_http
from takopi.kit.proc import Keeper
from takopi.voice.transcribe import Transcriber
from tests.oneshot.replies import serve_replies
from tests.voice.tone import tone

WITHIN_S = 60.0
OGG = tone()


@asynccontextmanager
async def transcriber(keeper: Keeper, settings: Voice) -> AsyncGenerator[Transcriber]:
    with trio.fail_after(WITHIN_S):
        async with open_http() as http:
            yield Transcriber(lambda: settings, http, keeper, os.environ)


def reply(body: bytes, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


def program(code: str) -> Voice:
    return Voice(command=(sys.executable, "-c", code, "{file}"))


def test_recording_of_the_tests_is_opus_in_ogg() -> None:
    assert OGG.startswith(b"OggS")
    assert OGG[28:36] == b"OpusHead"


async def test_server_gets_the_recording_and_gives_the_text(keeper: Keeper, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("sesame\n")
    async with serve_replies(reply(b'{"text": " fix the tests "}')) as wire:
        settings = Voice(base_url=f"{wire.url}/v1/", api_key_file=key)
        async with transcriber(keeper, settings) as ear:
            assert await ear.transcribe(OGG) == "fix the tests"
    (request,) = wire.requests
    assert OGG in request
    assert b"whisper-1" in request


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (reply(b"", "401 Unauthorized"), NotConfigured),
        (reply(b"", "500 Oops"), Unreachable),
        (reply(b"<html>"), UnusableAnswer),
        (reply(b'{"text": "  "}'), UnusableAnswer),
    ],
)
async def test_answer_of_no_use_is_an_error(
    keeper: Keeper, answer: bytes, expected: type[TakopiError]
) -> None:
    async with (
        serve_replies(answer) as wire,
        transcriber(keeper, Voice(base_url=wire.url)) as ear,
    ):
        with pytest.raises(expected):
            await ear.transcribe(OGG)


async def test_program_gets_the_recording_as_a_file_that_is_gone_afterwards(
    keeper: Keeper, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    code = f"import sys; p = sys.argv[1]; open({str(seen)!r}, 'w').write(p)\n"
    code += "print(len(open(p, 'rb').read()), 'bytes')"
    async with transcriber(keeper, program(code)) as ear:
        assert await ear.transcribe(OGG) == f"{len(OGG)} bytes"
    assert not Path(seen.read_text()).parent.exists()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(3)", Unreachable),
        ("pass", UnusableAnswer),
        ("print('x' * 1_000_000)", UnusableAnswer),
    ],
)
async def test_program_that_gives_no_text_is_an_error(
    keeper: Keeper, code: str, expected: type[TakopiError]
) -> None:
    async with transcriber(keeper, program(code)) as ear:
        with pytest.raises(expected):
            await ear.transcribe(OGG)


async def test_too_long_or_not_set_up_is_told_before_anything_is_fetched(keeper: Keeper) -> None:
    async with transcriber(keeper, Voice(command=("true",), max_s=10)) as ear:
        ear.check(10)
        with pytest.raises(Refused, match="11 s long, and 10 s is the most"):
            ear.check(11)
    async with transcriber(keeper, Voice()) as ear:
        with pytest.raises(NotConfigured):
            ear.check(1)


async def test_key_that_others_can_read_is_refused(keeper: Keeper, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sesame")
    key.chmod(0o644)
    settings = Voice(base_url="http://127.0.0.1:9", api_key_file=key)
    async with transcriber(keeper, settings) as ear:
        with pytest.raises(NotConfigured, match="api_key_file"):
            await ear.transcribe(OGG)
