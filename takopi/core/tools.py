"""Tools that a person's MCP servers offer, how they are called, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MCPTool:
    """One tool by the name that an engine calls it by, `server__tool`, and its JSON Schema."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MCPToolCall:
    """What an engine wants to be called. Neither part is to be trusted."""

    name: str
    arguments: object


@dataclass(frozen=True, slots=True)
class MCPToolResult:
    """What came of one call: the tool's output, or why there is none."""

    name: str
    success: bool
    output: str
