"""Asks through `claude -p`, which then sees the question and nothing else.

It runs in an empty folder of its own, without tools, without a saved session, and without the
CLAUDE.md, hooks, plugins and MCP servers of the person. Two habits of its prompt are switched off,
because the text is not a command line: `/name` at the start, and `@path`, which would read the file
and send it along.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import trio

from takopi.config.environ import child_environ
from takopi.config.schema import Oneshot as Settings
from takopi.core.errors import (
    CannotStart,
    ChildLost,
    NotConfigured,
    TakopiError,
    Unfit,
    Unreachable,
)
from takopi.kit.exchange import Ending, exchange, feed_bytes
from takopi.kit.proc import Command, Keeper
from takopi.oneshot.backend import (
    MAX_ANSWER_CHARS,
    MAX_RETRIES,
    check_stop,
    fault_of,
    one_line,
    too_long,
)
from takopi.oneshot.key import VARIABLE

INSTALL = "npm install -g @anthropic-ai/claude-code"
LOGIN = "log in with `claude auth login`"
MAX_OUTPUT_BYTES = 8 * MAX_ANSWER_CHARS
"""How much is read before it is given up: the answer, escaped, and what is told about it."""

CLEANUP_S = 5.0

_ALONE = {"CLAUDE_CODE_SAFE_MODE": "1", "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1"}
_NOT_LOGGED_IN = re.compile(r"(?i)not logged in|/login|invalid api key|oauth token")


@dataclass(frozen=True, slots=True)
class Claude:
    """What the `[claude]` table says of the program and its environment."""

    command: str = "claude"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    use_api_billing: bool = False
    """Whether claude inherits ANTHROPIC_API_KEY; without it, it uses its own login."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """How claude says that it is done; `errors` stands where there is no `result`."""

    is_error: bool
    result: str = ""
    errors: tuple[str, ...] = ()
    stop_reason: str | None = None
    api_error_status: int | None = None


# With `verbose` in the person's settings, the result is the last of all that was said.
_output = msgspec.json.Decoder(Result | list[msgspec.Raw])
_result = msgspec.json.Decoder(Result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cli:
    """Asks with the person's own claude, and leaves no process and no file behind."""

    settings: Settings
    claude: Claude
    keeper: Keeper
    environ: Mapping[str, str]
    secrets: tuple[str, ...]
    grace_s: float

    async def complete(self, system: str, user: str) -> str:
        """The text of claude's one answer."""
        said = bytearray()

        async def read(stdout: trio.abc.ReceiveStream) -> None:
            async for chunk in stdout:
                said.extend(chunk)
                if len(said) > MAX_OUTPUT_BYTES:
                    raise too_long()

        # A text that begins with a slash would be taken for a command of claude's own.
        prompt = f"\n{user}" if user.startswith("/") else user
        async with _folder(system) as folder:
            try:
                ending = await exchange(
                    self.keeper,
                    self._command(folder),
                    feed=feed_bytes(prompt.encode()),
                    read=read,
                    grace_s=self.grace_s,
                )
            except CannotStart as error:
                raise NotConfigured(error.what, way_out=f"install it with `{INSTALL}`") from error
            except ChildLost as error:
                raise Unreachable(error.what, maybe_applied=True) from error
        return _answer(bytes(said), ending)

    def _command(self, folder: Path) -> Command:
        argv = [self.claude.command, "-p", "--output-format", "json", "--tools", ""]
        argv += ["--strict-mcp-config", "--no-session-persistence"]
        # Neither the length nor the secrecy of a system prompt is safe in an argument.
        argv += ["--system-prompt-file", str(_system_file(folder))]
        if self.settings.model:
            argv += ["--model", self.settings.model]
        retries = {"CLAUDE_CODE_MAX_RETRIES": str(MAX_RETRIES)}
        extra = {**retries, **self.claude.env, **_ALONE}
        cwd = _empty_folder(folder)
        env = child_environ(self.environ, secrets=self.secrets, cwd=cwd, extra=extra)
        if not self.claude.use_api_billing and VARIABLE not in self.claude.env:
            env.pop(VARIABLE, None)
        return Command(argv, cwd, env)


def _system_file(folder: Path) -> Path:
    return folder / "system.txt"


def _empty_folder(folder: Path) -> Path:
    return folder / "empty"


@asynccontextmanager
async def _folder(system: str) -> AsyncGenerator[Path, None]:
    """A private folder with the system prompt in it, and an empty folder to work in."""
    try:
        folder = Path(await trio.to_thread.run_sync(tempfile.mkdtemp, None, "takopi-oneshot-"))
    except OSError as error:
        raise _no_folder(error) from error
    try:
        await trio.to_thread.run_sync(_furnish, folder, system)
        yield folder
    finally:
        with trio.move_on_after(CLEANUP_S, shield=True):
            await trio.to_thread.run_sync(_remove, folder, abandon_on_cancel=True)


def _furnish(folder: Path, system: str) -> None:
    try:
        _empty_folder(folder).mkdir()
        _system_file(folder).write_text(system, encoding="utf-8")
    except OSError as error:
        raise _no_folder(error) from error


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _no_folder(error: OSError) -> Unfit:
    return Unfit(
        f"no temporary folder can be made: {error.strerror}",
        way_out="make room in it, or set TMPDIR to a folder that you may write to",
    )


def _answer(said: bytes, ending: Ending) -> str:
    try:
        output = _output.decode(said)
        result = output if isinstance(output, Result) else _result.decode(output[-1])
    except (msgspec.MsgspecError, UnicodeError, RecursionError, IndexError):
        raise _explain_silence(ending) from None
    check_stop(result.stop_reason)
    if result.is_error:
        raise _explain(result)
    if len(result.result) > MAX_ANSWER_CHARS:
        raise too_long()
    return result.result


def _explain(result: Result) -> TakopiError:
    words = result.result or "; ".join(result.errors)
    status = result.api_error_status
    if status is None and _NOT_LOGGED_IN.search(words):
        status = 401
    # `/login` is a command of the terminal's screen, which is not here.
    return fault_of(status, words.replace(" · Please run /login", ""), way_in=LOGIN)


def _explain_silence(ending: Ending) -> TakopiError:
    lines = ending.stderr.decode(errors="replace").splitlines()
    words = next((line for line in map(one_line, reversed(lines)) if line), "")
    if "unknown option" in words:
        what = f"claude is too old for short questions: {words}"
        return NotConfigured(what, way_out=f"update it with `{INSTALL}`")
    how = f"by signal {-ending.code}" if ending.code < 0 else f"with code {ending.code}"
    what = f"claude ended {how} and without an answer"
    return Unreachable(f"{what}: {words}" if words else what, maybe_applied=True)
