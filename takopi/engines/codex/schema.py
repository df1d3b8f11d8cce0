"""The lines of `codex exec --json`: decoded once, with every field that may be missing optional."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from takopi.engines.jsonl import decode_line, decode_part, tags_of


class AgentMessage(msgspec.Struct, frozen=True, tag_field="type", tag="agent_message"):
    id: str
    text: str = ""


class Reasoning(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning"):
    id: str
    text: str = ""


class CommandExecution(msgspec.Struct, frozen=True, tag_field="type", tag="command_execution"):
    id: str
    command: str = ""
    aggregated_output: str | None = None
    exit_code: int | None = None
    status: str = ""


class Change(msgspec.Struct, frozen=True):
    path: str
    kind: str = "update"


class FileChange(msgspec.Struct, frozen=True, tag_field="type", tag="file_change"):
    id: str
    changes: tuple[Change, ...] = ()
    status: str = ""


class Message(msgspec.Struct, frozen=True):
    message: str = ""


class ContentBlock(msgspec.Struct, frozen=True):
    text: str | None = None


class ToolResult(msgspec.Struct, frozen=True):
    content: tuple[ContentBlock, ...] = ()


class McpToolCall(msgspec.Struct, frozen=True, tag_field="type", tag="mcp_tool_call"):
    id: str
    server: str = ""
    tool: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"null")
    result: ToolResult | None = None
    error: Message | None = None
    status: str = ""


class CollabToolCall(msgspec.Struct, frozen=True, tag_field="type", tag="collab_tool_call"):
    id: str
    tool: str = ""
    prompt: str | None = None
    status: str = ""


class SearchAction(msgspec.Struct, frozen=True):
    query: str | None = None
    url: str | None = None


class WebSearch(msgspec.Struct, frozen=True, tag_field="type", tag="web_search"):
    id: str
    query: str = ""
    action: SearchAction | None = None


class Todo(msgspec.Struct, frozen=True):
    text: str
    completed: bool = False


class TodoList(msgspec.Struct, frozen=True, tag_field="type", tag="todo_list"):
    id: str
    items: tuple[Todo, ...] = ()


class ErrorItem(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    id: str
    message: str = ""


Item: TypeAlias = (
    AgentMessage
    | Reasoning
    | CommandExecution
    | FileChange
    | McpToolCall
    | CollabToolCall
    | WebSearch
    | TodoList
    | ErrorItem
)


class ThreadStarted(msgspec.Struct, frozen=True, tag_field="type", tag="thread.started"):
    thread_id: str


class TurnStarted(msgspec.Struct, frozen=True, tag_field="type", tag="turn.started"):
    pass


class ItemStarted(msgspec.Struct, frozen=True, tag_field="type", tag="item.started"):
    item: Item


class ItemUpdated(msgspec.Struct, frozen=True, tag_field="type", tag="item.updated"):
    item: Item


class ItemCompleted(msgspec.Struct, frozen=True, tag_field="type", tag="item.completed"):
    item: Item


class Tokens(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None


class TurnCompleted(msgspec.Struct, frozen=True, tag_field="type", tag="turn.completed"):
    usage: Tokens | None = None


class TurnFailed(msgspec.Struct, frozen=True, tag_field="type", tag="turn.failed"):
    error: Message | None = None


class Error(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    message: str = ""


Line: TypeAlias = (
    ThreadStarted
    | TurnStarted
    | ItemStarted
    | ItemUpdated
    | ItemCompleted
    | TurnCompleted
    | TurnFailed
    | Error
)

_LINES = tags_of(Line)
_ITEMS = tags_of(Item)


class ItemHead(msgspec.Struct, frozen=True):
    type: str


class Head(msgspec.Struct, frozen=True):
    """As much of a line as tells its kind."""

    type: str
    item: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def known(self) -> bool:
        if self.type.startswith("item.") and self.type in _LINES:
            return decode_part(self.item, _item_head).type in _ITEMS
        return self.type in _LINES


_line = msgspec.json.Decoder(Line)
_item_head = msgspec.json.Decoder(ItemHead)
_head = msgspec.json.Decoder(Head)


def decode(line: bytes) -> Line | Head:
    """One line; of an unknown kind, its head alone."""
    return decode_line(line, _line, head=_head)
