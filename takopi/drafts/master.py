"""Puts a prompt together: what there is and a new input in, the whole new text out, or an error.

The master is `claude -p` without tools, asked from an empty folder, or the Anthropic API, or, to
try things out, no model at all. It decides nothing: what it answers is the next version.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import trio

from takopi.config.environ import child_environ
from takopi.config.loaded import Config
from takopi.core.errors import CannotStart, ChildLost, NotConfigured, Unreachable, UnusableAnswer
from takopi.drafts.machine import MAX_TEXT_CHARS
from takopi.kit.exchange import Ending, exchange, feed_bytes
from takopi.kit.proc import Command, Keeper
from takopi.oneshot.api import Api
from takopi.oneshot.asker import Asker
from takopi.oneshot.backend import one_line
from takopi.oneshot.cli import INSTALL, Claude
from takopi.oneshot.key import VARIABLE
from takopi.oneshot.port import answer_within

MAX_OUTPUT_BYTES = 4 * MAX_TEXT_CHARS
CLEANUP_S = 5.0

SYSTEM = """\
# Specification Accumulation Assistant — System Prompt

You are an assistant-editor responsible for maintaining a single evolving **text** formatted in Markdown style.

On each turn, you receive:
- The previous state of the text (Markdown-formatted)
- New user input (free-form text)

Your task is to:
- Preserve all existing text
- Add the new input to the existing text
- Apply minimal Markdown-style structuring for clarity
- Keep the meaning exactly as provided by the user

Rules:
- Do not add ideas, assumptions, or interpretations
- Do not improve, redesign, or complete thoughts
- Do not remove or rewrite existing text unless explicitly instructed
- Do not guess or resolve ambiguities

Guidelines:
- Treat user input as the only source of truth
- Prefer addition over modification
- Use headings and bullet lists only when helpful
- Create new sections only if necessary

Output:
- Return only the updated text (Markdown-formatted)
- No explanations, comments, or meta-text"""  # ruff: ignore[line-too-long] it is what the model reads

_ALONE = {"CLAUDE_CODE_SAFE_MODE": "1", "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1"}
"""Neither CLAUDE.md and hooks, nor files that an `@path` in the text would bring along."""


class Master(Protocol):
    """Whoever puts prompts together."""

    async def merge(self, previous: str, new_input: str) -> str:
        """The text with the input in it; the deadline is the master's own."""
        ...


def message(previous: str, new_input: str) -> str:
    """What the model is told."""
    return f"Previous state:\n{previous}\n\nNew input:\n{new_input}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMaster:
    """The master that the config names, as it is now. `claude` is what its table says of it."""

    config: Callable[[], Config]
    claude: Callable[[], Claude]
    keeper: Keeper
    api: Api
    environ: Mapping[str, str]
    secrets: tuple[str, ...] = ()

    async def merge(self, previous: str, new_input: str) -> str:
        """The text with the input in it; what is empty or too long is no answer."""
        settings = self.config().drafts
        with answer_within(settings.timeout_s):
            match settings.backend:
                case "demo":
                    text = demo_merge(previous, new_input)
                case "api":
                    text = await Asker(self.api).ask(SYSTEM, message(previous, new_input))
                case "cli":
                    text = await self._ask_claude(message(previous, new_input))
        text = text.strip()
        if not text:
            raise UnusableAnswer("the prompt-master's answer is empty")
        if len(text) > MAX_TEXT_CHARS:
            raise _too_long()
        return text

    async def _ask_claude(self, user: str) -> str:
        said = bytearray()

        async def read(stdout: trio.abc.ReceiveStream) -> None:
            async for chunk in stdout:
                said.extend(chunk)
                if len(said) > MAX_OUTPUT_BYTES:
                    raise _too_long()

        claude = self.claude()
        async with _empty_folder() as folder:
            try:
                ending = await exchange(
                    self.keeper,
                    self._command(claude, folder),
                    feed=feed_bytes(user.encode(errors="replace")),
                    read=read,
                    grace_s=self.config().limits.grace_s,
                )
            except CannotStart as error:
                raise NotConfigured(error.what, way_out=f"install it with `{INSTALL}`") from error
            except ChildLost as error:
                raise Unreachable(error.what, maybe_applied=True) from error
        text = said.decode(errors="replace")
        if ending.code != 0:
            raise _explain(text, ending)
        return text

    def _command(self, claude: Claude, folder: Path) -> Command:
        argv = [claude.command, "-p", "--system-prompt", SYSTEM, "--tools", ""]
        argv += ["--strict-mcp-config", "--no-session-persistence"]
        env = child_environ(
            self.environ, secrets=self.secrets, cwd=folder, extra={**claude.env, **_ALONE}
        )
        if not claude.use_api_billing and VARIABLE not in claude.env:
            env.pop(VARIABLE, None)
        return Command(argv, folder, env)


def demo_merge(previous: str, new_input: str) -> str:
    """The inputs one below the other, as a list: what a model would do at the very least."""
    item = "- " + "\n  ".join(new_input.strip().splitlines())
    return f"{previous}\n{item}" if previous else item


def _too_long() -> UnusableAnswer:
    return UnusableAnswer(f"the prompt-master's answer is over {MAX_TEXT_CHARS} characters")


def _explain(said: str, ending: Ending) -> Unreachable:
    lines = [*said.splitlines(), *ending.stderr.decode(errors="replace").splitlines()]
    words = next((line for line in map(one_line, reversed(lines)) if line), "")
    how = f"by signal {-ending.code}" if ending.code < 0 else f"with code {ending.code}"
    what = f"the prompt-master ended {how}"
    return Unreachable(f"{what}: {words}" if words else what, maybe_applied=True)


@asynccontextmanager
async def _empty_folder() -> AsyncGenerator[Path, None]:
    folder = Path(await trio.to_thread.run_sync(tempfile.mkdtemp, None, "takopi-draft-"))
    try:
        yield folder
    finally:
        with trio.move_on_after(CLEANUP_S, shield=True):
            await trio.to_thread.run_sync(
                lambda: shutil.rmtree(folder, ignore_errors=True), abandon_on_cancel=True
            )
