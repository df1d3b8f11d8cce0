"""The OpenAI chat completions API, as opencode and pi speak it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model.fields import Malformed, rows, string, table, texts
from tests.model.script import Call, Conversation, Fail, Role, Say, Turn
from tests.model.wire import Chunk, event, words

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


class ChatCompletions:
    """`POST /v1/chat/completions`, streamed or whole."""

    path = "/v1/chat/completions"

    def read(self, body: dict[str, Any]) -> Conversation:
        turns: list[Turn] = []
        for message in rows(body.get("messages"), "messages"):
            role = string(message.get("role"), "messages.role")
            if role not in ROLES:
                raise Malformed(f"messages.role: {role!r} is not a role")
            said = texts(message.get("content"), "messages.content")
            for call in rows(message.get("tool_calls", []), "messages.tool_calls"):
                said.append(str(table(call.get("function"), "tool_calls.function")["arguments"]))
            turns.extend(Turn(ROLES[role], text) for text in said)
        return Conversation(
            model=string(body.get("model"), "model"),
            turns=tuple(turns),
            tools=tuple(
                table(tool.get("function"), "tools.function")["name"]
                for tool in rows(body.get("tools", []), "tools")
            ),
            stream=body.get("stream") is True,
        )

    def stream(self, reply: Say | Call, conversation: Conversation, serial: int) -> Iterator[Chunk]:
        head = {
            "id": f"chatcmpl-{serial:04}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": conversation.model,
        }

        def chunk(
            delta: dict[str, Any], *, finish: str | None = None, pause: bool = False
        ) -> Chunk:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return event({**head, "choices": [choice]}, pause=pause)

        yield chunk({"role": "assistant", "content": ""})
        for word in words(reply.text):
            yield chunk({"content": word}, pause=True)
        if isinstance(reply, Call):
            yield chunk({"tool_calls": [{"index": 0, **_call(reply, serial)}]})
        yield chunk({}, finish=_finish_reason(reply))
        yield event({**head, "choices": [], "usage": USAGE})
        yield Chunk(b"data: [DONE]\n\n")

    def whole(self, reply: Say | Call, conversation: Conversation, serial: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if isinstance(reply, Call):
            message["tool_calls"] = [_call(reply, serial)]
        return {
            "id": f"chatcmpl-{serial:04}",
            "object": "chat.completion",
            "created": 0,
            "model": conversation.model,
            "choices": [{"index": 0, "message": message, "finish_reason": _finish_reason(reply)}],
            "usage": USAGE,
        }

    def error(self, reply: Fail) -> dict[str, Any]:
        return {"error": {"message": reply.message, "type": "api_error", "code": None}}


def _call(reply: Call, serial: int) -> dict[str, Any]:
    if isinstance(reply.arguments, str):
        raise TypeError(f"{reply.tool}: chat completions have no free-form tools")
    return {
        "id": f"call_{serial:04}",
        "type": "function",
        "function": {"name": reply.tool, "arguments": json.dumps(dict(reply.arguments))},
    }


def _finish_reason(reply: Say | Call) -> str:
    return "tool_calls" if isinstance(reply, Call) else "stop"
