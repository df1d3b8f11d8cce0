"""What claude says, line by line, and what a dialect makes of it."""

import json
from pathlib import Path
from typing import Any

from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.claude.spec import ClaudeSettings
from takopi.engines.claude.translate import ClaudeDialect
from takopi.engines.spec import Dialect, Said

CWD = Path("/home/user/project")
THREAD = ResumeToken(EngineId("claude"), "ccc6bef8-5a9f-400c-b9ce-363707802258")
INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "opus"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "done"}


def make_dialect(*, prompt: str = "do it", system: str | None = None, **keys: Any) -> ClaudeDialect:
    return ClaudeDialect(ClaudeSettings(**keys), EngineJob(prompt, CWD, system=system))


def say(dialect: Dialect, *lines: dict[str, Any]) -> list[Said]:
    return [said for line in lines for said in dialect.read(json.dumps(line).encode())]


def assistant(*blocks: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    message = {"role": "assistant", "content": [*blocks]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_use(name: str, call_id: str = "t-1", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(
    content: Any = "ok", call_id: str = "t-1", *, parent: str | None = None, error: bool = False
) -> dict[str, Any]:
    block = {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": content,
        "is_error": error,
    }
    message = {"role": "user", "content": [block]}
    return {"type": "user", "message": message, "parent_tool_use_id": parent}


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **fields}


def can_use_tool(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": name, "input": arguments, **fields}
    return {"type": "control_request", "request_id": "r-1", "request": request}
