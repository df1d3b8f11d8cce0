"""A recording becomes its text, by a server or by a program, or one error that says why not.

The server speaks the API of OpenAI. The program gets the recording as a file and prints the text.
"""

from __future__ import annotations

import secrets as random
import shutil
import stat
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio

from takopi.config.environ import child_environ
from takopi.config.paths import mode_problem
from takopi.config.schema import Voice as Settings
from takopi.core.errors import NotConfigured, Refused, Unreachable, UnusableAnswer
from takopi.kit.exchange import exchange, feed_bytes
from takopi.kit.http import HttpClient
from takopi.kit.proc import Command, Keeper

MAX_TEXT_BYTES = 256 * 1024
CLEANUP_S = 5.0
GRACE_S = 2.0
FILE = "{file}"
WAY_OUT = "set `voice.base_url` or `voice.command` in takopi.toml"

_NAME = "voice.ogg"


class _Heard(msgspec.Struct, frozen=True):
    text: str


@dataclass(frozen=True, slots=True)
class Transcriber:
    """Writes voice notes down, in the way that the config names now."""

    settings: Callable[[], Settings]
    http: HttpClient
    keeper: Keeper
    environ: Mapping[str, str]
    secrets: tuple[str, ...] = ()

    def check(self, duration_s: int) -> None:
        """Refuse what will not be written down, before anything is fetched."""
        settings = self.settings()
        if settings.base_url is None and not settings.command:
            raise NotConfigured("voice notes cannot be written down here", way_out=WAY_OUT)
        if duration_s > settings.max_s:
            raise Refused(
                f"this voice note is {duration_s} s long, and {settings.max_s} s is the most",
                way_out="send a shorter one, or raise `voice.max_s`",
            )

    async def transcribe(self, recording: bytes) -> str:
        """The text of a recording; the caller sets the deadline."""
        settings = self.settings()
        if settings.command:
            text = await self._run(settings, recording)
        elif settings.base_url is not None:
            text = await self._ask(settings, recording)
        else:
            raise NotConfigured("voice notes cannot be written down here", way_out=WAY_OUT)
        text = text.strip()
        if not text:
            raise UnusableAnswer("nothing was heard in this voice note", way_out="send it again")
        return text

    async def _ask(self, settings: Settings, recording: bytes) -> str:
        boundary = random.token_hex(16)
        body = _form(boundary, settings.model, recording)
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        if settings.api_key_file is not None:
            key = await trio.to_thread.run_sync(_read_key, settings.api_key_file)
            headers["authorization"] = f"Bearer {key}"
        url = f"{(settings.base_url or '').rstrip('/')}/audio/transcriptions"
        reply = await self.http.request("POST", url, body=body, headers=headers)
        if reply.status in {401, 403}:
            raise NotConfigured(
                f"the transcription server refuses us (status {reply.status})",
                way_out="check `voice.api_key_file`",
            )
        if reply.status != 200:
            raise Unreachable(
                f"the transcription server answered with status {reply.status}", maybe_applied=True
            )
        try:
            return msgspec.json.decode(reply.body, type=_Heard).text
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise UnusableAnswer("the transcription server's answer cannot be read") from None

    async def _run(self, settings: Settings, recording: bytes) -> str:
        said = bytearray()

        async def read(stdout: trio.abc.ReceiveStream) -> None:
            async for chunk in stdout:
                said.extend(chunk)
                if len(said) > MAX_TEXT_BYTES:
                    raise UnusableAnswer("the transcription is too long")

        async with _folder(recording) as folder:
            file = str(folder / _NAME)
            argv = [word.replace(FILE, file) for word in settings.command]
            if not any(FILE in word for word in settings.command):
                argv.append(file)
            env = child_environ(self.environ, secrets=self.secrets, cwd=folder, extra={})
            ending = await exchange(
                self.keeper,
                Command(argv, folder, env),
                feed=feed_bytes(b""),
                read=read,
                grace_s=GRACE_S,
            )
        if ending.code != 0:
            raise Unreachable(
                f"{settings.command[0]} ended with code {ending.code}", maybe_applied=True
            )
        return said.decode(errors="replace")


def _form(boundary: str, model: str, recording: bytes) -> bytes:
    fields = {"model": model, "response_format": "json"}
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    parts.append(
        f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{_NAME}"\r\n'
        "content-type: audio/ogg\r\n\r\n"
    )
    return "".join(parts).encode() + recording + f"\r\n--{boundary}--\r\n".encode()


def _read_key(path: Path) -> str:
    way_out = "name a file of mode 600 that holds the key"
    try:
        status = path.stat()
        if problem := mode_problem(path, status.st_mode):
            raise NotConfigured(f"voice.api_key_file: {problem.what}", way_out=problem.way_out)
        key = path.read_text(encoding="utf-8").strip() if stat.S_ISREG(status.st_mode) else ""
    except (OSError, UnicodeDecodeError) as error:
        raise NotConfigured(
            f"voice.api_key_file: {path} cannot be read", way_out=way_out
        ) from error
    if not key.isascii() or not key.isprintable() or not key:
        raise NotConfigured(f"voice.api_key_file: {path} holds no key", way_out=way_out)
    return key


@asynccontextmanager
async def _folder(recording: bytes) -> AsyncGenerator[Path, None]:
    """A private folder with the recording in it."""
    folder = Path(await trio.to_thread.run_sync(tempfile.mkdtemp, None, "takopi-voice-"))
    try:
        await trio.to_thread.run_sync((folder / _NAME).write_bytes, recording)
        yield folder
    finally:
        with trio.move_on_after(CLEANUP_S, shield=True):
            await trio.to_thread.run_sync(
                lambda: shutil.rmtree(folder, ignore_errors=True), abandon_on_cancel=True
            )
