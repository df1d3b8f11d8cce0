"""What a prompt is made from, and what it comes to: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from takopi.core.tools import MCPTool, MCPToolResult

Mode = Literal["api", "cli"]


@dataclass(frozen=True, slots=True)
class AIReplyRequest:
    """What is asked for. Without anything but `ai_message`, that is the prompt.

    `user_context` is text of takopi's own; what others wrote goes into it fenced (see `fence`).
    """

    ai_message: str
    user_context: str | None = None
    tool_results: tuple[MCPToolResult, ...] = ()
    include_mcp_tools: bool = False
    project_name: str | None = None
    project_path: str | None = None


@dataclass(frozen=True, slots=True)
class PromptContext:
    """A request and where it goes: to a CLI, whose name is `cli_tool`, or to an API."""

    request: AIReplyRequest
    mode: Mode
    cli_tool: str | None = None
    system: str | None = None
    mcp_tools: tuple[MCPTool, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptSection:
    """One part of a prompt, without what is put around it."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class PromptMetadata:
    """Facts about a prompt; `section_sizes` are characters, section by section."""

    mode: Mode
    token_estimate: int
    section_sizes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class AggregatedPrompt:
    """A prompt as it is sent.

    `system` goes where the other side takes a system prompt, `user` is the message itself, and
    `full_prompt` is both, to be read.
    """

    system: str | None
    user: str
    full_prompt: str
    sections: tuple[PromptSection, ...]
    metadata: PromptMetadata


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """What would be sent; `prompt` is the whole of it, `parts` the same with its sections.

    Without success `error` says why there is none.
    """

    success: bool
    prompt: str
    mode: Mode
    cli_tool: str | None = None
    parts: AggregatedPrompt | None = None
    error: str = ""
