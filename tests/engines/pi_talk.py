"""What pi says, line by line, and what a dialect makes of it."""

import json
from pathlib import Path
from typing import Any

from takopi.core.ids import EngineId, ResumeToken
from takopi.core.ports import EngineJob
from takopi.engines.pi.translate import PiDialect
from takopi.engines.spec import Dialect, Said

CWD = Path("/home/user/project")
SESSION = ResumeToken(EngineId("pi"), "01a1ed1c-d6c6-76a5-b56d-a0ebe313cb7c")
AGENT_END: dict[str, Any] = {"type": "agent_end", "messages": []}


def make_dialect(*, resume: ResumeToken | None = None, system: str | None = None) -> PiDialect:
    return PiDialect(EngineJob("do it", CWD, resume=resume, system=system), model=None)


def say(dialect: Dialect, *lines: dict[str, Any]) -> list[Said]:
    return [said for line in lines for said in dialect.read(json.dumps(line).encode())]


def assistant(words: str | None = None, stop: str = "stop", **fields: Any) -> dict[str, Any]:
    content = [] if words is None else [{"type": "text", "text": words}]
    message = {"role": "assistant", "content": content, "stopReason": stop, **fields}
    return {"type": "message_end", "message": message}
