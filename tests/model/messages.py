"""The Anthropic Messages API, as claude and opencode speak it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model.fields import Malformed, rows, string, texts
from tests.model.script import Call, Conversation, Fail, Say, Turn
from tests.model.wire import Chunk, event, words

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Messages:
    """`POST /v1/messages`, streamed or whole."""

    path = "/v1/messages"

    def read(self, body: dict[str, Any]) -> Conversation:
        turns = [Turn("system", text) for text in texts(body.get("system"), "system")]
        for message in rows(body.get("messages"), "messages"):
            role = string(message.get("role"), "messages.role")
            if role not in {"user", "assistant", "system"}:
                raise Malformed(f"messages.role: {role!r} is not a role")
            turns.extend(_turns(role, message.get("content")))
        return Conversation(
            model=string(body.get("model"), "model"),
            turns=tuple(turns),
            tools=tuple(tool["name"] for tool in rows(body.get("tools", []), "tools")),
            stream=body.get("stream") is True,
        )

    def stream(self, reply: Say | Call, conversation: Conversation, serial: int) -> Iterator[Chunk]:
        head: dict[str, Any] = {
            **self.whole(reply, conversation, serial),
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 100, "output_tokens": 1},
        }
        yield _event("message_start", message=head)
        for index, block in enumerate(_blocks(reply, serial)):
            empty: dict[str, Any] = {"text": ""} if block["type"] == "text" else {"input": {}}
            yield _event("content_block_start", index=index, content_block={**block, **empty})
            if block["type"] == "text":
                for word in words(block["text"]):
                    delta = {"type": "text_delta", "text": word}
                    yield _event("content_block_delta", index=index, delta=delta, pause=True)
            else:
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        yield _event(
            "message_delta",
            delta={"stop_reason": _stop_reason(reply), "stop_sequence": None},
            usage={"output_tokens": 20},
        )
        yield _event("message_stop")

    def whole(self, reply: Say | Call, conversation: Conversation, serial: int) -> dict[str, Any]:
        return {
            "id": f"msg_{serial:04}",
            "type": "message",
            "role": "assistant",
            "model": conversation.model,
            "content": _blocks(reply, serial),
            "stop_reason": _stop_reason(reply),
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }

    def error(self, reply: Fail) -> dict[str, Any]:
        kind = ERROR_TYPES.get(reply.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": reply.message}}


def _turns(role: str, content: object) -> Iterator[Turn]:
    blocks = (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else rows(content, "messages.content")
    )
    for block in blocks:
        match block.get("type"):
            case "text":
                text = string(block.get("text"), "messages.content.text")
                # claude puts its own reminders into the person's message.
                if role == "system" or text.lstrip().startswith("<system-reminder>"):
                    yield Turn("system", text)
                else:
                    yield Turn("assistant" if role == "assistant" else "user", text)
            case "tool_result":
                yield Turn("tool", "\n".join(texts(block.get("content"), "tool_result.content")))
            case "tool_use":
                yield Turn("assistant", json.dumps(block.get("input")))
            case _:
                pass  # pictures, thoughts and the like say nothing that a rule could match


def _blocks(reply: Say | Call, serial: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    if isinstance(reply, Call):
        if isinstance(reply.arguments, str):
            raise TypeError(f"{reply.tool}: the Messages API has no free-form tools")
        blocks.append({
            "type": "tool_use",
            "id": f"toolu_{serial:04}",
            "name": reply.tool,
            "input": dict(reply.arguments),
        })
    return blocks


def _stop_reason(reply: Say | Call) -> str:
    return "tool_use" if isinstance(reply, Call) else "end_turn"


def _event(kind: str, *, pause: bool = False, **fields: object) -> Chunk:
    return event({"type": kind, **fields}, name=kind, pause=pause)
