"""The OpenAI Responses API, as codex speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model.fields import rows, string, texts
from tests.model.script import Call, Conversation, Fail, Role, Say, Turn
from tests.model.wire import Chunk, event, words

USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 120,
}


class Responses:
    """`POST /v1/responses`, streamed or whole."""

    path = "/v1/responses"

    def read(self, body: dict[str, Any]) -> Conversation:
        turns = [Turn("system", text) for text in texts(body.get("instructions"), "instructions")]
        asked = body.get("input")
        if isinstance(asked, str):
            turns.append(Turn("user", asked))
        else:
            for item in rows(asked, "input"):
                turns.extend(_turns(item))
        return Conversation(
            model=string(body.get("model"), "model"),
            turns=tuple(turns),
            tools=tuple(
                tool.get("name", tool.get("type", ""))
                for tool in rows(body.get("tools", []), "tools")
            ),
            stream=body.get("stream") is True,
        )

    def stream(self, reply: Say | Call, conversation: Conversation, serial: int) -> Iterator[Chunk]:
        whole = self.whole(reply, conversation, serial)
        head: dict[str, Any] = {**whole, "status": "in_progress", "output": [], "usage": None}
        yield _event("response.created", response=head)
        for index, item in enumerate(whole["output"]):
            begun = {**item, "status": "in_progress"}
            if item["type"] == "message":
                begun["content"] = []
            yield _event("response.output_item.added", output_index=index, item=begun)
            if item["type"] == "message":
                where = {"item_id": item["id"], "output_index": index, "content_index": 0}
                for word in words(item["content"][0]["text"]):
                    yield _event("response.output_text.delta", **where, delta=word, pause=True)
            yield _event("response.output_item.done", output_index=index, item=item)
        yield _event("response.completed", response=whole)

    def whole(self, reply: Say | Call, conversation: Conversation, serial: int) -> dict[str, Any]:
        return {
            "id": f"resp_{serial:04}",
            "object": "response",
            "status": "completed",
            "model": conversation.model,
            "output": _items(reply, serial),
            "usage": USAGE,
        }

    def error(self, reply: Fail) -> dict[str, Any]:
        return {"error": {"message": reply.message, "type": "api_error", "code": None}}


def _turns(item: dict[str, Any]) -> Iterator[Turn]:
    match item.get("type", "message"):
        case "message":
            role = string(item.get("role"), "input.role")
            for text in texts(item.get("content"), "input.content"):
                yield Turn(_role(role, text), text)
        case "function_call_output" | "custom_tool_call_output":
            yield Turn("tool", "\n".join(texts(item.get("output"), "input.output")))
        case "function_call" | "custom_tool_call":
            yield Turn("assistant", str(item.get("arguments", item.get("input"))))
        case _:
            pass  # thoughts and the like say nothing that a rule could match


def _role(role: str, text: str) -> Role:
    # codex puts what it knows of the machine into a person's mouth.
    if role in {"developer", "system"} or text.startswith(("<environment_context>", "# AGENTS.md")):
        return "system"
    return "assistant" if role == "assistant" else "user"


def _items(reply: Say | Call, serial: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.text:
        part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
        items.append({
            "type": "message",
            "id": f"msg_{serial:04}",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        })
    if isinstance(reply, Call):
        call = {"call_id": f"call_{serial:04}", "name": reply.tool, "status": "completed"}
        if isinstance(reply.arguments, str):
            items.append({
                "type": "custom_tool_call",
                "id": f"ctc_{serial:04}",
                **call,
                "input": reply.arguments,
            })
        else:
            items.append({
                "type": "function_call",
                "id": f"fc_{serial:04}",
                **call,
                "arguments": json.dumps(dict(reply.arguments)),
            })
    return items


def _event(kind: str, *, pause: bool = False, **fields: object) -> Chunk:
    return event({"type": kind, **fields}, name=kind, pause=pause)
